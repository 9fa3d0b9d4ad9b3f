//! The interfaces between transports, applications and the hosts that run them.

use std::net::SocketAddrV4;

/// A stream of bytes in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// An application's view of the transport.
pub trait Sockets {
    /// Opens a stream to the server for one exchange. With TCP the exchanges of a lane
    /// share a connection, one after another; with QUIC each has its own stream in the only
    /// connection.
    fn open(&mut self, now_ns: i64, lane: u32) -> StreamId;

    /// A stream opened by the peer.
    fn accept(&mut self) -> Option<StreamId>;

    /// Whether its connection is established.
    fn is_connected(&self, stream: StreamId) -> bool;

    /// Local and peer address.
    fn addresses(&self, stream: StreamId) -> Option<(SocketAddrV4, SocketAddrV4)>;

    /// Writes a head, all or nothing.
    fn write_head(&mut self, now_ns: i64, stream: StreamId, head: &[u8]) -> bool;

    /// Writes bytes that are only counted; returns how many there was room for.
    fn write(&mut self, now_ns: i64, stream: StreamId, bytes: u64) -> u64;

    /// Reads a head including its empty line, once it is complete.
    fn read_head(&mut self, now_ns: i64, stream: StreamId) -> Option<Vec<u8>>;

    /// Reads up to `max_bytes` bytes; returns the number.
    fn read(&mut self, now_ns: i64, stream: StreamId, max_bytes: u64) -> u64;

    /// The exchange's request or response is written: QUIC ends this side of the stream,
    /// TCP keeps the connection.
    fn end_exchange(&mut self, stream: StreamId);

    /// Finishes the stream: nothing more will be written.
    fn finish(&mut self, stream: StreamId);

    /// Whether the peer has finished and everything is read, or the stream is closed.
    fn is_ended(&self, stream: StreamId) -> bool;

    /// Closes all connections: no more requests follow.
    fn close(&mut self, now_ns: i64);
}

/// A client's or a server's application.
pub trait SocketApplication: std::fmt::Debug {
    /// Does all work that is possible now.
    fn advance(&mut self, now_ns: i64, sockets: &mut dyn Sockets);

    /// When to call [`advance`](Self::advance) at the latest.
    fn poll_timeout(&self) -> Option<i64>;

    /// An entry of its log.
    fn poll_event(&mut self) -> Option<AppEvent>;

    /// Whether the application has finished.
    fn is_done(&self) -> bool;

    /// Exchanges in progress.
    fn under_way(&self) -> Vec<UnderWay> {
        Vec::new()
    }
}

/// An exchange in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnderWay {
    /// As in [`AppEventKind::RequestStarted`].
    pub transfer: u64,
    /// Whether its request is larger than its response.
    pub uploads: bool,
    /// Bytes so far: read, or, for an upload, written to the transport.
    pub bytes: u64,
}

/// An entry of an application's log.
#[derive(Debug, Clone, PartialEq)]
pub struct AppEvent {
    /// Time of the entry.
    pub at_ns: i64,
    /// The event.
    pub kind: AppEventKind,
}

/// Events of an application.
#[derive(Debug, Clone, PartialEq)]
pub enum AppEventKind {
    /// A request becomes possible.
    Wanted {
        /// Number of the transfer, from 0.
        transfer: u64,
        /// The transfer that refers to it; `None` for the first of a page.
        initiator: Option<u64>,
        /// Duration of its name lookup, before anything else.
        lookup_ns: i64,
    },
    /// The connection for a request has been established.
    Connected {
        /// The transfer.
        transfer: u64,
    },
    /// A request is sent.
    RequestStarted {
        /// Number of the transfer, from 0.
        transfer: u64,
        /// The requested path.
        path: String,
        /// Bytes of its body.
        upload_bytes: u64,
        /// Local and server address.
        addresses: Option<(SocketAddrV4, SocketAddrV4)>,
    },
    /// The response's head has arrived.
    FirstByte {
        /// The transfer.
        transfer: u64,
    },
    /// The response is complete.
    Ended {
        /// The transfer.
        transfer: u64,
        /// Bytes of its body.
        bytes: u64,
        /// Whether the connection closed early.
        failed: bool,
    },
    /// A video segment is requested.
    SegmentChosen {
        /// Number of the segment, from 0.
        segment: u32,
        /// Its bitrate.
        bitrate_bps: u64,
        /// Whether it differs from the previous one's.
        switched: bool,
        /// The player's buffer.
        buffer_ns: i64,
        /// The player's estimate of the network's rate.
        estimate_bps: Option<u64>,
    },
    /// Playback starts.
    PlaybackStarted,
    /// Playback stalls for lack of data.
    Stalled,
    /// Playback resumes.
    Resumed {
        /// Duration of the stall.
        stalled_ns: i64,
    },
    /// Playback has reached the end.
    PlaybackEnded,
    /// A page starts to load.
    PageStarted {
        /// Number of the page, from 0.
        page: u32,
    },
    /// A page has loaded.
    PageLoaded {
        /// The page.
        page: u32,
        /// Bytes of its objects.
        bytes: u64,
        /// Duration of the load.
        duration_ns: i64,
    },
    /// The application has finished.
    Done,
}
