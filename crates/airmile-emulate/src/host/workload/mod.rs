//! Applications: requests of clients and responses of servers, over TCP or QUIC.
//!
//! A [`SocketApplication`] is a state machine over [`Sockets`], which both transports
//! implement. Its driver calls [`SocketApplication::advance`] when data has arrived or its
//! timer is due, and polls the log by [`SocketApplication::poll_event`].
//!
//! Requests and responses are HTTP/1.1: their heads are real bytes, so that captures show
//! them, and the server needs only the head of a request ([`http::Request`]); bodies are
//! only counted.

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
