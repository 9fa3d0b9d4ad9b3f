//! The file of an instance's system changes, written before each change, so that a later
//! process can undo all of them, however the instance ended.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use airmile_host::{Attempt, files};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::netlink::traffic::{self, Root};
use crate::netlink::{Netlink, route};

/// Default directory of these files (file-hierarchy(7)).
const PLACE: &str = "/run/airmile";

/// The same where there is no `/run` (OpenWrt): in memory, too.
const OTHER_PLACE: &str = "/var/run/airmile";

/// A change of the system, with the information to undo it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub(crate) enum SystemChange {
    /// A command that undoes the change; another one repeats it.
    Command {
        words: Vec<String>,
        #[serde(default)]
        again: Option<CommandInput>,
    },
    /// Our HTB at the root of an interface's queueing; the former discipline.
    Qdisc { index: u32, kind: String, handle: u32, options: Vec<u8> },
    /// A routing rule.
    Rule { family: u8, priority: u32, mark: u32, table: u32 },
    /// Routes of a table.
    Routes { family: u8, table: u32 },
    /// A kernel setting; its former value.
    Setting { path: String, value: String },
    /// A file that is replaced again and again.
    File { path: PathBuf },
}

/// A command and its input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandInput {
    pub(crate) words: Vec<String>,
    pub(crate) input: String,
}

impl CommandInput {
    /// Runs the command; an error is the first line that it prints about it.
    pub(crate) fn run(&self) -> io::Result<()> {
        let (program, arguments) =
            self.words.split_first().ok_or_else(|| io::Error::other("no command"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // A command that ended early explains why in its output, read below.
            let _ = input.write_all(self.input.as_bytes());
        }
        let done = child.wait_with_output()?;
        if done.status.success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&done.stderr);
        let first = words.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
        Err(io::Error::other(first.trim().to_owned()))
    }
}

impl SystemChange {
    /// Removes what holds packets back while the instance hangs: the redirection of
    /// packets, and the rate of the kernel's queueing, which would be frozen at that
    /// moment. Returns whether it existed and can be recreated.
    fn suspend(&self) -> io::Result<bool> {
        match self {
            Self::Command { again: Some(_), .. } | Self::Rule { .. } => self.undo(),
            // An instance that recovers sets the rate by itself.
            Self::Qdisc { index, .. } => {
                traffic::open_rate(&mut Netlink::route()?, *index).map(|_| false)
            }
            Self::Command { again: None, .. }
            | Self::Routes { .. }
            | Self::Setting { .. }
            | Self::File { .. } => Ok(false),
        }
    }

    /// Repeats the change.
    fn redo(&self) -> io::Result<()> {
        match self {
            Self::Command { again: Some(again), .. } => again.run(),
            Self::Rule { family, priority, mark, table } => {
                route::add_rule(&mut Netlink::route()?, (*family, *priority), *mark, *table)
            }
            _ => Ok(()),
        }
    }

    /// Undoes the change; one that is already undone is no error. Returns whether it
    /// existed.
    fn undo(&self) -> io::Result<bool> {
        match self {
            Self::Command { words, .. } => undo_by(words),
            Self::Qdisc { index, kind, handle, options } => {
                let (kind, options) = (kind.clone(), options.clone());
                let former = Root { kind, handle: *handle, options };
                match traffic::put_back(&mut Netlink::route()?, *index, Some(&former)) {
                    // The interface has gone, and its queueing with it.
                    Err(e) if e.raw_os_error() == Some(nix::errno::Errno::ENODEV as i32) => {
                        Ok(false)
                    }
                    result => result.map(|_| true),
                }
            }
            Self::Rule { family, priority, mark, table } => {
                route::delete_rule(&mut Netlink::route()?, (*family, *priority), *mark, *table)
            }
            Self::Routes { family, table } => {
                route::empty(&mut Netlink::route()?, *family, *table).map(|()| true)
            }
            Self::Setting { path, value } => match fs::write(path, value) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
                result => result.map(|()| true),
            },
            Self::File { path } => match fs::remove_file(path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
                result => result.map(|()| true),
            },
        }
    }
}

