//! Streams of QUIC connections with the applications' interface.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddrV4;

use bytes::Bytes;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, Dir, Endpoint, StreamId as QuinnStreamId, VarInt,
};

use super::clock;
use crate::transport::socket::{Sockets, StreamId};

/// Contents of bodies.
static FILLER: [u8; 1 << 16] = [b'x'; 1 << 16];

/// End of a head (RFC 9112, 2.1).
const HEAD_END: &[u8] = b"\r\n\r\n";

/// One stream.
#[derive(Debug)]
pub(super) struct QuicStream {
    connection: ConnectionHandle,
    /// Absent until the handshake allows opening it.
    id: Option<QuinnStreamId>,
    /// Bytes read from the connection but not by the application.
    unread: VecDeque<u8>,
    ended: bool,
}

/// A QUIC endpoint with its connections and streams.
pub(super) struct QuicSockets {
    pub(super) endpoint: Endpoint,
    pub(super) connections: BTreeMap<usize, Connection>,
    pub(super) local: SocketAddrV4,
    pub(super) server: Option<SocketAddrV4>,
    client_config: Option<ClientConfig>,
    current: Option<ConnectionHandle>,
    streams: BTreeMap<StreamId, QuicStream>,
    next_stream: u64,
}

impl QuicSockets {
    pub(super) fn new(
        endpoint: Endpoint,
        local: SocketAddrV4,
        server: Option<SocketAddrV4>,
        client_config: Option<ClientConfig>,
    ) -> Self {
        Self {
            endpoint,
            connections: BTreeMap::new(),
            local,
            server,
            client_config,
            current: None,
            streams: BTreeMap::new(),
            next_stream: 0,
        }
    }

    fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.connections.get_mut(&handle.0).filter(|c| !c.is_closed())
    }

    /// The connection to the server, opened if necessary.
    fn connect(&mut self, now_ns: i64) -> Option<ConnectionHandle> {
        if let Some(handle) = self.current
            && self.connection(handle).is_some()
        {
            return Some(handle);
        }
        let (config, server) = (self.client_config.clone()?, self.server?);
        let now = clock::instant_of(now_ns);
        let name = "server.airmile.test";
        let (handle, connection) = self.endpoint.connect(now, config, server.into(), name).ok()?;
        self.connections.insert(handle.0, connection);
        self.current = Some(handle);
        Some(handle)
    }

    fn add(&mut self, connection: ConnectionHandle, id: Option<QuinnStreamId>) -> StreamId {
        let stream = StreamId(self.next_stream);
        self.next_stream += 1;
        let unread = VecDeque::new();
        self.streams.insert(stream, QuicStream { connection, id, unread, ended: false });
        stream
    }

    /// The stream's connection and number; opens it if that is possible now.
    fn opened(&mut self, stream: StreamId) -> Option<(ConnectionHandle, QuinnStreamId)> {
        let (handle, id) = self.streams.get(&stream).map(|s| (s.connection, s.id))?;
        if let Some(id) = id {
            return Some((handle, id));
        }
        let id = self.connection(handle)?.streams().open(Dir::Bi)?;
        self.streams.get_mut(&stream)?.id = Some(id);
        Some((handle, id))
    }

    fn write_bytes(&mut self, stream: StreamId, bytes: &Bytes) -> u64 {
        let Some((handle, id)) = self.opened(stream) else { return 0 };
        let Some(connection) = self.connection(handle) else { return 0 };
        let written = connection.send_stream(id).write_chunks(&mut [bytes.clone()]);
        written.map_or(0, |written| written.bytes as u64)
    }

    /// Reads up to `max_bytes` from the connection; stores them if `keep` is set.
    fn pull(&mut self, stream: StreamId, max_bytes: u64, keep: bool) -> u64 {
        let Some((handle, id)) = self.opened(stream) else { return 0 };
        let mut taken = 0;
        let mut ended = false;
        let mut kept = Vec::new();
        let Some(connection) = self.connection(handle) else { return 0 };
        let mut receive = connection.recv_stream(id);
        match receive.read(true) {
            Err(_) => ended = true,
            Ok(mut chunks) => {
                while taken < max_bytes {
                    let room = usize::try_from(max_bytes - taken).unwrap_or(usize::MAX);
                    match chunks.next(room) {
                        Ok(Some(chunk)) => {
                            taken += chunk.bytes.len() as u64;
                            if keep {
                                kept.push(chunk.bytes);
                            }
                        }
                        Ok(None) => {
                            ended = true;
                            break;
                        }
                        Err(quinn_proto::ReadError::Blocked) => break,
                        Err(quinn_proto::ReadError::Reset(_)) => {
                            ended = true;
                            break;
                        }
                    }
                }
                // Flow control updates go with the next packet.
                let _ = chunks.finalize();
            }
        }
        if let Some(state) = self.streams.get_mut(&stream) {
            state.ended |= ended;
            state.unread.extend(kept.iter().flatten());
        }
        taken
    }
}

