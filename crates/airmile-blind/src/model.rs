//! From features to probabilities: multinomial logistic regression, with a table of
//! coefficients for each kind of evidence.

use super::coefficients;
use super::feature::{Feature, FeatureValues, N_FEATURES};
use super::features::Features;
use super::span::TransportKind;
use super::suspect::{N_SUSPECTS, Probabilities, Suspect, Suspicion};
use airmile_wire::attribute::{
    CaptureSite, HiddenQueue, INITIAL_WINDOW_BYTES, MIN_RADIO_RTT_NS, Reason, Shares,
};

/// Coefficients for one kind of evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct CoefficientTable {
    /// Mean and standard deviation of each feature in the fit; the standard deviation is
    /// 0 for unused features.
    pub scale: [(f64, f64); N_FEATURES],
    /// For each suspect: the constant, then a weight per feature in standard deviations.
    pub weights: [(f64, [f64; N_FEATURES]); N_SUSPECTS],
}

/// Minimum probability for naming a suspect by TCP at the phone, printed as 60 %; below it, the result of
/// `diagnose` is undetermined (chosen here: of what is stated at 0.6 to 0.7, seven in ten are
/// right on families that the tables were not fitted on).
pub const NAMED_FROM: f64 = 0.595;
/// The same for other evidence (70 %), and for a queue outside of the radio in verdicts that a modem log
/// decides (chosen here, before measuring: more than two to one against all others together).
const NAMED_FROM_OTHERS: f64 = 0.695;
/// A server whose answer was waited for during this share of a transfer is named (chosen here).
const MOSTLY_WAITING: f64 = 0.75;
/// With at least this probability (chosen here).
const WAITED_PROBABILITY: f64 = 0.7;
/// Features are clamped to this many deviations (chosen here): outside the fitted range a
/// linear model proves nothing.
const MAX_DEVIATIONS: f64 = 4.0;
/// Probability reserved for unmodelled cases and shared by all suspects, so that none is
/// certain (chosen here: the lab covers few of the situations that exist).
const UNTHOUGHT: f64 = 0.01;

/// The kind of evidence for a transfer; each has a table of coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// TCP with time stamps at the phone.
    Stamped,
    /// TCP without, at the phone.
    Plain,
    /// Datagrams at the phone.
    Datagrams,
    /// TCP at the phone, in a capture that began within the connection: what the sender
    /// waited for is unknown most of the time.
    Late,
    /// TCP at the server.
    Server,
}

/// If the sender's state is unknown for at least this share of the time, its wait reasons
/// are ignored (chosen here).
const LATE_SHARE: f64 = 0.3;

impl Evidence {
    /// All, in the order of the tables.
    pub const ALL: [Self; 5] =
        [Self::Stamped, Self::Plain, Self::Datagrams, Self::Late, Self::Server];

    /// The kind of evidence for a transfer; `None` if there is no table for it.
    #[must_use]
    pub fn of(features: &Features) -> Option<Self> {
        let late = features.lacks_start(LATE_SHARE);
        match (features.place, features.transport) {
            _ if features.one_way => None,
            (CaptureSite::Server, TransportKind::Datagrams) => None,
            (CaptureSite::Between | CaptureSite::Inside, _) => None,
            (CaptureSite::Server, _) => Some(Self::Server),
            // A call, a game or a tunnel: its rate is its own, or unknown flows share it.
            (_, TransportKind::Datagrams) if !features.is_quic || features.is_thin() => None,
            (_, TransportKind::Datagrams) => Some(Self::Datagrams),
            (_, TransportKind::Stamped | TransportKind::Plain) if late => Some(Self::Late),
            (_, TransportKind::Stamped) => Some(Self::Stamped),
            (_, TransportKind::Plain) => Some(Self::Plain),
        }
    }

    /// Minimum probability for naming a suspect.
    const fn named_from(self) -> f64 {
        match self {
            Self::Stamped | Self::Plain => NAMED_FROM,
            Self::Datagrams | Self::Late | Self::Server => NAMED_FROM_OTHERS,
        }
    }