/// Runs a command that deletes something. A missing object shows only in its message, so
/// the message of a failed command is checked. Returns whether the object existed.
fn undo_by(words: &[String]) -> io::Result<bool> {
    let Some((program, arguments)) = words.split_first() else { return Ok(false) };
    let done = match Command::new(program).args(arguments).output() {
        // A program that is not installed has added nothing.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        done => done?,
    };
    let message = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    let was_gone = ["No such file", "does a matching rule exist", "Bad rule", "No chain"];
    if done.status.success() {
        return Ok(true);
    }
    if was_gone.iter().any(|words| message.contains(words)) {
        return Ok(false);
    }
    Err(io::Error::other(format!("{}: {message}", words.join(" "))))
}

/// A running instance, or one that ended without restoring the system.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Instance {
    /// The interface whose queue is kept short.
    pub interface: String,
    /// The kind of deployment.
    pub deploy: String,
    /// Its process ID.
    pub pid: u32,
    /// Address of its metrics.
    pub metrics: Option<SocketAddr>,
    /// The changes that it has made.
    pub(crate) steps: Vec<SystemChange>,
}

/// Instances of this network namespace that have a file.
///
/// # Errors
/// Files cannot be read.
pub fn instances() -> Result<Vec<Instance>> {
    let suffix = format!("-{}.json", namespace()?);
    let mut found = Vec::new();
    for place in places() {
        // Owned by the user or by root: only they can be trusted about an instance.
        if !is_kept_by(&place, &[own(), 0]) {
            continue;
        }
        let Ok(entries) = fs::read_dir(&place) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("qcut-") && name.ends_with(&suffix) {
                found.extend(read(&entry.path())?);
            }
        }
    }
    Ok(found)
}

fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Directories that may contain instances' files.
fn places() -> Vec<PathBuf> {
    let by_service = std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from);
    let temporary = std::env::temp_dir().join(format!("airmile-{}", own()));
    let place = if Path::new("/run").is_dir() { PLACE } else { OTHER_PLACE };
    let mut all: Vec<PathBuf> = by_service.into_iter().chain([place.into(), temporary]).collect();
    all.dedup();
    all
}

/// Whether it is a directory of one of these users that no other user can write to.
fn is_kept_by(place: &Path, users: &[u32]) -> bool {
    fs::symlink_metadata(place).is_ok_and(|there| {
        there.is_dir() && users.contains(&there.uid()) && there.mode() & 0o022 == 0
    })
}

fn read(path: &Path) -> Result<Option<Instance>> {
    let text = match fs::read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.attempt(|| format!("cannot read {}", path.display()))?,
    };
    let parsed = serde_json::from_slice(&text).map_err(io::Error::other);
    Ok(Some(parsed.attempt(|| format!("{} is damaged; remove it", path.display()))?))
}

/// The directory of instances' files. It must belong to the user alone: whoever can write
/// there could have commands run.
fn place() -> Result<PathBuf> {
    let mut last = String::new();
    for place in places() {
        match fs::DirBuilder::new().recursive(true).mode(0o755).create(&place) {
            Ok(()) => {}
            Err(error) => {
                last = format!("{}: {error}", place.display());
                continue;
            }
        }
        if is_kept_by(&place, &[own()]) {
            return Ok(place);
        }
        last = format!("{}: is not this user's own directory", place.display());
    }
    Err(Error::Unfit(format!("there is no directory for the state of an instance: {last}")))
}

/// The network namespace: the same interface name may exist in several.
fn namespace() -> Result<u64> {
    let found = fs::metadata("/proc/thread-self/ns/net");
    Ok(found.map(|of| of.ino()).attempt(|| "cannot read /proc/thread-self/ns/net".to_owned())?)
}

/// The file of an interface's instance.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    pub(crate) instance: Instance,
}

fn path_of(interface: &str) -> Result<PathBuf> {
    Ok(place()?.join(format!("qcut-{interface}-{}.json", namespace()?)))
}

