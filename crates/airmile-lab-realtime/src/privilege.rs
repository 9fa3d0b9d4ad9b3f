//! The privilege to create namespaces: as root, or in a user namespace.

use std::fs;
use std::io;

use airmile_host::{Attempt, SystemError};
use nix::sched::{CloneFlags, unshare};
use rustix::thread::{CapabilitySet, capabilities};

use crate::error::{Error, Result};

const DEVICE: &str = "/dev/net/tun";

const NO_USER_NAMESPACE: &str = "\
A run in real time needs root, or user namespaces. One of these helps:
  sudo sysctl user.max_user_namespaces=10000               where it is 0
  sudo sysctl kernel.unprivileged_userns_clone=1           Debian before 11
  sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0   Ubuntu 23.10 and later
  sudo airmile lab shell ...
In a container: --privileged, or --cap-add SYS_ADMIN --cap-add NET_ADMIN --device /dev/net/tun.
`airmile lab run` needs none of this: it runs in virtual time.";

const NO_DEVICE: &str = "\
A run in real time needs TUN devices:
  sudo modprobe tun                    where there is no /dev/net/tun
  sudo chmod 0666 /dev/net/tun         where it is there, and only root may open it
In a container: --device /dev/net/tun.";

/// Whether this process may create network namespaces.
fn is_able() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// Acquires the privilege to create namespaces, if necessary by a user namespace in which
/// the user keeps the same identity.
///
/// # Errors
/// The system refuses; the error describes what helps.
pub(crate) fn acquire() -> Result<()> {
    let opened = fs::OpenOptions::new().read(true).write(true).open(DEVICE);
    opened.refused(|| format!("cannot open {DEVICE}"), NO_DEVICE)?;
    if is_able() {
        return Ok(());
    }
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER)
        .map_err(|e| refused("cannot make a user namespace", e.into()))?;
    let write = |file: &str, text: String| {
        let path = format!("/proc/self/{file}");
        fs::write(&path, text).attempt(|| format!("cannot write {path}"))
    };
    // user_namespaces(7): required before writing a group map of one's own.
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{uid} {uid} 1"))?;
    Ok(write("gid_map", format!("{gid} {gid} 1"))?)
}

/// Error if the system refuses to create namespaces.
pub(crate) fn refused(attempt: &str, source: io::Error) -> Error {
    let remedy = Some(NO_USER_NAMESPACE);
    SystemError { attempt: attempt.to_owned(), source, remedy }.into()
}