    /// The features that its table uses.
    #[must_use]
    pub const fn uses(self, feature: Feature) -> bool {
        match self {
            Self::Stamped | Self::Server | Self::Late => true,
            Self::Plain => !feature.needs_round_trips(),
            Self::Datagrams => feature.is_of_arrivals(),
        }
    }
}

impl CoefficientTable {
    /// A feature in standard deviations; 0 if it is unknown or unused.
    #[must_use]
    pub fn standard(&self, feature: Feature, value: f64) -> f64 {
        let (mean, deviation) = self.scale[feature as usize];
        if deviation > 0.0 && value.is_finite() {
            ((value - mean) / deviation).clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)
        } else {
            0.0
        }
    }

    /// The probabilities by the values of a transfer's features.
    #[must_use]
    pub fn probabilities(&self, values: &FeatureValues) -> Probabilities {
        let standard = Feature::ALL.map(|feature| self.standard(feature, values[feature]));
        let mut out = [0.0; N_SUSPECTS];
        for (slot, (constant, weights)) in out.iter_mut().zip(&self.weights) {
            *slot = constant + weights.iter().zip(&standard).map(|(w, z)| w * z).sum::<f64>();
        }
        let most = out.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        out.iter_mut().for_each(|logit| *logit = (*logit - most).exp());
        let sum: f64 = out.iter().sum();
        Probabilities(out.map(|p| p / sum))
    }
}

/// The most that a line gets of the probability of line and radio by losses of a queue that was full
/// (chosen here: of what this takes from 90 % and more of the lab's test families at the phone, nine in
/// ten are right).
const LINE_BY_OVERFLOW: f64 = 0.87;
/// The same by any queue that stands, in a capture at the server (chosen here: right on the lab's test
/// families. Of 85 such transfers of kernels and of ns-3 that the table took for a line's, 49 were).
const LINE_AT_SERVER: f64 = 0.75;

/// The radio gets a part of a line's probability if the queue that stands may be that of a base station.
fn share_queue(
    probabilities: &mut Probabilities,
    (features, evidence): (&Features, Evidence),
    table: &CoefficientTable,
) {
    if !features.may_be_a_cells_queue() {
        return;
    }
    let most = match evidence {
        Evidence::Stamped if features.sends_again() => {
            table.probabilities(&features.without_overflow()).line_part().max(LINE_BY_OVERFLOW)
        }
        // Acknowledgements arrive in lumps: what distinguishes the two at the phone is lost.
        Evidence::Server => LINE_AT_SERVER,
        _ => return,
    };
    let line = probabilities.line_part().min(most);
    let both = probabilities[Suspect::Radio] + probabilities[Suspect::Wireline];
    if line.is_finite() {
        probabilities[Suspect::Radio] = both * (1.0 - line);
        probabilities[Suspect::Wireline] = both * line;
    }
}

/// A capture at the server lacks the start of a connection if the sender's state is unknown for
/// at least this share of the time (chosen here: it is 0 with the start).
pub(super) const START_MISSING: f64 = 0.02;
/// Share of the probability that is then divided among all: the queue that was there before the
/// capture is part of the minimum round trip, and the window is unknown (chosen here: of what was
/// stated at 0.9 on runs of real hosts cut at three tenths, 84 % was right).
const UNKNOWN_START: f64 = 0.2;

/// The same for a capture that lacks packets or has them at wrong times: its patterns may be its
/// own (chosen here: nothing reaches [`NAMED_FROM`]).
const OF_DAMAGE: f64 = 0.5;

/// Computes probabilities.
#[derive(Debug, Clone, Copy, Default)]
pub struct Model;

