//! A phone with two legs (EN-DC, TS 37.340), of which only one could be read: an empty queue there
//! does not show that the bearer's was empty.

use airmile_io::MessageRow;
use airmile_model::{TransferFinding, Verdict};
use airmile_radio::evidence::EvidenceCounts;
use airmile_radio::legs::Rat;

use super::radio::{Missing, MissingKind};

/// Messages that a modem writes for a leg's blocks only while the leg carries data.
const LTE_BLOCKS: [u16; 6] = [0xB063, 0xB064, 0xB126, 0xB132, 0xB139, 0xB173];
const NR_BLOCKS: [u16; 8] = [0xB857, 0xB860, 0xB870, 0xB872, 0xB873, 0xB883, 0xB885, 0xB887];

/// The leg whose blocks were not read, although the log has messages of them.
pub(super) fn unread_leg<'a>(
    counts: &EvidenceCounts,
    messages: impl Iterator<Item = &'a MessageRow> + Clone,
) -> Option<Rat> {
    let nr = counts.nr_blocks;
    let lte = (counts.dl_blocks + counts.ul_blocks).saturating_sub(nr);
    let has = |codes: &[u16]| {
        messages
            .clone()
            .any(|row| row.count > 0 && row.log_code().is_some_and(|code| codes.contains(&code)))
    };
    match (lte > 0, nr > 0) {
        (true, false) if has(&NR_BLOCKS) => Some(Rat::Nr),
        (false, true) if has(&LTE_BLOCKS) => Some(Rat::Lte),
        _ => None,
    }
}

const fn name(rat: Rat) -> &'static str {
    match rat {
        Rat::Lte => "LTE",
        Rat::Nr => "NR",
    }
}

/// Revokes a verdict that needs both legs. Data that waited on one leg did wait.
pub(super) fn judge(finding: &mut TransferFinding, unread: Rat) {
    let leg = name(unread);
    match finding.verdict {
        Verdict::Radio => {
            finding.notes.push(format!(
                "blocks of the {leg} leg were not read: this waiting time is a minimum"
            ));
        }
        Verdict::NotRadio | Verdict::Mixed => {
            finding
                .notes
                .push(format!("blocks of the {leg} leg were not read: data may have waited there"));
            (finding.verdict, finding.confidence) = (Verdict::Unknown, 0.0);
        }
        _ => {}
    }
}

/// What is missing for a verdict on both legs.
pub(super) fn missing(unread: Rat) -> Missing {
    let (leg, how) = match unread {
        Rat::Nr => ("NR", "enable NR5G MAC PDSCH Status (0xB887) and Stats (0xB888)"),
        Rat::Lte => ("LTE", "enable LTE_MAC_DL_Transport_Block (0xB063)"),
    };
    let what = format!("the blocks of the {leg} leg: a split bearer's data may wait on either leg");
    Missing::new(MissingKind::Radio, what, how)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(code: u16) -> MessageRow {
        MessageRow {
            code: format!("0x{code:04X}"),
            name: "NAME".into(),
            version: Some(9),
            major: None,
            subpacket_version: None,
            count: 3,
            decoded: 0,
            size_check: None,
        }
    }

    #[test]
    fn a_leg_is_unread_where_its_messages_are_there_and_its_blocks_are_not() {
        let counts = |dl_blocks, nr_blocks| EvidenceCounts {
            dl_blocks,
            nr_blocks,
            ..EvidenceCounts::default()
        };
        let check = |dl, nr, code, expected| {
            let rows = [row(0xB0C0), row(code)];
            assert_eq!(unread_leg(&counts(dl, nr), rows.iter()), expected, "{dl} {nr} {code:X}");
        };
        check(10, 0, 0xB887, Some(Rat::Nr));
        check(10, 0, 0xB97F, None);
        check(10, 10, 0xB173, Some(Rat::Lte));
        check(10, 10, 0xB887, None);
        check(10, 5, 0xB887, None);
        check(0, 0, 0xB887, None);
    }
}
