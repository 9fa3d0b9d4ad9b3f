//! The possible bottlenecks, and their probabilities.

use std::ops::{Index, IndexMut};

use airmile_model::Cause;

/// The possible bottlenecks that packets can distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suspect {
    /// The radio link. Packets do not show whether other users held the cell or the
    /// signal was weak.
    Radio,
    /// [`Cause::Wireline`].
    Wireline,
    /// [`Cause::SenderLimited`].
    SenderLimited,
    /// [`Cause::ReceiveWindow`].
    ReceiveWindow,
    /// [`Cause::SlowStartRestart`].
    SlowStartRestart,
    /// [`Cause::FirstSlowStart`].
    FirstSlowStart,
    /// [`Cause::UplinkQueue`].
    UplinkQueue,
    /// Several at once, or a cause that is not modelled: losses, setup.
    Other,
}

impl Suspect {
    /// All suspects, in the order of the coefficients and of their declaration.
    pub const ALL: [Self; 8] = [
        Self::Radio,
        Self::Wireline,
        Self::SenderLimited,
        Self::ReceiveWindow,
        Self::SlowStartRestart,
        Self::FirstSlowStart,
        Self::UplinkQueue,
        Self::Other,
    ];

    /// Its name in documents: the cause's name, if it is a single cause.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Radio => "radio",
            Self::Wireline => "wireline",
            Self::SenderLimited => "sender_limited",
            Self::ReceiveWindow => "receive_window",
            Self::SlowStartRestart => "slow_start_restart",
            Self::FirstSlowStart => "first_slow_start",
            Self::UplinkQueue => "uplink_queue",
            Self::Other => "other",
        }
    }

    /// The causes that it covers.
    #[must_use]
    pub const fn causes(self) -> &'static [Cause] {
        match self {
            Self::Radio => &[Cause::RadioContention, Cause::RadioSignal],
            Self::Wireline => &[Cause::Wireline],
            Self::SenderLimited => &[Cause::SenderLimited],
            Self::ReceiveWindow => &[Cause::ReceiveWindow],
            Self::SlowStartRestart => &[Cause::SlowStartRestart],
            Self::FirstSlowStart => &[Cause::FirstSlowStart],
            Self::UplinkQueue => &[Cause::UplinkQueue],
            Self::Other => &[],
        }
    }
}

/// Suspects, and their number.
pub(super) const N_SUSPECTS: usize = Suspect::ALL.len();

/// A suspect's probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Suspicion {
    /// The suspect.
    pub suspect: Suspect,
    /// 0 to 1; those of all suspects add up to 1.
    pub probability: f64,
}

/// A probability for each suspect; all add up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probabilities(pub [f64; N_SUSPECTS]);

impl Index<Suspect> for Probabilities {
    type Output = f64;

    fn index(&self, suspect: Suspect) -> &f64 {
        &self.0[suspect as usize]
    }
}

impl IndexMut<Suspect> for Probabilities {
    fn index_mut(&mut self, suspect: Suspect) -> &mut f64 {
        &mut self.0[suspect as usize]
    }
}

impl Probabilities {
    /// The others share the probability of an impossible suspect.
    pub(super) fn exclude(&mut self, suspect: Suspect) {
        self[suspect] = 0.0;
        let rest: f64 = self.0.iter().sum();
        for one in Suspect::ALL.into_iter().filter(|one| *one != suspect) {
            let p = self[one];
            self[one] = if rest > 0.0 { p / rest } else { 1.0 / (N_SUSPECTS - 1) as f64 };
        }
    }

    /// Suspects that something else contradicts leave their probability to the others; if they are more
    /// probable than all of these, the arrivals are of a kind that no suspect explains.
    pub(super) fn strike_out(&mut self, suspects: &[Suspect]) {
        let each = Suspect::ALL.into_iter().filter(|one| suspects.contains(one));
        let sum: f64 = each.map(|one| self[one]).sum();
        let strike = if sum > 0.5 { Self::doubt } else { Self::exclude };
        suspects.iter().for_each(|one| strike(self, *one));
    }

    /// Counts a suspect's probability as that of unknown kinds.
    pub(super) fn doubt(&mut self, suspect: Suspect) {
        let moved = std::mem::take(&mut self[suspect]);
        self[Suspect::Other] += moved;
    }

    /// Two suspects that nothing distinguishes have the same probability.
    pub(super) fn equal(&mut self, [one, other]: [Suspect; 2]) {
        let half = self[one] / 2.0 + self[other] / 2.0;
        (self[one], self[other]) = (half, half);
    }

    /// A line's part of the probability of line and radio.
    pub(super) fn line_part(&self) -> f64 {
        self[Suspect::Wireline] / (self[Suspect::Radio] + self[Suspect::Wireline])
    }

    /// Divides a share of the probability equally among all suspects.
    pub(super) fn level(&mut self, share: f64) {
        let sum: f64 = self.0.iter().sum();
        let each = sum * share / N_SUSPECTS as f64;
        self.0.iter_mut().for_each(|p| *p = *p * (1.0 - share) + each);
    }
}
