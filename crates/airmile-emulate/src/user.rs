//! Users of a cell.

/// A user of a cell with a bearer, by its index in the list of users passed to
/// [`Simulation::new`](crate::Simulation::new).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserId(pub usize);

impl UserId {
    /// The measured phone, whose queues records and truth describe.
    pub const MEASURED: Self = Self(0);

    /// Its index in lists of users.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0
    }

    /// Whether it is the measured phone.
    #[must_use]
    pub const fn is_measured(self) -> bool {
        self.0 == Self::MEASURED.0
    }
}
