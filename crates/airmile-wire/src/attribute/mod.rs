//! Attributes each moment of a transfer to a cause.
//!
//! [`SenderModel`] takes one connection's packets and determines what its sender waited
//! for before each of them. [`Attribution`] puts the wait spans of a phone's connections
//! on one time axis, gives the radio precedence while its queue was not empty, and splits
//! each transfer among causes; the parts add up to its duration.
//!
//! The capture may come from any point of the path. At the phone, a packet was released
//! by the acknowledgement whose time stamp it echoes (RFC 7323, 4.3), or by the one that
//! passed an upstream round trip earlier; at the server that round trip is zero.

mod capture_site;
mod connections;
mod downlink_delay;
mod ecn;
mod exchanges;
mod min_duration;
mod passages;
mod path;
mod path_change;
mod policer;
mod quic;
mod requests;
mod sender_model;
mod share_interval;
mod split;
#[cfg(test)]
mod tests;
mod timeline;
mod uplink_delay;
mod upload_queue;
mod uploads;
mod user_ecn;
mod window;

pub use capture_site::{CaptureSite, MIN_RADIO_RTT_NS, Sides, ends_inside};
pub use connections::{Connection, ConnectionCollector};
pub use downlink_delay::DownlinkDelay;
pub use ecn::{EcnBins, EcnCount, EcnFeedback};
pub use exchanges::{Exchange, Exchanges, exchanged};
pub use min_duration::{ReceiveWindow, SendWindow, min_duration_ns};
pub use passages::{Datagrams, Marks};
pub use path::{LEAST_QUEUE_NS, Passage, PathQueue, QueuedSpan, base_delay_ns};
pub use path_change::PathChanges;
pub use policer::PolicedSpan;
pub use quic::{FollowedDatagram, QuicEnds, QuicSenders};
pub(crate) use requests::is_request;
pub use requests::{PayloadBegin, payload_begin};
pub use sender_model::{LostSegment, Reason, SenderModel, WaitSpan};
pub use share_interval::session_share_interval;
pub use split::{
    Attribution, CauseSpan, HiddenQueue, INITIAL_WINDOW_BYTES, RELEASE_NS, RadioEvidence,
    RadioSpan, SILENCE_NS, Shares,
};
pub use timeline::{ByteBins, PhoneWait, WaitTimeline};
pub use uplink_delay::UplinkDelay;
pub use upload_queue::UploadQueue;
pub use uploads::Uploads;
pub use user_ecn::{ArrivedEcn, EcnBits, EcnPath, UserEcn, ecn_paths};