impl Model {
    /// The table for a kind of evidence.
    #[must_use]
    pub const fn table(evidence: Evidence) -> &'static CoefficientTable {
        match evidence {
            Evidence::Stamped => &coefficients::STAMPED,
            Evidence::Plain => &coefficients::PLAIN,
            Evidence::Datagrams => &coefficients::DATAGRAMS,
            Evidence::Late => &coefficients::LATE,
            Evidence::Server => &coefficients::SERVER,
        }
    }

    /// Probabilities of all suspects, in descending order; empty if there is no table for
    /// the evidence.
    #[must_use]
    pub fn judge(features: &Features) -> Vec<Suspicion> {
        Self::judge_transfer(features, None)
    }

    /// As [`Self::judge`], with the bytes of a transfer if the application's log has them. One that
    /// fits the initial window needs no second flight: what its time shows of a slow start is
    /// another transfer's, and counts as [`Suspect::Other`].
    #[must_use]
    pub fn judge_transfer(features: &Features, bytes: Option<u64>) -> Vec<Suspicion> {
        let Some(evidence) = Evidence::of(features) else { return Vec::new() };
        let table = Self::table(evidence);
        let mut p = table.probabilities(&features.values);
        share_queue(&mut p, (features, evidence), table);
        // A constant rate is no evidence for a radio link.
        if features.is_served_evenly && p[Suspect::Radio] > p[Suspect::Wireline] {
            p.equal([Suspect::Radio, Suspect::Wireline]);
        }
        for (suspect, excluded) in [
            // Not a cellular network.
            (Suspect::Radio, Self::no_radio(features)),
            // RFC 5681, 4.1: only after an idle time of a retransmission time-out.
            (Suspect::SlowStartRestart, !features.paused_before),
        ] {
            if excluded {
                p.exclude(suspect);
            }
        }
        let is_senders = p[Suspect::SenderLimited] > p[Suspect::Wireline];
        // Data that arrives slowly at a proxy leaves it at that pace, without a queue.
        if evidence == Evidence::Datagrams && features.is_sparse()
            || features.behind_proxy && is_senders
        {
            p.equal([Suspect::Wireline, Suspect::SenderLimited]);
        }
        let (is_empty, loses) = (features.seldom_queues(), features.loses());
        let never_full = evidence != Evidence::Late && features.is_never_full();
        for (suspects, contradicted) in [
            ([Suspect::ReceiveWindow].as_slice(), never_full),
            (&[Suspect::UplinkQueue], !features.uploads),
            (&[Suspect::Wireline], features.loses_elsewhere()),
            (&[Suspect::Radio, Suspect::Wireline], is_empty && !loses),
            (&[Suspect::Radio, Suspect::Wireline], features.is_trickle()),
        ] {
            if contradicted {
                p.strike_out(suspects);
            }
        }
        // A cell that serves its users in turn, or a sender's window or pace.
        if features.comes_in_bursts() && p[Suspect::Radio] > p[Suspect::Other] {
            p.equal([Suspect::Radio, Suspect::Other]);
        }
        if features.is_thin() {
            p.doubt(Suspect::Radio);
            p.doubt(Suspect::Wireline);
        }
        if is_empty && loses {
            // A policer on the line needs no queue; it becomes no more probable by that.
            p.doubt(Suspect::Radio);
        }
        let begun_before = features.begun_before || features.lacks_start(START_MISSING);
        if evidence == Evidence::Server && begun_before {
            p.level(UNKNOWN_START);
        }
        if features.damaged {
            p.level(OF_DAMAGE);
        }
        if bytes.unwrap_or(features.bytes) <= INITIAL_WINDOW_BYTES {
            p.doubt(Suspect::FirstSlowStart);
        }
        let known = |p: f64| p * (1.0 - UNTHOUGHT) + UNTHOUGHT / N_SUSPECTS as f64;
        let mut out: Vec<Suspicion> = Suspect::ALL
            .into_iter()
            .map(|suspect| Suspicion { suspect, probability: known(p[suspect]) })
            .collect();
        out.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        out
    }

    /// Probabilities from two captures of the same transfers: their geometric means (a logarithmic
    /// opinion pool with equal weights; Genest and Zidek, Statistical Science 1986). Two captures of
    /// the same packets are no independent evidence, so agreement makes nothing more certain: the first
    /// one's own stay if the other would raise its first suspect.
    #[must_use]
    pub(super) fn pool(one: &[Suspicion], other: &[Suspicion]) -> Vec<Suspicion> {
        let of = |list: &[Suspicion], suspect| {
            let found = list.iter().find(|one| one.suspect == suspect);
            found.map_or(0.0, |one| one.probability)
        };
        let mut out: Vec<Suspicion> = Suspect::ALL
            .into_iter()
            .map(|suspect| {
                let probability = (of(one, suspect) * of(other, suspect)).sqrt();
                Suspicion { suspect, probability }
            })
            .collect();
        let sum: f64 = out.iter().map(|one| one.probability).sum();
        out.iter_mut().for_each(|one| one.probability /= sum.max(f64::MIN_POSITIVE));
        if one.first().is_some_and(|first| of(&out, first.suspect) > first.probability) {
            return one.to_vec();
        }
        out.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        out
    }

    /// Raises the probability of the sender, if it is first, where packets show the wait for its answers
    /// during most of the time: the probabilities are lower for short transfers, whose rate says little. A
    /// damaged capture shows no waits.
    pub fn raise_sender(suspects: &mut [Suspicion], features: &Features, shares: &Shares) {
        let think_ns = shares.by_reason.get(&Reason::ServerThinkTime).copied().unwrap_or(0);
        let waits = think_ns as f64 >= MOSTLY_WAITING * shares.total_ns() as f64;
        let Some((first, rest)) = suspects.split_first_mut() else { return };
        let is_sender = first.suspect == Suspect::SenderLimited;
        if features.damaged || !waits || !is_sender || first.probability >= WAITED_PROBABILITY {
            return;
        }
        let scale = (1.0 - WAITED_PROBABILITY) / (1.0 - first.probability);
        first.probability = WAITED_PROBABILITY;
        rest.iter_mut().for_each(|one| one.probability *= scale);
    }

    /// Whether a transfer's first suspect is probable enough to be named. By a capture at the server a
    /// slow line is not where a queue stands: it may be a cell's.
    #[must_use]
    pub fn names(features: &Features, first: &Suspicion) -> bool {
        let Some(evidence) = Evidence::of(features) else { return false };
        let unsure = match first.suspect {
            Suspect::Wireline => Self::hides_link(features),
            suspect => suspect == Suspect::Other,
        };
        !unsure && first.probability >= evidence.named_from()
    }

    /// The queue before the radio, or on the uplink, that arrivals indicate if it is known not to be
    /// the radio's; with its probability, if it is named.
    #[must_use]
    pub fn hidden_queue(features: &Features) -> Option<(HiddenQueue, f64)> {
        // The radio's losses are known: these are the line's.
        let known = Features { line_loses: true, is_served_evenly: false, ..*features };
        let suspects = Self::judge(&known);
        let radio = suspects.iter().find(|one| one.suspect == Suspect::Radio)?;
        let first = suspects.iter().find(|one| one.suspect != Suspect::Radio)?;
        let queue = match first.suspect {
            Suspect::Wireline => HiddenQueue::Downlink,
            Suspect::UplinkQueue => HiddenQueue::Uplink,
            _ => return None,
        };
        let probability = first.probability / (1.0 - radio.probability).max(f64::EPSILON);
        (probability >= NAMED_FROM_OTHERS).then_some((queue, probability))
    }

    /// Whether a queue stands that may be a slow line's or the cell's: acknowledgements at the server do
    /// not show which.
    #[must_use]
    pub fn hides_link(features: &Features) -> bool {
        Evidence::of(features) == Some(Evidence::Server) && features.may_be_a_cells_queue()
    }

    /// Whether a round trip is too short for a cellular link.
    #[must_use]
    pub fn no_radio(features: &Features) -> bool {
        features.base_rtt_ns.is_some_and(|ns| ns < MIN_RADIO_RTT_NS)
    }
}
