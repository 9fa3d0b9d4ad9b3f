//! Applications: what clients ask for and servers answer, over TCP or QUIC.
//!
//! An [`SocketApplication`] is a state machine over [`Sockets`], which both transports
//! give. Whoever drives it calls [`SocketApplication::advance`] when something has
//! arrived or its time has come, and takes the log from
//! [`SocketApplication::poll_event`].
//!
//! Requests and responses are HTTP/1.1: their heads are real bytes, so that a
//! capture shows them, and the server learns from the head alone what is wanted
//! ([`http::Request`]); bodies are only counted.

mod config;
mod exchange;
mod host;
pub mod http;
mod series;
mod server;
mod video;
mod web;

pub use host::{EndHost, TcpSockets};
pub use series::ExchangeSeries;
pub use server::WorkloadServer;
pub use video::VideoPlayer;
pub use web::Browser;

pub use crate::scenario::{Abr, VideoConfig, WebConfig, Workload};
pub use crate::transport::socket::{
    AppEvent, AppEventKind, SocketApplication, Sockets, StreamId, UnderWay,
};
