//! The MAC layer: PDUs, HARQ, the downlink scheduler, and the uplink shared channel with
//! its requests, reports and grants.

mod backlog;
mod format;
mod harq;
mod pdu;
mod scheduler;
mod uplink;

pub(crate) use backlog::Backlog;
pub(crate) use format::MacFormat;
pub(crate) use harq::{Block, Harq, Transmission};
pub(crate) use pdu::*;
pub(crate) use scheduler::{Candidate, PrbAllocation, Scheduler, rbg_prb};
pub(crate) use uplink::{Uplink, UplinkBlock};
