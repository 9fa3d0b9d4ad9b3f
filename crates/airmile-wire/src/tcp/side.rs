//! The two ends of a flow.

use std::ops::{Index, IndexMut};

use airmile_model::Direction;

/// An end of a flow: whose packet, or whose data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Client, Self::Server];

    /// The end `from`, where `client` is the client's: both are indices into the ends of a key.
    #[inline]
    pub(super) const fn of(client: usize, from: usize) -> Self {
        if client == from { Self::Client } else { Self::Server }
    }

    #[inline]
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    #[inline]
    pub(super) const fn is_client(self) -> bool {
        matches!(self, Self::Client)
    }

    /// The direction in which it sends.
    #[inline]
    pub(super) const fn dir(self) -> Direction {
        match self {
            Self::Client => Direction::Ul,
            Self::Server => Direction::Dl,
        }
    }
}

/// What each end has, the client's first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OfSides<T>(pub(super) [T; 2]);

impl<T> Index<Side> for OfSides<T> {
    type Output = T;

    #[inline]
    fn index(&self, side: Side) -> &T {
        &self.0[side as usize]
    }
}

impl<T> IndexMut<Side> for OfSides<T> {
    #[inline]
    fn index_mut(&mut self, side: Side) -> &mut T {
        &mut self.0[side as usize]
    }
}
