//! Advice on messages that a log holds in an unsupported version.

use airmile_decode::diag::Message;
use airmile_model::Direction;

use super::radio::{Missing, MissingKind};
use airmile_io::MessageRow;

/// The end of each advice on a version.
const SEND: &str = "is not read yet: send us a log";

/// Puts unsupported versions in front of the missing evidence. If such a message would hold the
/// missing evidence, it was logged, and enabling it is no advice.
pub(super) fn advise<'a>(
    missing: &mut Vec<Missing>,
    messages: impl Iterator<Item = &'a MessageRow>,
) {
    let unread: Vec<&MessageRow> = messages.filter(is_unread).collect();
    for item in missing.iter_mut().filter(|item| item.kind == MissingKind::Radio) {
        if let Some(row) = unread.iter().find(|row| item.what.contains(&row.code)) {
            item.how_to_capture = advice(row);
        }
    }
    let mentioned: Vec<String> = missing.iter().map(|item| item.how_to_capture.clone()).collect();
    let rest = unread.into_iter().filter(|row| row.version.is_some());
    let rest = rest.filter(|row| !mentioned.contains(&advice(row)));
    missing.extend(rest.map(|row| {
        let what = format!("what {} of {} ({}) hold", records(row.count), row.code, row.name);
        let verdicts_on = verdicts_on(row.log_code());
        Missing { verdicts_on, ..Missing::new(MissingKind::Radio, what, advice(row)) }
    }));
}

/// The directions whose verdicts need a message: none of them one of measurements.
const fn verdicts_on(code: Option<u16>) -> &'static [Direction] {
    match code {
        Some(0xB179 | 0xB18A | 0xB193 | 0xB195 | 0xB97F) => &[],
        Some(0xB063 | 0xB082 | 0xB087 | 0xB0A3 | 0xB126 | 0xB132 | 0xB173 | 0xB887 | 0xB888) => {
            &[Direction::Dl]
        }
        Some(0xB064 | 0xB066 | 0xB067 | 0xB092 | 0xB097 | 0xB0B3 | 0xB139 | 0xB872 | 0xB881) => {
            &[Direction::Ul]
        }
        _ => &[Direction::Dl, Direction::Ul],
    }
}

/// Whether an item is advice on a version, with nothing to capture.
pub(super) fn is_version(missing: &Missing) -> bool {
    missing.how_to_capture.ends_with(SEND)
}

/// Whether none of these messages was read, although other versions of the code are supported.
fn is_unread(row: &&MessageRow) -> bool {
    row.decoded == 0 && row.log_code().is_some_and(|code| Message::CODES.contains(&code))
}

fn advice(row: &MessageRow) -> String {
    match row.version {
        Some(_) => format!("version {} of {} {SEND}", row.version_text(), row.code),
        None => format!("{} of a text export {SEND}", row.code),
    }
}

fn records(n: u64) -> String {
    if n == 1 { "1 record".to_owned() } else { format!("{n} records") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(code: &str, version: u8, sub: Option<u8>, decoded: u64) -> MessageRow {
        MessageRow {
            code: code.into(),
            name: "NAME".into(),
            version: Some(version),
            major: None,
            subpacket_version: sub,
            count: 7,
            decoded,
            size_check: None,
        }
    }

    fn enable(what: &str) -> Missing {
        Missing::new(MissingKind::Radio, what, "enable LTE_MAC_DL_Transport_Block")
    }

    #[test]
    fn a_version_that_was_logged_is_not_to_be_enabled() {
        let messages = [
            row("0xB063", 51, None, 0),
            row("0xB173", 24, None, 7),
            row("0xB193", 1, Some(70), 0),
            row("0xB064", 9, None, 0),
            // Nothing of this code is read, so its version is irrelevant.
            row("0xB0EC", 1, None, 0),
        ];
        let mut missing = vec![enable("MAC padding (0xB063)"), enable("PRBs (0xB126)")];
        advise(&mut missing, messages.iter());
        let how: Vec<_> = missing.iter().map(|m| m.how_to_capture.as_str()).collect();
        assert_eq!(
            how,
            [
                "version 51 of 0xB063 is not read yet: send us a log",
                "enable LTE_MAC_DL_Transport_Block",
                "version 1/70 of 0xB193 is not read yet: send us a log",
                "version 9 of 0xB064 is not read yet: send us a log",
            ]
        );
        assert_eq!(missing[2].what, "what 7 records of 0xB193 (NAME) hold");
        assert!(is_version(&missing[0]) && !is_version(&missing[1]));
        assert!(missing[2].verdicts_on.is_empty());
        assert_eq!(missing[3].verdicts_on, [Direction::Ul]);
    }
}