impl StateFile {
    /// Creates and writes a new file.
    pub(crate) fn create(interface: &str, deploy: &str) -> Result<Self> {
        let instance = Instance {
            interface: interface.to_owned(),
            deploy: deploy.to_owned(),
            pid: std::process::id(),
            metrics: None,
            steps: Vec::new(),
        };
        let file = Self { path: path_of(interface)?, instance };
        file.write()?;
        Ok(file)
    }

    /// One in a directory of a test.
    #[cfg(test)]
    pub(crate) fn of_test(dir: &Path, steps: Vec<SystemChange>) -> Self {
        let instance = Instance {
            interface: "none0".to_owned(),
            deploy: "nfqueue".to_owned(),
            pid: 1,
            metrics: None,
            steps,
        };
        Self { path: dir.join("state.json"), instance }
    }

    /// Opens an existing file.
    pub(crate) fn open(interface: &str) -> Result<Option<Self>> {
        let path = path_of(interface)?;
        Ok(read(&path)?.map(|instance| Self { path, instance }))
    }

    /// Records a change before it is made.
    pub(crate) fn add(&mut self, step: SystemChange) -> Result<()> {
        self.instance.steps.push(step);
        self.write()
    }

    /// Forgets the last change that was recorded: it could not be made.
    pub(crate) fn forget_last(&mut self) -> Result<()> {
        self.instance.steps.pop();
        self.write()
    }

    /// Records the address of the instance's metrics.
    pub(crate) fn set_metrics(&mut self, address: SocketAddr) -> Result<()> {
        self.instance.metrics = Some(address);
        self.write()
    }

    fn write(&self) -> Result<()> {
        let written = files::replace(&self.path, 0o644, |file| {
            file.write_all(&serde_json::to_vec_pretty(&self.instance)?)?;
            file.sync_all()
        });
        Ok(written.attempt(|| format!("cannot write {}", self.path.display()))?)
    }

    /// Removes what holds packets back while the instance hangs, in reverse order. The file
    /// is unchanged: undoing a change twice is no error. What is suspended `already` stays so.
    pub(crate) fn suspend(&self, already: &Suspended) -> Suspended {
        let mut suspended = Suspended::default();
        for step in self.instance.steps.iter().rev() {
            let existed = step.suspend().unwrap_or_else(|error| {
                suspended.failed.push(format!("{step:?}: {error}"));
                false
            });
            if existed || already.steps.contains(step) {
                suspended.steps.insert(0, step.clone());
            }
        }
        suspended
    }

    /// Undoes the changes in reverse order; returns those that failed, which stay in the
    /// file.
    pub(crate) fn undo(mut self) -> Vec<String> {
        let mut left = Vec::new();
        let mut failed = Vec::new();
        while let Some(step) = self.instance.steps.pop() {
            if let Err(error) = step.undo() {
                failed.push(format!("{step:?}: {error}"));
                left.insert(0, step);
            }
        }
        self.instance.steps = left;
        if failed.is_empty() {
            if let Err(error) = fs::remove_file(&self.path) {
                failed.push(format!("{}: {error}", self.path.display()));
            }
        } else if let Err(error) = self.write() {
            failed.push(error.to_string());
        }
        failed
    }
}

/// Changes that were suspended while an instance hangs.
#[derive(Debug, Default)]
pub(crate) struct Suspended {
    steps: Vec<SystemChange>,
    /// Changes that could not be suspended, or repeated.
    pub(crate) failed: Vec<String>,
}

impl Suspended {
    /// Repeats the changes, as the instance responds again; those that fail stay suspended.
    /// Returns whether they do so for another reason than before.
    pub(crate) fn resume(&mut self) -> bool {
        let mut failed = Vec::new();
        self.steps.retain(|step| {
            let error = step.redo().err();
            failed.extend(error.iter().map(|error| format!("{step:?}: {error}")));
            error.is_some()
        });
        let is_new = failed != self.failed;
        self.failed = failed;
        is_new
    }

    /// Whether nothing is suspended any more.
    pub(crate) fn is_over(&self) -> bool {
        self.steps.is_empty()
    }
}

