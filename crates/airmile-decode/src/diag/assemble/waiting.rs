//! Records that wait for other messages about their TTI.

use airmile_model::RntiType;
use airmile_model::window::Slot;
use smallvec::SmallVec;

use super::pool::{Pool, PoolList};

/// A cell and a kind of RNTI, for transmissions in a TTI.
pub(super) type Place = (u8, RntiType);

/// The waiting records of one TTI: lists in the assembler's pools. It is small, so that
/// those of two seconds fit a core's second-level cache.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    /// Downlink assignments, one for each place.
    pub(super) dl: PoolList,
    /// Uplink grants, one for each place.
    pub(super) ul: PoolList,
    /// RLC PDUs described by the MAC layer's message: returned if RLC's own message was
    /// not logged.
    pub(super) mac_rlc: PoolList,
    /// Records that are not joined.
    pub(super) other: PoolList,
    /// Whether a downlink assignment of the user was decoded.
    pub(super) is_assigned: bool,
}

impl Slot for Waiting {
    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The parts of the transmissions at places: those of a TTI are a list.
pub(super) type PartsPool<T> = Pool<(Place, T)>;

impl<T: Default> PartsPool<T> {
    /// The parts of a place.
    pub(super) fn at(&mut self, list: &mut PoolList, place: Place) -> &mut T {
        let is_there = |(at, _): &(Place, T)| *at == place;
        &mut self.find_or_push(list, is_there, || (place, T::default())).1
    }

    /// Takes the parts of all places, in order of place: usually a single one.
    pub(super) fn take(&mut self, list: &mut PoolList) -> SmallVec<[(Place, T); 1]> {
        let mut parts = SmallVec::new();
        self.drain(list, &mut |part| parts.push(part));
        parts.sort_unstable_by_key(|(place, _)| *place);
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_order_of_cell() {
        let (mut pool, mut list) = (PartsPool::<u8>::default(), PoolList::default());
        for cell in [2, 0, 1, 0] {
            *pool.at(&mut list, (cell, RntiType::C)) += 1;
        }
        let parts = pool.take(&mut list);
        assert_eq!(
            parts.iter().map(|((cell, _), n)| (*cell, *n)).collect::<Vec<_>>(),
            [(0, 2), (1, 1), (2, 1)]
        );
        assert!(list.is_empty());
    }
}
