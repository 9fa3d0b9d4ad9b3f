//! The common parts of pages: one file with its program, style and data, whose content policy
//! permits only these, by hash.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use airmile_io::run_files::is_run_file;
use airmile_io::zone::Zone;

/// What every page begins with.
pub(crate) const BEGINS: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n\
     <meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
     content=\"default-src 'none'; ";

/// A page's program and style, from `web/dist`.
pub(super) struct Page {
    pub(super) script: &'static str,
    pub(super) style: &'static str,
    /// `script-src` and `style-src` of the two, by their hashes.
    pub(super) policy: &'static str,
}

impl Page {
    /// Writes the head, and the text shown without scripts. The title is the file's name, or for a
    /// run of the lab its directory's.
    pub(super) fn begin(&self, out: &mut dyn Write, file: &str, says: &str) -> io::Result<()> {
        let title = escape(title_of(file));
        let (policy, style) = (self.policy.trim(), self.style);
        write!(
            out,
            "{BEGINS}{policy}; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title} - airmile</title>\n<style>{style}</style>\n</head>\n<body>\n\
             <main id=\"report\"></main>\n<noscript><p>{}</p></noscript>\n",
            escape(says)
        )
    }

    /// Writes the program, and ends the page.
    pub(super) fn end(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "<script>{}</script>\n</body>\n</html>\n", self.script)
    }
}

/// Bytes inside a script element: gzip, base64.
pub(super) fn write_packed(out: &mut dyn Write, id: &str, bytes: &[u8]) -> io::Result<()> {
    write!(out, "<script type=\"text/plain\" id=\"{id}\">")?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes)?;
    write_base64(out, &gzip.finish()?)?;
    out.write_all(b"</script>\n")
}

/// The time zone of a page, whose offsets are those between these times in microseconds since the
/// epoch, and a day after them.
pub(super) fn write_zone(
    out: &mut dyn Write,
    zone: Zone,
    times_us: impl Iterator<Item = i64> + Clone,
) -> io::Result<()> {
    const DAY_US: i64 = 86_400_000_000;
    let (first, last) = (times_us.clone().min().unwrap_or(0), times_us.max().unwrap_or(0));
    let offsets = zone.offsets(first, last.saturating_add(DAY_US));
    write_json(out, "airmile-zone", &json!({ "name": zone.name(), "offsets": offsets }))
}

/// JSON inside a script element: `<` occurs only in strings, where it is escaped so that nothing
/// ends the element.
pub(super) fn write_json(out: &mut dyn Write, id: &str, value: &Value) -> io::Result<()> {
    let text = serde_json::to_string(value)?.replace('<', "\\u003c");
    writeln!(out, "<script type=\"application/json\" id=\"{id}\">{text}</script>")
}

/// The title of a page, from the path of its first input.
fn title_of(path: &str) -> &str {
    let mut parts = path.rsplit(['/', '\\']);
    let name = parts.next().unwrap_or_default();
    match parts.next() {
        Some(dir) if is_run_file(name) && !matches!(dir, "" | "." | "..") => dir,
        _ => name,
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Base64 (RFC 4648, section 4), padded.
fn write_base64(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = Vec::with_capacity(4 * 1_024);
    for part in bytes.chunks(3 * 1_024) {
        text.clear();
        for three in part.chunks(3) {
            let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or_default());
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for i in 0..4 {
                let six = (bits >> (18 - 6 * i)) & 0x3f;
                let digit = ALPHABET.get(six as usize).copied().unwrap_or(b'=');
                text.push(if i > three.len() { b'=' } else { digit });
            }
        }
        out.write_all(&text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base64(text: &str) -> String {
        let mut out = Vec::new();
        write_base64(&mut out, text.as_bytes()).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// RFC 4648, section 10.
    #[test]
    fn base64_as_in_the_standard() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain), coded);
        }
    }

    #[test]
    fn a_run_is_called_by_its_directory() {
        for (path, title) in [
            ("logs/walk.mi2log", "walk.mi2log"),
            ("walk.mi2log", "walk.mi2log"),
            ("out/run1/modem.mi2log", "run1"),
            ("out\\run1\\grants.csv", "run1"),
            ("run1/server.pcapng", "run1"),
            ("modem.mi2log", "modem.mi2log"),
            ("./modem.mi2log", "modem.mi2log"),
            ("../modem.mi2log", "modem.mi2log"),
        ] {
            assert_eq!(title_of(path), title, "{path}");
        }
    }

    #[test]
    fn no_string_ends_a_script_element() {
        let mut out = Vec::new();
        write_json(&mut out, "x", &json!({"path": "</script><b>"})).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("</").count(), 1);
        let inner = text.split_once('>').unwrap().1.rsplit_once("</").unwrap().0;
        assert_eq!(serde_json::from_str::<Value>(inner).unwrap()["path"], "</script><b>");
    }
}
