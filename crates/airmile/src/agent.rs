//! The phone's cell from its modem's records, for CLAW's reports (MobiSys 2017, 4).

mod cell;

pub use cell::{PhoneCell, RoundTrip};
