//! The page of a packet study: like the [report](super::report), one file that loads nothing from a
//! network. It contains the whole `study` document, packed.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::write::page::{Page, write_packed, write_zone};
use airmile_io::document::Document;
use airmile_io::error::Result;
use airmile_io::{Replacement, Zone};
use airmile_packets::Study;

const PAGE: Page = Page {
    script: include_str!("../../../../web/dist/study.js"),
    style: include_str!("../../../../web/dist/study.css"),
    policy: include_str!("../../../../web/dist/study.policy.txt"),
};

/// Writes a study's page to a file.
///
/// # Errors
/// The file cannot be written.
pub fn write_file(path: &Path, study: &Study, zone: Zone) -> Result<()> {
    let (replacement, file) = Replacement::begin(path)?;
    let mut out = BufWriter::new(file);
    write_html(&mut out, study, zone)
        .and_then(|()| out.flush())
        .map_err(|e| replacement.failed(e))?;
    replacement.done()
}

/// Writes a study's page.
///
/// # Errors
/// The writer refuses.
pub fn write_html(out: &mut dyn Write, study: &Study, zone: Zone) -> io::Result<()> {
    let file = study.packets.files.first().map_or("", |file| file.path.as_str());
    PAGE.begin(out, file, &study.headline.says)?;
    let packets = &study.packets;
    write_zone(out, zone, packets.start_us.into_iter().chain(packets.end_us))?;
    let document = serde_json::to_vec(&Document::new("study", study))?;
    write_packed(out, "airmile-study", &document)?;
    PAGE.end(out)
}
