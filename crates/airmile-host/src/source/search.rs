//! Which port of this machine may be a modem's DIAG port.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Drivers of a modem's serial ports (Linux, `drivers/usb/serial`). Only their ports are tried:
/// opening another device's port may reset it.
const SERIAL_DRIVERS: [&str; 3] = ["option1", "qcserial", "qcaux"];

/// What is searched for, for the user.
pub(super) const SEARCHED: &str =
    "/dev/wwan*qcdm*, /dev/mhi_DIAG, and /dev/ttyUSB* of the drivers option, qcserial and qcaux";

/// The paths under the root of a file system that may be DIAG ports: the kernel names some so,
/// which come first; any serial port of a modem may be one.
pub(super) fn candidates(root: &Path) -> Vec<PathBuf> {
    let mut named = Vec::new();
    let mut serial = Vec::new();
    for entry in fs::read_dir(root.join("dev")).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(text) = name.to_str() else { continue };
        if (text.starts_with("wwan") && text.contains("qcdm")) || text == "mhi_DIAG" {
            named.push(entry.path());
        } else if text.starts_with("ttyUSB") && is_of_modem(root, &name) {
            serial.push(entry.path());
        }
    }
    named.sort();
    // ttyUSB2 before ttyUSB10.
    serial.sort_by_key(|path: &PathBuf| (path.as_os_str().len(), path.clone()));
    named.extend(serial);
    named
}

fn is_of_modem(root: &Path, port: &OsStr) -> bool {
    let driver = root.join("sys/class/tty").join(port).join("device/driver");
    let driver = fs::read_link(driver).ok();
    let name = driver.as_deref().and_then(Path::file_name).and_then(OsStr::to_str);
    name.is_some_and(|name| SERIAL_DRIVERS.contains(&name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn ports_of_modems_alone_are_candidates() {
        let root = tempfile::tempdir().unwrap();
        let dev = root.path().join("dev");
        fs::create_dir_all(&dev).unwrap();
        let names =
            ["ttyUSB10", "ttyUSB2", "ttyUSB0", "ttyS0", "wwan0at0", "wwan0qcdm0", "mhi_DIAG"];
        names.iter().for_each(|name| fs::write(dev.join(name), "").unwrap());
        for (name, driver) in
            [("ttyUSB2", "option1"), ("ttyUSB10", "option1"), ("ttyUSB0", "ch341")]
        {
            let device = root.path().join("sys/class/tty").join(name).join("device");
            fs::create_dir_all(&device).unwrap();
            symlink(Path::new("/sys/bus/usb-serial/drivers").join(driver), device.join("driver"))
                .unwrap();
        }
        let found = candidates(root.path());
        let found: Vec<_> = found.iter().map(|path| path.file_name().unwrap()).collect();
        assert_eq!(found, ["mhi_DIAG", "wwan0qcdm0", "ttyUSB2", "ttyUSB10"]);
        assert!(candidates(&dev).is_empty());
    }
}
