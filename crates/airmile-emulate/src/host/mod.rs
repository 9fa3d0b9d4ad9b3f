//! Hosts: applications of phones and servers over their transports, packets and modem logs
//! in a phone's operating system, and the applications' logs.

mod app_log;
pub(crate) mod device;
mod hosts;
mod page_log;
pub(crate) mod radio;
pub mod workload;

pub use app_log::AppNote;
pub(crate) use app_log::{AppLog, TimedTransfer};
pub use hosts::SimulatedUser;
pub(crate) use hosts::{OutsideHost, PHONE, ScenarioHost, radio_needs, server_address, users};
pub use page_log::{LoadedPage, PageRequest};
pub use radio::{RadioReader, ReaderSetup, Readers};
