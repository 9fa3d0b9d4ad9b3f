"""What OpenWrt's shell libraries give the scripts of the package, as stand-ins for `openwrt.py`."""

FUNCTIONS = r"""
# A function, as busybox prefers its own program to one of the path.
logger() { echo "$@" >> /tmp/log; }
# UCI, as far as one package with named sections goes.
config_load() {
	CONFIG_SECTIONS=
	[ -f "$IPKG_INSTROOT/etc/config/$1" ] && . "$IPKG_INSTROOT/etc/config/$1"
	return 0
}
config() { CONFIG_SECTION="$2"; CONFIG_SECTIONS="$CONFIG_SECTIONS $2"; eval "CONFIG_${2}_TYPE=\"$1\""; }
option() { eval "CONFIG_${CONFIG_SECTION}_$1=\"$2\""; }
list() {
	eval "CONFIG_${CONFIG_SECTION}_$1=\"\${CONFIG_${CONFIG_SECTION}_$1:+\${CONFIG_${CONFIG_SECTION}_$1} }$2\""
}
config_get() { eval "$1=\"\${CONFIG_${2}_${3}:-$4}\""; }
config_get_bool() {
	config_get "$@"
	eval "case \"\$$1\" in 1|on|true|yes|enabled) $1=1;; *) $1=0;; esac"
}
config_foreach() {
	local call="$1" type="$2" section kind
	for section in $CONFIG_SECTIONS; do
		eval "kind=\"\$CONFIG_${section}_TYPE\""
		[ "$kind" = "$type" ] && "$call" "$section"
	done
	return 0
}
config_list_foreach() {
	local section="$1" name="$2" call="$3" values value
	shift 3
	config_get values "$section" "$name"
	for value in $values; do "$call" "$value" "$@"; done
}
services_of() { grep -s '^/etc/init.d/' "$IPKG_INSTROOT/usr/lib/opkg/info/$pkgname.list"; }
default_postinst() {
	local service
	for service in $(services_of); do /bin/sh /etc/rc.common "$service" enable; /bin/sh /etc/rc.common "$service" start; done
}
default_prerm() {
	local service
	for service in $(services_of); do /bin/sh /etc/rc.common "$service" disable; /bin/sh /etc/rc.common "$service" stop; done
}
"""

NETWORK = r"""
network_flush_cache() { return 0; }
network_get_device() { eval "$1=\"$(cat "/tmp/device-of-$2" 2>/dev/null)\""; }
"""

# Records what the script asks procd for as lines: WHAT, then words, each on a line of its own.
RC_COMMON = r"""
. /lib/functions.sh
initscript="$1"; action="$2"
record() { for word in "$@"; do printf '%s\n' "$word" >> /tmp/procd.new; done; printf '\n' >> /tmp/procd.new; }
procd_open_instance() { record open "$@"; }
procd_set_param() { record set "$@"; }
procd_append_param() { record append "$@"; }
procd_close_instance() { record close; }
procd_add_reload_trigger() { record trigger "$@"; }
procd_add_reload_interface_trigger() { record interface_trigger "$@"; }
name="$(basename "$initscript")"
enable() { mkdir -p /etc/rc.d; ln -sf "../init.d/$name" "/etc/rc.d/S$START$name"; ln -sf "../init.d/$name" "/etc/rc.d/K$STOP$name"; }
disable() { rm -f /etc/rc.d/S??"$name" /etc/rc.d/K??"$name"; }
enabled() { [ -e "/etc/rc.d/S$START$name" ]; }
. "$initscript"
[ "$USE_PROCD" = 1 ] || exit 9
start() { rm -f /tmp/procd.new; start_service; service_triggers; mv /tmp/procd.new /tmp/procd.set; }
reload() { start; }
stop() { rm -f /tmp/procd.set; : > /tmp/procd.stop; while [ -e /tmp/procd.stop ]; do usleep 20000; done; service_stopped; }
"$action"
"""

# Programs of this machine that lead packets into a queue; the second where its kernel has no nft_queue.
