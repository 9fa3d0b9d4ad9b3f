//! Which file of the directory a path names.

use std::path::{Component, Path, PathBuf};

/// The file that a path names; nothing that is outside of the directory.
pub(super) fn file_of(dir: &Path, path: &str) -> Option<PathBuf> {
    let relative = PathBuf::from(unescape(path)?.trim_start_matches('/').to_owned());
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if !relative.components().all(is_plain) {
        return None;
    }
    let mut file = dir.join(relative).canonicalize().ok()?;
    if file.is_dir() {
        file = file.join("index.html").canonicalize().ok()?;
    }
    // A link may lead out.
    (file.starts_with(dir) && file.is_file()).then_some(file)
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

pub(super) fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("html" | "htm") => "text/html; charset=utf-8",
        Some("css") => "text/css",
        Some("js" | "mjs") => "text/javascript",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("webp") => "image/webp",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(file_of(&dir, path), expected.map(|name| dir.join(name)), "{path}");
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
}
