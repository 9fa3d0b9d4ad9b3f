//! Server, application, pacing.

use airmile_model::{Cause, Direction};
use airmile_wire::attribute::Reason;
use airmile_wire::tcp::LINUX_MIN_RTO_NS;

use super::{CAUSE_CONFIDENCE, Context, Explain, MAY_BE_A_LINE, Relief};
use crate::fact::{CauseAdvice, CauseDetail};

pub(super) struct SenderLimited;

impl SenderLimited {
    /// Whether a slow link would look the same: one with a short queue, whose pace the sender keeps, or one
    /// behind a proxy, as the server was not captured: requested data arrives little by little, or the
    /// answer to an upload is late.
    fn may_be_a_line(seen: &Context) -> bool {
        let split = seen.split;
        let (app, pace) = (split.ms(Reason::AppLimited), split.ms(Reason::Pacing));
        let asked = split.ms(Reason::ServerThinkTime) + split.ms(Reason::NoRequest);
        match seen.finding.dir {
            Direction::Dl => pace > app + asked || !seen.wire.has_server && app + pace > asked,
            // That its own application sends nothing is known at the phone.
            Direction::Ul => {
                let (idle, think) =
                    (app + split.ms(Reason::NoRequest), split.ms(Reason::ServerThinkTime));
                pace > idle + think || seen.wire.hides_server() && pace + think > idle
            }
        }
    }
}

impl Explain for SenderLimited {
    fn cause(&self) -> Cause {
        Cause::SenderLimited
    }

    fn detail(&self, seen: &Context) -> CauseDetail {
        let ms = |reason| seen.split.part_ms(Cause::SenderLimited, reason);
        CauseDetail::SenderLimited {
            app_limited_ms: ms(Reason::AppLimited),
            think_ms: ms(Reason::ServerThinkTime),
            no_request_ms: ms(Reason::NoRequest),
            pacing_ms: ms(Reason::Pacing),
            may_be_a_line: Self::may_be_a_line(seen),
        }
    }

    fn advice(&self, seen: &Context) -> CauseAdvice {
        let (split, dir) = (seen.split, seen.finding.dir);
        let own_ms = match dir {
            Direction::Dl => split.ms(Reason::Pacing),
            Direction::Ul => split.ms(Reason::Pacing) + split.ms(Reason::AppLimited),
        };
        if dir == Direction::Dl && split.shares.waits_for_requests() {
            CauseAdvice::ClientAsksLate
        } else if dir == Direction::Ul && split.ms(Reason::ServerThinkTime) > own_ms {
            CauseAdvice::ServerAnswersLate
        } else if Self::may_be_a_line(seen) && !seen.wire.has_server {
            CauseAdvice::ServerOrLine
        } else if split.ms(Reason::ServerThinkTime) > own_ms {
            CauseAdvice::ServerAnswersLate
        } else {
            CauseAdvice::ServerPaces
        }
    }

    /// The restarts of slow start inside the transfer are due to its own pauses: these begin a round trip
    /// after the last data, when its acknowledgement or a request would have released more.
    fn relief(&self, seen: &Context) -> Relief {
        let pause_ns = seen.split.longest(Cause::SenderLimited).map_or(0, |(from, to)| to - from);
        let also: &[Cause] =
            if pause_ns >= LINUX_MIN_RTO_NS { &[Cause::SlowStartRestart] } else { &[] };
        Relief { also, ..Relief::default() }
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
    fn restarts_behind_its_pauses_go_with_them() {
        let parts =
            [(Cause::SenderLimited, 600), (Cause::SlowStartRestart, 300), (Cause::Setup, 100)];
        let check = |pause_ms: i64, left_ms: f64| {
            let split = Split::example(&parts)
                .with(Reason::SlowStartRestart, 300)
                .longest_at(Cause::SenderLimited, pause_ms);
            let (finding, wire) = (example_finding(), Wire::example());
            let seen = Context { split: &split, finding: &finding, wire: &wire };
            assert_eq!(split.without(Cause::SenderLimited, &seen).ms, left_ms);
        };
        // 100 kB at 8 Mbit/s take 100 ms, the setup remains.
        check(600, 200.0);
        // Pauses within the RTO restart nothing: the restarts remain, from ten segments on.
        check(150, 400.0);
    }

    /// Time without a request before the first byte is set-up, and no part of the sender's.
    #[test]
    fn parts_of_the_detail_are_parts_of_the_cause() {
        let mut split = Split::example(&[(Cause::SenderLimited, 20), (Cause::Setup, 100)]);
        let parts = [
            ((Cause::SenderLimited, Reason::NoRequest), 10_000_000),
            ((Cause::SenderLimited, Reason::ServerThinkTime), 30_000_000),
            ((Cause::Setup, Reason::NoRequest), 100_000_000),
        ];
        split.shares.parts.extend(parts);
        let ms = |reason| split.part_ms(Cause::SenderLimited, reason);
        // Half of the cause's time was in holes of the log.
        assert_eq!((ms(Reason::NoRequest), ms(Reason::ServerThinkTime)), (5.0, 15.0));
    }

    #[test]
    fn a_line_is_told_of_where_it_would_look_the_same() {
        let finding = example_finding();
        let check = |reason, has_server, confidence, may_be: bool| {
            let split = Split::example(&[(Cause::SenderLimited, 900)]).with(reason, 900);
            let mut wire = Wire::example();
            wire.has_server = has_server;
            let seen = Context { split: &split, finding: &finding, wire: &wire };
            assert_eq!(SenderLimited.confidence(&seen), confidence);
            assert_eq!(SenderLimited::may_be_a_line(&seen), may_be);
        };
        // Behind a proxy, as the server is not seen.
        check(Reason::AppLimited, false, 0.6, true);
        check(Reason::AppLimited, true, CAUSE_CONFIDENCE, false);
        // A sender that keeps the queue of a line short.
        check(Reason::Pacing, true, 0.6, true);
    }
}
