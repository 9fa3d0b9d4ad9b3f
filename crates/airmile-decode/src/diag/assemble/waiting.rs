//! Records that wait for other messages about their TTI.

use airmile_model::window::Slot;
use airmile_model::{RlcPdu, RntiType};
use smallvec::SmallVec;

use super::downlink::DlParts;
use super::pool::RecordList;
use super::uplink::UlParts;

/// A cell and a kind of RNTI, for transmissions in a TTI.
pub(super) type Place = (u8, RntiType);

/// Capacity that a slot keeps (chosen here: a busy TTI has some ten records).
const USUAL_ROOM: usize = 16;

/// One entry for each place, usually a single one.
type Places<T> = SmallVec<[(Place, T); 1]>;

/// The waiting records of one TTI.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    /// Downlink assignments, by place.
    pub(super) dl: Places<DlParts>,
    /// Uplink grants, by place.
    pub(super) ul: Places<UlParts>,
    /// RLC PDUs described by the MAC layer's message: returned if RLC's own message was
    /// not logged.
    pub(super) mac_rlc: Vec<RlcPdu>,
    /// Records that are not joined, in order of arrival.
    pub(super) other: RecordList,
    /// Whether a downlink assignment of the user was decoded.
    pub(super) is_assigned: bool,
}

impl Slot for Waiting {
    fn clear(&mut self) {
        clear_places(&mut self.dl);
        clear_places(&mut self.ul);
        self.mac_rlc.clear();
        if self.mac_rlc.capacity() > USUAL_ROOM {
            self.mac_rlc.shrink_to(USUAL_ROOM);
        }
        self.other = RecordList::default();
        self.is_assigned = false;
    }
}

impl Waiting {
    pub(super) fn dl_parts(&mut self, place: Place) -> &mut DlParts {
        entry(&mut self.dl, place)
    }

    pub(super) fn ul_parts(&mut self, place: Place) -> &mut UlParts {
        entry(&mut self.ul, place)
    }
}

/// Empties a list. One place needs no heap memory; that of more places is returned.
fn clear_places<T>(places: &mut Places<T>) {
    if places.spilled() {
        *places = Places::new();
    }
    places.clear();
}

/// The entry of a place in a list sorted by place, which has one or two elements.
fn entry<T: Default>(list: &mut Places<T>, place: Place) -> &mut T {
    let at = match list.binary_search_by_key(&place, |(p, _)| *p) {
        Ok(at) => at,
        Err(at) => {
            list.insert(at, (place, T::default()));
            at
        }
    };
    &mut list[at].1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_order_of_cell() {
        let mut slot = Waiting::default();
        for cell in [2, 0, 1, 0] {
            slot.dl_parts((cell, RntiType::C));
        }
        assert_eq!(slot.dl.iter().map(|((cell, _), _)| *cell).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
