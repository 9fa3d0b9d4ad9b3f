//! Files that may be served, files that must stay secret, and files that are replaced at once.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// The well-known locations of a site (RFC 8615), the only name with a leading dot that is served.
const WELL_KNOWN: &str = ".well-known";

/// The file of a site named by a URL's path; an index for a directory. Never outside of
/// the site's canonical directory, not even by links; never a file or directory whose
/// name begins with a dot.
#[must_use]
pub fn site_file(dir: &Path, path: &str) -> Option<PathBuf> {
    let relative = PathBuf::from(unescape(path)?.trim_start_matches('/').to_owned());
    if !is_served(&relative) {
        return None;
    }
    let mut file = dir.join(relative).canonicalize().ok()?;
    if file.is_dir() {
        file = file.join("index.html").canonicalize().ok()?;
    }
    // A link may lead outside, or to a hidden file.
    let inside = file.strip_prefix(dir).ok()?;
    (is_served(inside) && file.is_file()).then_some(file)
}

/// Opens the file of [`site_file`]. Whoever may write in the site may meanwhile have replaced it,
/// or a directory above it, by a link, which is not followed here (on Linux from 5.6 on).
#[must_use]
pub fn open_site_file(dir: &Path, path: &str) -> Option<(PathBuf, fs::File)> {
    let file = site_file(dir, path)?;
    let opened = open_beneath(dir, &file)?;
    // Not a pipe that has taken its place.
    opened.metadata().ok()?.is_file().then_some((file, opened))
}

#[cfg(target_os = "linux")]
fn open_beneath(dir: &Path, file: &Path) -> Option<fs::File> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
    use rustix::io::Errno;
    let inside = file.strip_prefix(dir).ok()?;
    // As a path: the directory may be one that can be searched, not listed.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = open(dir, flags, Mode::empty()).ok()?;
    // A pipe would wait for who writes to it.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(&root, inside, flags, Mode::empty(), resolve) {
        // Older kernels do not have the call, filters of older containers refuse it.
        Err(Errno::NOSYS | Errno::PERM) => fs::File::open(file).ok(),
        opened => Some(opened.ok()?.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(_: &Path, file: &Path) -> Option<fs::File> {
    fs::File::open(file).ok()
}

fn is_served(relative: &Path) -> bool {
    relative.components().all(|part| match part {
        Component::Normal(name) => name == WELL_KNOWN || !name.as_encoded_bytes().starts_with(b"."),
        _ => false,
    })
}

/// A path without its escapes (RFC 3986, 2.1).
fn unescape(path: &str) -> Option<String> {
    let mut out = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? << 4 | digit()?).ok()?
            }
            other => other,
        };
        out.push(byte);
    }
    String::from_utf8(out).ok().filter(|path| !path.contains('\0'))
}

