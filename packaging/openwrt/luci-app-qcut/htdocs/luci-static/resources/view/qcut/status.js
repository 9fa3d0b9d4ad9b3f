'use strict';
'require view';
'require fs';
'require poll';
'require uci';

/* Where the service has each uplink's status (airmile-qcut run --publish file:...). */
const STATUS = section => `/var/run/airmile/status-${section}.json`;

/* A status of another time is none. */
const STALE_S = 10;

const mbps = bps => bps == null ? '-' : `${(bps / 1e6).toFixed(2)} Mbit/s`;
const ms = value => value == null ? '-' : `${value.toFixed(0)} ms`;
const kb = bytes => bytes == null ? '-' : `${(bytes / 1e3).toFixed(1)} kB`;

function row(name, value) {
	return E('tr', { 'class': 'tr' }, [
		E('td', { 'class': 'td left', 'width': '33%' }, [ name ]),
		E('td', { 'class': 'td left' }, [ value ])
	]);
}

function table(header, rows) {
	return E('table', { 'class': 'table' }, [
		E('tr', { 'class': 'tr table-titles' }, header.map(name => E('th', { 'class': 'th' }, [ name ])))
	].concat(rows.map(cells =>
		E('tr', { 'class': 'tr' }, cells.map(cell => E('td', { 'class': 'td' }, [ String(cell) ]))))));
}

/* One uplink. */
function show(section, status) {
	if (!status)
		return E('div', { 'class': 'cbi-section' }, [
			E('h3', [ section ]),
			E('p', { 'class': 'alert-message notice' }, [ _('Not running. The log has the reason: logread -e qcut') ])
		]);
	const waiting = status.waiting || [];
	return E('div', { 'class': 'cbi-section' }, [
		E('h3', [ `${section}: ${status.interface}, ${status.deploy}` ]),
		E('div', (status.warnings || []).map(warning => E('p', { 'class': 'alert-message warning' }, [ warning ]))),
		E('table', { 'class': 'table' }, [
			row(_('Queue delay in the modem'), ms(status.is_known ? status.queue_delay_ms : null)),
			row(_('The modem holds'), `${kb(status.occupancy_bytes)} ${_('of')} ${kb(status.limit_bytes)}`),
			row(_('Rate granted'), mbps(status.rate_bps)),
			row(_('Known from'), status.evidence == 'modem' ? _('the modem\'s log') : _('round trips')),
			row(_('Last round trip behind the gate'), ms(status.rtt_f_ms))
		]),
		E('h4', [ _('Who waits') ]),
		waiting.length
			? table([ _('Packets to'), _('Packets'), _('Bytes') ],
				waiting.map(host => [ host.to, host.packets, kb(host.bytes) ]))
			: E('p', [ _('No packets wait here.') ]),
		table([ _('Class'), _('Waits'), _('Sent'), _('Dropped') ],
			(status.classes || []).map(c => [ c.class, kb(c.held_bytes), kb(c.sent_bytes), c.dropped_aqm + c.dropped_full ]))
	]);
}

/* What a status file says; null where it is none, or old. */
function parse(text, nowS) {
	try {
		const status = JSON.parse(text);
		return nowS - status.at_s <= STALE_S ? status : null;
	} catch (e) {
		return null;
	}
}

return view.extend({
	load: () => uci.load('qcut'),

	read: () => Promise.all(uci.sections('qcut', 'uplink').map(uplink => {
		const section = uplink['.name'];
		return fs.read(STATUS(section))
			.then(text => parse(text, Date.now() / 1e3), () => null)
			.then(status => show(section, status));
	})),

	render() {
		const content = E('div');
		const update = () => this.read().then(parts => content.replaceChildren(...parts));
		poll.add(update, 2);
		return update().then(() => E('div', [ E('h2', [ _('Uplink queue') ]), content ]));
	},

	handleSaveApply: null,
	handleSave: null,
	handleReset: null
});
