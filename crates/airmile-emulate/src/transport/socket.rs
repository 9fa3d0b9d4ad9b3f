//! What a transport gives an application, and what an application is to the host that
//! runs it.

use std::net::SocketAddrV4;

/// A stream of bytes in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// What an application sees of the transport.
pub trait Sockets {
    /// A stream to the server for one exchange. With TCP the exchanges of a lane
    /// share a connection, one after another; with QUIC each has a stream of its
    /// own in the one connection.
    fn open(&mut self, now_ns: i64, lane: u32) -> StreamId;

    /// A stream that the peer has opened.
    fn accept(&mut self) -> Option<StreamId>;

    /// Whether its connection is set up.
    fn is_connected(&self, stream: StreamId) -> bool;

    /// Own address and the peer's.
    fn addresses(&self, stream: StreamId) -> Option<(SocketAddrV4, SocketAddrV4)>;

    /// Writes a head, all or nothing.
    fn write_head(&mut self, now_ns: i64, stream: StreamId, head: &[u8]) -> bool;

    /// Writes bytes that are only counted; gives how many there was room for.
    fn write(&mut self, now_ns: i64, stream: StreamId, bytes: u64) -> u64;

    /// Reads a head, through its empty line, once it is all there.
    fn read_head(&mut self, now_ns: i64, stream: StreamId) -> Option<Vec<u8>>;

    /// Reads so many bytes at most; gives how many.
    fn read(&mut self, now_ns: i64, stream: StreamId, max_bytes: u64) -> u64;

    /// The exchange's request, or its response, is written: QUIC then ends this
    /// side of the stream, TCP keeps the connection.
    fn end_exchange(&mut self, stream: StreamId);

    /// Nothing more will be written on it.
    fn finish(&mut self, stream: StreamId);

    /// The peer sends no more on it and all is read, or it is gone.
    fn is_ended(&self, stream: StreamId) -> bool;

    /// Closes all: nothing more will be asked.
    fn close(&mut self, now_ns: i64);
}

/// A client's or a server's application.
pub trait SocketApplication: std::fmt::Debug {
    /// Does what can be done now.
    fn advance(&mut self, now_ns: i64, sockets: &mut dyn Sockets);

    /// When to call [`advance`](Self::advance), at the latest.
    fn poll_timeout(&self) -> Option<i64>;

    /// An entry of its log.
    fn poll_event(&mut self) -> Option<AppEvent>;

    /// All is done.
    fn is_done(&self) -> bool;

    /// Exchanges that have begun and not ended.
    fn under_way(&self) -> Vec<UnderWay> {
        Vec::new()
    }
}

/// An exchange that has begun and not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnderWay {
    /// As in [`AppEventKind::RequestStarted`].
    pub transfer: u64,
    /// Whether its request is larger than its response.
    pub uploads: bool,
    /// Bytes so far: read, or, of an upload, handed to the transport.
    pub bytes: u64,
}

/// An entry of an application's log.
#[derive(Debug, Clone, PartialEq)]
pub struct AppEvent {
    /// When.
    pub at_ns: i64,
    /// What.
    pub kind: AppEventKind,
}

/// What an application did or saw.
#[derive(Debug, Clone, PartialEq)]
pub enum AppEventKind {
    /// Something can be asked for from now on.
    Wanted {
        /// Counts from 0.
        transfer: u64,
        /// What asks for it; the first of a page is asked for by nothing.
        initiator: Option<u64>,
        /// How long its name lookup takes, before anything else.
        lookup_ns: i64,
    },
    /// The connection that a request goes over has been set up for it.
    Connected {
        /// Which.
        transfer: u64,
    },
    /// A request goes out.
    RequestStarted {
        /// Counts from 0.
        transfer: u64,
        /// What is asked for.
        path: String,
        /// Bytes of its body.
        upload_bytes: u64,
        /// Own address and the server's.
        addresses: Option<(SocketAddrV4, SocketAddrV4)>,
    },
    /// The response's head has arrived.
    FirstByte {
        /// Which.
        transfer: u64,
    },
    /// The response is complete.
    Ended {
        /// Which.
        transfer: u64,
        /// Bytes of its body.
        bytes: u64,
        /// The connection went away before.
        failed: bool,
    },
    /// A video segment is asked for.
    SegmentChosen {
        /// Counts from 0.
        segment: u32,
        /// Its bitrate.
        bitrate_bps: u64,
        /// Whether that is another than the last one's.
        switched: bool,
        /// What the player has in store.
        buffer_ns: i64,
        /// What the player thinks the network gives.
        estimate_bps: Option<u64>,
    },
    /// Playback begins.
    PlaybackStarted,
    /// Playback stands still for want of data.
    Stalled,
    /// It goes on.
    Resumed {
        /// How long it stood still.
        stalled_ns: i64,
    },
    /// Playback has come to the end.
    PlaybackEnded,
    /// A page begins to load.
    PageStarted {
        /// Counts from 0.
        page: u32,
    },
    /// A page has loaded.
    PageLoaded {
        /// Which.
        page: u32,
        /// Bytes of its objects.
        bytes: u64,
        /// How long it took.
        duration_ns: i64,
    },
    /// All is done.
    Done,
}
