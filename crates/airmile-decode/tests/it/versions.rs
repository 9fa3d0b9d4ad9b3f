//! docs/versions.md matches the decoder's tables. `AIRMILE_UPDATE=1 make test
//! ONLY="--test it versions"` writes it.

use std::path::Path;

use airmile_decode::diag::versions;

const HEAD: &str = "\
# Messages and versions

Which Qualcomm DIAG messages are read, in which versions, and by what evidence. It is
generated from the decoder's tables. `1/4` is message version 1 with subpacket version 4;
`3.13` is major 3, minor 13.

- **Confirmed on real bytes**: real records were read and agree with another decoder, or with
  the transport block sizes of the standard.
- **Public layout**: by a layout that others published; no sample was at hand.
- **Read where it adds up**: a record must prove that the layout fits, by its length, by the
  identity of RSRQ, RSRP and RSSI (TS 36.214), or by transport block sizes (TS 38.214, 5.1.3.2);
  others are counted and not read.
- **`--experimental`**: the layout is from a single public source, and no sample was at hand. It is
  read only with this option of `inspect`, `decode`, `radio` and `diagnose`, and where it adds up.
- **Not read**: counted by name and version. A log that holds it helps: please send us one.

";

#[test]
#[allow(clippy::disallowed_methods, reason = "the test compares a file of the repository")]
fn the_document_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/versions.md");
    let current = format!("{HEAD}{}", versions::markdown());
    if std::env::var_os("AIRMILE_UPDATE").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == current,
        "docs/versions.md is not current: run `AIRMILE_UPDATE=1 make test \
         ONLY=\"--test it versions\"`"
    );
}
