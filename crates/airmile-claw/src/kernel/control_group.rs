//! The control group whose connections are served.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use airmile_host::Attempt;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::error::Result;

/// An open version 2 control group.
#[derive(Debug)]
pub struct ControlGroup {
    pub(super) file: File,
    /// It is the root group: connections of our network namespace are served.
    pub(super) is_root: bool,
}

impl ControlGroup {
    /// Opens the group at a path, or the root group. `ip netns exec` hides its mount point,
    /// and some machines mount version 1 alone: then it is mounted temporarily, which needs
    /// CAP_SYS_ADMIN.
    ///
    /// # Errors
    /// The group does not exist, or the system refuses.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        Ok(match path {
            Some(path) => {
                let file = File::open(path).attempt(|| path.display().to_string())?;
                Self { file, is_root: false }
            }
            None => Self { file: open_root()?, is_root: true },
        })
    }
}

fn open_root() -> Result<File> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let of_line = |line: &str| {
        let mut words = line.split(' ');
        let (_, dir, kind) = (words.next()?, words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(dir))
    };
    let is_there = |dir: &PathBuf| dir.join("cgroup.procs").exists();
    if let Some(dir) = mounts.lines().filter_map(of_line).find(is_there) {
        return Ok(File::open(&dir).attempt(|| dir.display().to_string())?);
    }
    let what = || "cannot mount control groups of version 2".to_owned();
    let dir = tempfile::tempdir().attempt(what)?;
    mount(Some("none"), dir.path(), Some("cgroup2"), MsFlags::empty(), None::<&str>)
        .attempt(what)?;
    let root = File::open(dir.path());
    umount2(dir.path(), MntFlags::MNT_DETACH).attempt(what)?;
    Ok(root.attempt(what)?)
}