/// Lock held by the guard of an interface's instance. It ends with its process.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock; `None`: another process has it.
    pub(crate) fn take(interface: &str) -> Result<Option<Self>> {
        let path = path_of(interface)?.with_extension("lock");
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.attempt(|| format!("cannot open {}", path.display()))?;
        // Whoever can read it can lock it; older versions let everybody.
        file.set_permissions(Permissions::from_mode(0o600))
            .attempt(|| format!("cannot change the mode of {}", path.display()))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error).attempt(|| format!("cannot lock {}", path.display()))?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_holds_packets_is_taken_away_and_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let rule = |name: &str, again: bool| SystemChange::Command {
            words: words(&["rm", &path(name)]),
            again: again.then(|| CommandInput {
                words: words(&["cp", "/dev/stdin", &path(name)]),
                input: name.to_owned(),
            }),
        };
        let steps = vec![rule("queue", true), rule("classes", false), rule("absent", true)];
        for name in ["queue", "classes"] {
            fs::write(path(name), name).unwrap();
        }
        let file = StateFile::of_test(dir.path(), steps);
        let there = |name: &str| Path::new(&path(name)).exists();
        let mut suspended = file.suspend(&Suspended::default());
        assert_eq!(suspended.failed, [""; 0]);
        assert_eq!([there("queue"), there("classes")], [false, true]);
        suspended.resume();
        assert!(suspended.is_over() && suspended.failed.is_empty());
        assert_eq!(fs::read_to_string(path("queue")).unwrap(), "queue");
        // A missing object is not created.
        assert!(!there("absent"));
        // Old files have no second command.
        let old = r#"{"change":"command","words":["nft"]}"#;
        let step = SystemChange::Command { words: words(&["nft"]), again: None };
        assert_eq!(serde_json::from_str::<SystemChange>(old).unwrap(), step);
    }

    #[test]
    fn what_cannot_be_repeated_stays_suspended() {
        let dir = tempfile::tempdir().unwrap();
        let [rule, target] = ["rule", "missing/rule"].map(|name| dir.path().join(name));
        let words = |words: [&str; 2], path: &Path| {
            let path = path.display().to_string();
            words.iter().map(|word| (*word).to_owned()).chain([path]).collect()
        };
        let change = |made: &Path, repeated: &Path| SystemChange::Command {
            words: words(["rm", "--"], made),
            again: Some(CommandInput {
                words: words(["cp", "/dev/stdin"], repeated),
                input: String::new(),
            }),
        };
        let steps = vec![change(&rule, &target), change(&target, &target)];
        let file = StateFile::of_test(dir.path(), steps);
        fs::write(&rule, "").unwrap();
        let mut suspended = file.suspend(&Suspended::default());
        assert!(!rule.exists());
        // The reason is new once, and the change is not forgotten.
        assert_eq!([suspended.resume(), suspended.resume()], [true, false]);
        assert!(!suspended.is_over());
        // Nor is it when the instance hangs again.
        let mut suspended = file.suspend(&suspended);
        fs::create_dir(dir.path().join("missing")).unwrap();
        suspended.resume();
        assert!(suspended.is_over() && suspended.failed.is_empty());
        assert!(target.exists());
    }

    #[test]
    fn what_cannot_be_undone_stays() {
        let dir = tempfile::tempdir().unwrap();
        let setting = dir.path().join("rp_filter");
        fs::write(&setting, "2").unwrap();
        let path = dir.path().join("state.json");
        let step = |path: &Path| SystemChange::Setting {
            path: path.display().to_string(),
            value: "1".to_owned(),
        };
        let never = SystemChange::Command { words: vec!["false".to_owned()], again: None };
        let instance = Instance {
            interface: "none0".to_owned(),
            deploy: "tun".to_owned(),
            pid: 1,
            metrics: None,
            steps: vec![step(&setting), step(&dir.path().join("gone/x")), never.clone()],
        };
        let file = StateFile { path: path.clone(), instance };
        file.write().unwrap();
        assert_eq!(file.undo().len(), 1);
        assert_eq!(fs::read_to_string(&setting).unwrap(), "1");
        let mut left = read(&path).unwrap().unwrap();
        assert_eq!(left.steps, [never]);
        left.steps.clear();
        assert!(StateFile { path: path.clone(), instance: left }.undo().is_empty());
        assert!(!path.exists());
    }
}