/// The text of a file that holds a secret, trimmed.
///
/// # Errors
/// It cannot be read, is no text, or is readable by others than its user and group.
pub fn read_secret(path: &Path) -> io::Result<String> {
    let mode = fs::metadata(path)?.permissions().mode();
    let text = fs::read_to_string(path)?;
    // Pipes (`<(pass show ...)`) have no file with that mode.
    if mode & 0o004 != 0 && fs::metadata(path)?.is_file() {
        let what = format!("everyone can read it: chmod 600 {}", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    Ok(text.trim().to_owned())
}

/// The temporary name of a file that this process replaces: hidden, in the same directory, with
/// the process id.
#[must_use]
pub fn part_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

/// Replaces a file at once by a new one with this mode, which `write` fills.
///
/// # Errors
/// It cannot be written; the former file is unchanged.
pub fn replace(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut fs::File) -> io::Result<()>,
) -> io::Result<()> {
    let part = part_of(path);
    // Left by a former process with the same id.
    let _ = fs::remove_file(&part);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&part)?;
    let done = write(&mut file).and_then(|()| fs::rename(&part, path));
    if done.is_err() {
        let _ = fs::remove_file(&part);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacing_touches_no_other_file() {
        use std::io::Write;
        let dir = tempfile::tempdir().unwrap();
        let [a, b, new] = ["x.a", "x.b", "x.new"].map(|name| dir.path().join(name));
        fs::write(&new, "another program's").unwrap();
        let names = || {
            let entries = fs::read_dir(dir.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        replace(&a, 0o600, |first| {
            first.write_all(b"a")?;
            // At the same time.
            replace(&b, 0o644, |second| second.write_all(b"b"))
        })
        .unwrap();
        for (path, content) in [(&a, "a"), (&b, "b"), (&new, "another program's")] {
            assert_eq!(fs::read_to_string(path).unwrap(), content);
        }
        assert_eq!(fs::metadata(&a).unwrap().permissions().mode() & 0o777, 0o600);
        replace(&a, 0o600, |_| Err(io::ErrorKind::StorageFull.into())).unwrap_err();
        replace(dir.path(), 0o600, |_| Ok(())).unwrap_err();
        assert_eq!(fs::read_to_string(&a).unwrap(), "a");
        assert_eq!(names(), ["x.a", "x.b", "x.new"]);
        assert!(!part_of(dir.path()).exists());
        // What is written is a file of its own until it is complete.
        replace(&new, 0o600, |_| {
            assert_eq!(fs::read_to_string(&new).unwrap(), "another program's");
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn nothing_outside_of_the_directory() {
        let outer = tempfile::tempdir().unwrap();
        let dir = outer.path().join("site");
        std::fs::create_dir_all(dir.join("a b")).unwrap();
        std::fs::write(outer.path().join("secret"), "x").unwrap();
        std::fs::write(dir.join("index.html"), "x").unwrap();
        std::fs::write(dir.join("a b/c.png"), "x").unwrap();
        std::os::unix::fs::symlink(outer.path().join("secret"), dir.join("link")).unwrap();
        let dir = dir.canonicalize().unwrap();
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(site_file(&dir, path), expected.map(|name| dir.join(name)), "{path}");
        };
        check("/", Some("index.html"));
        check("/a%20b/c.png", Some("a b/c.png"));
        for outside in [
            "/../secret",
            "/%2e%2e/secret",
            "/a b/../../secret",
            "/link",
            "/a b",
            "/%",
            "/%00",
            "/none",
        ] {
            check(outside, None);
        }
    }

    /// A file, and a directory above one, are swapped for links to the outside all the time.
    #[cfg(target_os = "linux")]
    #[test]
    fn links_that_appear_before_a_file_is_opened_are_not_followed() {
        use std::io::Read;
        use std::os::unix::fs::symlink;
        use std::sync::atomic::{AtomicBool, Ordering};
        let outer = tempfile::tempdir().unwrap();
        let outer = outer.path().canonicalize().unwrap();
        let (dir, secrets) = (outer.join("site"), outer.join("secrets"));
        for (place, content) in [(&dir, "served"), (&dir.join("b"), "served"), (&secrets, "secret")]
        {
            fs::create_dir_all(place).unwrap();
            fs::write(place.join("a"), content).unwrap();
        }
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let next = outer.join("next");
                while !is_over.load(Ordering::Relaxed) {
                    symlink(secrets.join("a"), &next).unwrap();
                    fs::rename(&next, dir.join("a")).unwrap();
                    fs::write(&next, "served").unwrap();
                    fs::rename(&next, dir.join("a")).unwrap();
                    fs::rename(dir.join("b"), outer.join("other")).unwrap();
                    symlink(&secrets, dir.join("b")).unwrap();
                    fs::remove_file(dir.join("b")).unwrap();
                    fs::rename(outer.join("other"), dir.join("b")).unwrap();
                }
            });
            let mut served = 0;
            for n in 0..20_000 {
                let Some((_, mut file)) = open_site_file(&dir, ["/a", "/b/a"][n % 2]) else {
                    continue;
                };
                let mut text = String::new();
                file.read_to_string(&mut text).unwrap();
                if text == "secret" {
                    is_over.store(true, Ordering::Relaxed);
                    panic!("a file outside of the site, after {n}");
                }
                served += 1;
            }
            is_over.store(true, Ordering::Relaxed);
            assert!(served > 0);
        });
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_directory_that_cannot_be_listed_is_served() {
        use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().canonicalize().unwrap();
        fs::write(dir.join("a"), "x").unwrap();
        let set = |mode| fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
        set(0o300);
        // Root would be able to list it; what it gives up ends with the thread.
        let (opened, listed) = std::thread::scope(|scope| {
            let without_rights = scope.spawn(|| {
                let none = CapabilitySet::empty();
                let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
                set_capabilities(None, sets).unwrap();
                (open_site_file(&dir, "/a"), fs::read_dir(&dir).is_ok())
            });
            without_rights.join().unwrap()
        });
        set(0o700);
        assert!(!listed);
        assert!(opened.is_some());
    }

    #[test]
    fn files_with_a_dot_are_not_served() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        for name in [".git", "a", ".well-known"] {
            std::fs::create_dir_all(dir.join(name)).unwrap();
        }
        for name in [".env", ".git/config", "a/.htpasswd", ".well-known/x"] {
            std::fs::write(dir.join(name), "x").unwrap();
        }
        std::os::unix::fs::symlink(dir.join(".env"), dir.join("link")).unwrap();
        for hidden in ["/.env", "/.git/config", "/a/.htpasswd", "/%2eenv", "/link"] {
            assert_eq!(site_file(&dir, hidden), None, "{hidden}");
        }
        let served = site_file(&dir, "/.well-known/x");
        assert_eq!(served, Some(dir.join(".well-known/x")));
    }

    #[test]
    fn secrets_that_everybody_can_read_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, " abc\n").unwrap();
        let set = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        set(0o644);
        let refused = read_secret(&path).unwrap_err().to_string();
        assert!(refused.contains("chmod 600"), "{refused}");
        set(0o640);
        assert_eq!(read_secret(&path).unwrap(), "abc");
    }
}
