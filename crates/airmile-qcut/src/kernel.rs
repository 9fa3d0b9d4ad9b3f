//! What the running kernel and its host have: modules, programs, packages by name.

use std::fs;
use std::path::{Path, PathBuf};

/// Something that a deployment needs: a kernel module or a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    /// The module or the program.
    pub(crate) name: &'static str,
    pub(crate) is_module: bool,
    /// Its package on OpenWrt and on Debian; no package there: part of the kernel's.
    openwrt: &'static str,
    debian: Option<&'static str>,
}

const fn module(name: &'static str, openwrt: &'static str) -> Need {
    Need { name, is_module: true, openwrt, debian: None }
}

pub(crate) const NFNETLINK_QUEUE: Need = module("nfnetlink_queue", "kmod-nfnetlink-queue");
pub(crate) const NFT_QUEUE: Need = module("nft_queue", "kmod-nft-queue");
pub(crate) const NF_TABLES: Need = module("nf_tables", "kmod-nft-core");
pub(crate) const XT_NFQUEUE: Need = module("xt_NFQUEUE", "kmod-ipt-nfqueue");
pub(crate) const SCH_HTB: Need = module("sch_htb", "kmod-sched-core");
pub(crate) const SCH_FQ_CODEL: Need = module("sch_fq_codel", "kmod-sched");
pub(crate) const SCH_CAKE: Need = module("sch_cake", "kmod-sched-cake");
pub(crate) const TUN: Need = module("tun", "kmod-tun");
pub(crate) const OPTION: Need = module("option", "kmod-usb-serial-option");
pub(crate) const NFT: Need =
    Need { name: "nft", is_module: false, openwrt: "nftables", debian: Some("nftables") };
pub(crate) const UBUS: Need =
    Need { name: "ubus", is_module: false, openwrt: "ubus", debian: None };

/// How packages are installed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packages {
    /// OpenWrt's since 25.12.
    Apk,
    /// OpenWrt's before.
    Opkg,
    Apt,
    Unknown,
}

/// The host, as far as packages and modules show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) packages: Packages,
    /// The directory of the kernel's modules.
    modules: PathBuf,
    loaded: PathBuf,
}

impl Host {
    /// This one.
    pub(crate) fn here() -> Self {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let packages = match Path::new("/etc/openwrt_release").exists() {
            true if find_program("apk").is_some() => Packages::Apk,
            true => Packages::Opkg,
            false if find_program("apt").is_some() => Packages::Apt,
            false => Packages::Unknown,
        };
        let modules = Path::new("/lib/modules").join(release.trim());
        Self { packages, modules, loaded: "/sys/module".into() }
    }

    /// Whether a module is loaded, part of the kernel, or on disk, by its name alone.
    pub(crate) fn has_module(&self, name: &str) -> bool {
        let plain = |text: &str| text.replace('-', "_");
        let is_it = |line: &str| {
            let path = line.split(':').next().unwrap_or_default();
            let file = Path::new(path).file_name().map(|file| file.to_string_lossy().into_owned());
            let file = file.unwrap_or_default();
            plain(file.split(".ko").next().unwrap_or_default()) == plain(name)
        };
        let is_listed = |list: &str| {
            let text = fs::read_to_string(self.modules.join(list)).unwrap_or_default();
            text.lines().any(is_it)
        };
        self.loaded.join(plain(name)).exists()
            || is_listed("modules.builtin")
            || is_listed("modules.dep")
            // OpenWrt has no lists: all modules are in one directory.
            || fs::read_dir(&self.modules).is_ok_and(|entries| {
                entries.flatten().any(|entry| {
                    let name = entry.file_name().to_string_lossy().into_owned();
                    name.ends_with(".ko") && is_it(&name)
                })
            })
    }

    /// What to do about a missing part.
    pub(crate) fn remedy(&self, need: Need) -> String {
        let Need { name, openwrt, .. } = need;
        match (self.packages, need.debian) {
            (Packages::Apk, _) => format!("{openwrt} (apk add {openwrt})"),
            (Packages::Opkg, _) => format!("{openwrt} (opkg install {openwrt})"),
            (Packages::Apt, Some(package)) => format!("{name} (apt install {package})"),
            _ if need.is_module && self.has_module(name) => {
                format!("{name} (modprobe {name}; in a container, on its host)")
            }
            _ if need.is_module => {
                format!("{name}: this kernel has no such module (OpenWrt: {openwrt})")
            }
            _ => format!("{name}: no such program (OpenWrt: {openwrt})"),
        }
    }
}

/// A program of the path.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(packages: Packages, dir: &Path) -> Host {
        Host { packages, modules: dir.join("lib"), loaded: dir.join("sys") }
    }

    #[test]
    fn modules_are_found_wherever_they_are() {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["lib", "sys/nf_tables"] {
            fs::create_dir_all(dir.path().join(sub)).unwrap();
        }
        fs::write(dir.path().join("lib/modules.builtin"), "kernel/net/sched/sch_htb.ko\n").unwrap();
        let dep = "kernel/net/netfilter/nft-queue.ko.xz: kernel/x/nf_tables.ko.xz\n";
        fs::write(dir.path().join("lib/modules.dep"), dep).unwrap();
        fs::write(dir.path().join("lib/sch_cake.ko"), "").unwrap();
        let host = host(Packages::Unknown, dir.path());
        for name in ["sch_htb", "nft_queue", "nf_tables", "sch_cake"] {
            assert!(host.has_module(name), "{name}");
        }
        for name in ["tun", "sch_", "x"] {
            assert!(!host.has_module(name), "{name}");
        }
    }

    #[test]
    fn what_is_missing_has_the_name_of_its_package() {
        let dir = tempfile::tempdir().unwrap();
        let remedy = |packages, need| host(packages, dir.path()).remedy(need);
        assert_eq!(remedy(Packages::Apk, NFT_QUEUE), "kmod-nft-queue (apk add kmod-nft-queue)");
        assert_eq!(
            remedy(Packages::Opkg, SCH_CAKE),
            "kmod-sched-cake (opkg install kmod-sched-cake)"
        );
        assert_eq!(remedy(Packages::Apt, NFT), "nft (apt install nftables)");
        let unknown = remedy(Packages::Apt, NFT_QUEUE);
        assert_eq!(unknown, "nft_queue: this kernel has no such module (OpenWrt: kmod-nft-queue)");
        fs::create_dir_all(dir.path().join("sys/tun")).unwrap();
        let loadable = remedy(Packages::Apt, TUN);
        assert_eq!(loadable, "tun (modprobe tun; in a container, on its host)");
    }
}
