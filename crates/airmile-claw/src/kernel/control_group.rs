//! Whose connections are meant: those of a control group.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use airmile_host::Attempt;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::error::Result;

/// An open control group of version 2.
#[derive(Debug)]
pub struct ControlGroup {
    pub(super) file: File,
    /// It is that of all: of its connections those of our network namespace are meant.
    pub(super) is_root: bool,
}

impl ControlGroup {
    /// Opens the one at a path, or that of all. `ip netns exec` hides where that is mounted,
    /// and some machines mount version 1 alone: then it is mounted for as long as it is
    /// opened, which needs CAP_SYS_ADMIN.
    ///
    /// # Errors
    /// There is none, or the system does not let us.
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