impl Sockets for QuicSockets {
    fn open(&mut self, now_ns: i64, _lane: u32) -> StreamId {
        match self.connect(now_ns) {
            Some(handle) => self.add(handle, None),
            None => StreamId(u64::MAX),
        }
    }

    fn accept(&mut self) -> Option<StreamId> {
        let open = |(&handle, connection): (&usize, &mut Connection)| {
            Some((ConnectionHandle(handle), connection.streams().accept(Dir::Bi)?))
        };
        let (handle, id) = self.connections.iter_mut().find_map(open)?;
        Some(self.add(handle, Some(id)))
    }

    fn is_connected(&self, stream: StreamId) -> bool {
        let state = self.streams.get(&stream);
        let connection = state.and_then(|state| self.connections.get(&state.connection.0));
        connection.is_some_and(|connection| !connection.is_handshaking())
    }

    fn addresses(&self, stream: StreamId) -> Option<(SocketAddrV4, SocketAddrV4)> {
        let connection = self.connections.get(&self.streams.get(&stream)?.connection.0)?;
        match connection.remote_address() {
            std::net::SocketAddr::V4(remote) if !connection.is_closed() => {
                Some((self.local, remote))
            }
            _ => None,
        }
    }

    fn write_head(&mut self, _now_ns: i64, stream: StreamId, head: &[u8]) -> bool {
        let bytes = Bytes::copy_from_slice(head);
        let written = self.write_bytes(stream, &bytes);
        // A partly written head cannot be undone: the stream ends.
        if written > 0 && written < head.len() as u64 {
            self.end_exchange(stream);
        }
        written == head.len() as u64
    }

    fn write(&mut self, _now_ns: i64, stream: StreamId, bytes: u64) -> u64 {
        let mut written = 0;
        while written < bytes {
            let length = usize::try_from(bytes - written).unwrap_or(FILLER.len()).min(FILLER.len());
            let step = self.write_bytes(stream, &Bytes::from_static(&FILLER[..length]));
            written += step;
            if step < length as u64 {
                break;
            }
        }
        written
    }

    fn read_head(&mut self, _now_ns: i64, stream: StreamId) -> Option<Vec<u8>> {
        self.pull(stream, 4096, true);
        let unread = &mut self.streams.get_mut(&stream)?.unread;
        let bytes = unread.make_contiguous();
        let end = bytes.windows(HEAD_END.len()).position(|w| w == HEAD_END)? + HEAD_END.len();
        Some(unread.drain(..end).collect())
    }

    fn read(&mut self, _now_ns: i64, stream: StreamId, max_bytes: u64) -> u64 {
        let Some(state) = self.streams.get_mut(&stream) else { return 0 };
        let first = state.unread.len().min(usize::try_from(max_bytes).unwrap_or(usize::MAX));
        state.unread.drain(..first);
        let first = first as u64;
        if first == max_bytes { first } else { first + self.pull(stream, max_bytes - first, false) }
    }

    fn end_exchange(&mut self, stream: StreamId) {
        if let Some((handle, id)) = self.opened(stream)
            && let Some(connection) = self.connection(handle)
        {
            // A closed stream needs no end.
            let _ = connection.send_stream(id).finish();
        }
    }

    fn finish(&mut self, stream: StreamId) {
        self.end_exchange(stream);
        self.streams.remove(&stream);
    }

    fn is_ended(&self, stream: StreamId) -> bool {
        let Some(state) = self.streams.get(&stream) else { return true };
        let gone = self.connections.get(&state.connection.0).is_none_or(Connection::is_closed);
        state.unread.is_empty() && (state.ended || gone)
    }

    fn close(&mut self, now_ns: i64) {
        if let Some(handle) = self.current.take()
            && let Some(connection) = self.connection(handle)
        {
            connection.close(clock::instant_of(now_ns), VarInt::from_u32(0), Bytes::new());
        }
    }
}
