//! Limits the length of a client's streams. HTTP/3 buffers a frame until it is complete,
//! and a client may announce one of any length.

use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};

/// Maximum bytes of a request: its header fields, as the body is not read (chosen here:
/// several times a browser's cookies for a site).
pub(super) const REQUEST_BYTES: usize = 32 * 1024;
/// Maximum bytes of a client's other streams, such as settings and priorities (chosen here:
/// enough for ten thousand requests).
const CONTROL_BYTES: usize = 256 * 1024;

/// A stream with a remaining limit of bytes to read.
pub(super) struct Bounded<S> {
    inner: S,
    left: usize,
}

/// A stream with a request and its answer.
pub(super) type RequestStream = Bounded<h3_quinn::BidiStream<Bytes>>;

const fn request(inner: h3_quinn::BidiStream<Bytes>) -> RequestStream {
    Bounded { inner, left: REQUEST_BYTES }
}

impl<S: quic::RecvStream> quic::RecvStream for Bounded<S> {
    type Buf = S::Buf;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Self::Buf>, StreamErrorIncoming>> {
        let Some(data) = ready!(self.inner.poll_data(cx))? else { return Poll::Ready(Ok(None)) };
        Poll::Ready(match self.left.checked_sub(data.remaining()) {
            Some(left) => {
                self.left = left;
                Ok(Some(data))
            }
            None => {
                let error_code = Code::H3_EXCESSIVE_LOAD.value();
                self.inner.stop_sending(error_code);
                Err(StreamErrorIncoming::StreamTerminated { error_code })
            }
        })
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.inner.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.inner.recv_id()
    }
}

impl<S: quic::SendStream<B>, B: Buf> quic::SendStream<B> for Bounded<S> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.inner.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.inner.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.inner.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.inner.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.inner.send_id()
    }
}

/// A connection, or its opener of streams.
pub(super) struct BoundedConnection<C>(C);

impl BoundedConnection<h3_quinn::Connection> {
    pub(super) fn new(connection: quinn::Connection) -> Self {
        Self(h3_quinn::Connection::new(connection))
    }
}

impl<C> quic::OpenStreams<Bytes> for BoundedConnection<C>
where
    C: quic::OpenStreams<
            Bytes,
            BidiStream = h3_quinn::BidiStream<Bytes>,
            SendStream = h3_quinn::SendStream<Bytes>,
        >,
{
    type BidiStream = RequestStream;
    type SendStream = h3_quinn::SendStream<Bytes>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        self.0.poll_open_bidi(cx).map_ok(request)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        self.0.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.0.close(code, reason);
    }
}

impl quic::Connection<Bytes> for BoundedConnection<h3_quinn::Connection> {
    type RecvStream = Bounded<h3_quinn::RecvStream>;
    type OpenStreams = BoundedConnection<h3_quinn::OpenStreams>;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::RecvStream, ConnectionErrorIncoming>> {
        let accepted = quic::Connection::<Bytes>::poll_accept_recv(&mut self.0, cx);
        accepted.map_ok(|inner| Bounded { inner, left: CONTROL_BYTES })
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        quic::Connection::<Bytes>::poll_accept_bidi(&mut self.0, cx).map_ok(request)
    }

    fn opener(&self) -> Self::OpenStreams {
        BoundedConnection(quic::Connection::<Bytes>::opener(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};
    use std::sync::Arc;

    use super::super::{ServeOptions, Server, ServerEvent, Window};
    use crate::tls;

    const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    /// Several times what the server buffers before it reads (`tls::transport`).
    const MOST: usize = 64 << 20;

    /// How many bytes the server accepts of a stream with this start.
    async fn taken(to: SocketAddr, is_request: bool, start: &[u8]) -> usize {
        let mut endpoint = quinn::Endpoint::client(LOCAL).unwrap();
        endpoint.set_default_client_config(tls::client(None, tls::H3).unwrap());
        let connection = endpoint.connect(to, "localhost").unwrap().await.unwrap();
        let (mut stream, _answer) = match is_request {
            true => connection.open_bi().await.map(|(send, answer)| (send, Some(answer))).unwrap(),
            false => (connection.open_uni().await.unwrap(), None),
        };
        stream.write_all(start).await.unwrap();
        let mut sent = 0;
        while sent < MOST && stream.write_all(&[0; 65_536]).await.is_ok() {
            sent += 65_536;
        }
        sent
    }

    #[test]
    fn requests_without_end_are_not_gathered() {
        let dir = tempfile::tempdir().unwrap();
        let options = ServeOptions {
            dir: dir.path().to_owned(),
            bind: LOCAL,
            reports: None,
            identity: None,
            names: vec!["localhost".to_owned()],
            shared_key: None,
            limits: crate::OperatorLimits::default(),
            window: Window::Claw,
        };
        let server = Server::start(options, Arc::new(|_: &ServerEvent| {})).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // 2^40 bytes as a variable-length integer (RFC 9000, 16).
        let length = (0xC000_0000_0000_0000_u64 | 1 << 40).to_be_bytes();
        let frame = |start: &[u8]| [start, &length].concat();
        // HEADERS (RFC 9114, 7.2.2).
        let request = frame(&[0x01]);
        // A control stream, empty SETTINGS, and a frame of a reserved type (7.2.8).
        let control = frame(&[0x00, 0x04, 0x00, 0x21]);
        let to = server.address();
        // Both at once: each ends by the timeout of an idle connection.
        let (of_request, of_control) = runtime.block_on(async {
            tokio::join!(taken(to, true, &request), taken(to, false, &control))
        });
        assert!(of_request < MOST / 2, "{of_request} bytes");
        assert!(of_control < MOST / 2, "{of_control} bytes");
    }
}
