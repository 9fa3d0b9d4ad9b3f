//! Server, application, pacing.

use airmile_infer::attribute::Reason;
use airmile_model::Cause;

use super::{CAUSE_CONFIDENCE, Context, Explain};

/// Confidence where only the phone's side was seen and data came steadily: a proxy that
/// waits for a slow line looks the same (chosen here).
const MAY_BE_A_LINE: f64 = 0.6;

pub(super) struct SenderLimited;

impl SenderLimited {
    /// Whether a line behind a proxy would look the same: data comes little by little
    /// where it was asked for, and nobody saw the server.
    fn may_be_a_line(seen: &Context) -> bool {
        let split = seen.split;
        let trickles = split.ms(Reason::NothingToSend) + split.ms(Reason::Pacing);
        let other = split.ms(Reason::Thinking) + split.ms(Reason::Unasked);
        !seen.wire.has_server && trickles > other
    }
}

impl Explain for SenderLimited {
    fn cause(&self) -> Cause {
        Cause::SenderLimited
    }

    fn words(&self, seen: &Context) -> String {
        let ms = |reason| seen.split.ms(reason);
        let mut words = format!(
            "the sender had nothing to send ({:.0} ms), thought ({:.0} ms), was not asked ({:.0} \
             ms), answered ({:.0} ms), or kept its own pace ({:.0} ms)",
            ms(Reason::NothingToSend),
            ms(Reason::Thinking),
            ms(Reason::Unasked),
            ms(Reason::Request),
            ms(Reason::Pacing)
        );
        if Self::may_be_a_line(seen) {
            words.push_str(
                "; a slow line behind a proxy that splits connections looks the same from here",
            );
        }
        words
    }

    fn next_step(&self, seen: &Context) -> String {
        let split = seen.split;
        if Self::may_be_a_line(seen) {
            return "capture at the server, too (`tcpdump -s 128`): it tells the server's own pace \
                from a slow line behind a proxy"
                .into();
        }
        if split.ms(Reason::Thinking) > split.ms(Reason::Pacing) {
            return "look at the server's application: it answered late; time a request there \
                (`curl -w '%{time_starttransfer}'`)"
                .into();
        }
        "look at the server: its application or a rate limit in it (`tc qdisc show`) gave data \
         slower than the link takes"
            .into()
    }

    fn confidence(&self, seen: &Context) -> f64 {
        if Self::may_be_a_line(seen) { MAY_BE_A_LINE } else { CAUSE_CONFIDENCE }
    }
}

#[cfg(test)]
mod tests {
    use super::super::split::{Split, example_finding};
    use super::*;
    use crate::analyse::wire::Wire;

    #[test]
    fn a_line_behind_a_proxy_is_told_of_where_the_server_is_not_seen() {
        let split = Split::example(&[(Cause::SenderLimited, 900)]).with(Reason::Pacing, 900);
        let finding = example_finding();
        let check = |has_server, confidence, says: bool| {
            let mut wire = Wire::example();
            wire.has_server = has_server;
            let seen = Context { split: &split, finding: &finding, wire: &wire };
            assert_eq!(SenderLimited.confidence(&seen), confidence);
            assert_eq!(SenderLimited.words(&seen).contains("proxy"), says);
        };
        check(false, 0.6, true);
        check(true, 0.9, false);
    }
}
