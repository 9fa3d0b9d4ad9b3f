//! A listener whose connections cannot exhaust the machine, nor block others.
//!
//! A connection waits until one of its requests is admitted. Waiting and admitted connections
//! have places of their own; when all of a kind are taken, the oldest connection of the
//! address with the most of them is closed. So a client with the token gets a place however
//! many other connections wait, and, without a token, however many connections others keep
//! open.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};

use crate::net::host_prefix;
use crate::thread::lock;

/// Limits on connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLimits {
    /// Maximum concurrent connections without an admitted request.
    pub(super) waiting: usize,
    /// Maximum concurrent connections with one.
    pub(super) admitted: usize,
    /// Maximum time to receive a request's head; then the connection is closed.
    pub(super) header: Duration,
    /// A connection to which nothing was sent for this time is closed. Received data does
    /// not count: otherwise a client that sends a byte at a time would hold a place indefinitely.
    pub(super) idle: Duration,
}

impl Default for ConnectionLimits {
    /// Chosen here: a head is one or two packets; three times the interval of comments on
    /// an idle event stream.
    fn default() -> Self {
        let (header, idle) = (Duration::from_secs(5), Duration::from_secs(30));
        Self { waiting: 128, admitted: 128, header, idle }
    }
}

pub(super) struct LimitedListener {
    listener: TcpListener,
    limits: ConnectionLimits,
    places: Arc<Mutex<ConnectionSlots>>,
}

impl LimitedListener {
    pub(super) fn new(listener: TcpListener, limits: ConnectionLimits) -> Self {
        Self { listener, limits, places: ConnectionSlots::new(limits) }
    }
}

impl Listener for LimitedListener {
    type Io = LimitedConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (LimitedConnection, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let (place, closed) = ConnectionSlot::take(&self.places, host_prefix(address.ip()));
        let limits = self.limits;
        let deadline = Box::pin(sleep(limits.header));
        let connection =
            LimitedConnection { stream, deadline, closed, is_answering: false, limits, place };
        (connection, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Connections with places, in order of arrival; dropping the sender closes the connection.
type Places = BTreeMap<u64, (IpAddr, oneshot::Sender<()>)>;

#[derive(Debug)]
struct ConnectionSlots {
    limits: ConnectionLimits,
    next: u64,
    waiting: Places,
    admitted: Places,
}

/// Closes the oldest connection of the address with the most of them, if all places are taken.
fn make_room(places: &mut Places, limit: usize) {
    if places.len() < limit {
        return;
    }
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    for (from, _) in places.values() {
        *counts.entry(*from).or_default() += 1;
    }
    let most = counts.values().copied().max().unwrap_or(0);
    let oldest = places.iter().find(|(_, (from, _))| counts.get(from) == Some(&most));
    if let Some(id) = oldest.map(|(id, _)| *id) {
        places.remove(&id);
    }
}

impl ConnectionSlots {
    fn new(limits: ConnectionLimits) -> Arc<Mutex<Self>> {
        let (waiting, admitted) = (Places::new(), Places::new());
        Arc::new(Mutex::new(Self { limits, next: 0, waiting, admitted }))
    }
}

/// The place of a connection, freed when dropped.
#[derive(Debug)]
struct ConnectionSlot {
    id: u64,
    places: Arc<Mutex<ConnectionSlots>>,
}

impl ConnectionSlot {
    fn take(
        places: &Arc<Mutex<ConnectionSlots>>,
        from: IpAddr,
    ) -> (Arc<Self>, oneshot::Receiver<()>) {
        let (keep, closed) = oneshot::channel();
        let mut all = lock(places);
        let limit = all.limits.waiting;
        make_room(&mut all.waiting, limit);
        all.next += 1;
        let id = all.next;
        all.waiting.insert(id, (from, keep));
        (Arc::new(Self { id, places: Arc::clone(places) }), closed)
    }

    /// Admits the connection; returns whether it still has a place.
    fn admit(&self) -> bool {
        let mut all = lock(&self.places);
        if all.admitted.contains_key(&self.id) {
            return true;
        }
        // Its place may have been reassigned just now.
        let Some(kept) = all.waiting.remove(&self.id) else { return false };
        let limit = all.limits.admitted;
        make_room(&mut all.admitted, limit);
        all.admitted.insert(self.id, kept);
        true
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut all = lock(&self.places);
        all.admitted.remove(&self.id);
        all.waiting.remove(&self.id);
    }
}

/// The place of the connection of a request.
#[derive(Debug, Clone)]
pub(super) struct ConnectionPlace(Arc<ConnectionSlot>);

impl ConnectionPlace {
    /// Admits a request; returns whether there is a place for its connection.
    pub(super) fn admit(&self) -> bool {
        self.0.admit()
    }
}

impl Connected<IncomingStream<'_, LimitedListener>> for ConnectionPlace {
    fn connect_info(stream: IncomingStream<'_, LimitedListener>) -> Self {
        Self(Arc::clone(&stream.io().place))
    }
}

/// A connection that holds one of the places.
pub(super) struct LimitedConnection {
    stream: TcpStream,
    deadline: Pin<Box<Sleep>>,
    /// Resolves when its place is reassigned.
    closed: oneshot::Receiver<()>,
    is_answering: bool,
    limits: ConnectionLimits,
    place: Arc<ConnectionSlot>,
}

impl LimitedConnection {
    /// The result, or an error if it took too long or the place was reassigned.
    fn unless_over<T>(
        &mut self,
        cx: &mut Context<'_>,
        tried: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let is_late = self.deadline.as_mut().poll(cx).is_ready();
        if is_late || Pin::new(&mut self.closed).poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        tried
    }
}

impl AsyncRead for LimitedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let tried = Pin::new(&mut self.stream).poll_read(cx, buf);
        if self.is_answering && buf.filled().len() > before {
            // Another request begins.
            self.is_answering = false;
            let until = Instant::now() + self.limits.header;
            self.deadline.as_mut().reset(until);
        }
        self.unless_over(cx, tried)
    }
}

impl AsyncWrite for LimitedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.stream).poll_write(cx, buf);
        if tried.is_ready() {
            self.is_answering = true;
            let until = Instant::now() + self.limits.idle;
            self.deadline.as_mut().reset(until);
        }
        self.unless_over(cx, tried)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use oneshot::error::TryRecvError::{Closed, Empty};

    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn a_flood_of_one_address_takes_no_place_of_others() {
        let limits = ConnectionLimits::default();
        let places = ConnectionSlots::new(limits);
        let (other, mut other_closed) = ConnectionSlot::take(&places, address(2));
        let mut flood: Vec<_> =
            (0..1_000).map(|_| ConnectionSlot::take(&places, address(1))).collect();
        assert!(lock(&places).waiting.len() <= limits.waiting);
        // The oldest of the flood were closed, and no others.
        assert_eq!(flood[0].1.try_recv(), Err(Closed));
        assert_eq!(flood[999].1.try_recv(), Err(Empty));
        assert_eq!(other_closed.try_recv(), Err(Empty));
        assert!(!flood[0].0.admit());
        assert!(other.admit() && other.admit());
        assert_eq!(lock(&places).admitted.len(), 1);
        drop((other, flood));
        let left = lock(&places);
        assert_eq!((left.admitted.len(), left.waiting.len()), (0, 0));
    }

    /// Connections that are kept open after a request do not keep later clients out.
    #[test]
    fn places_of_the_oldest_connections_are_reassigned() {
        let limits = ConnectionLimits::default();
        let places = ConnectionSlots::new(limits);
        let (other, mut other_closed) = ConnectionSlot::take(&places, address(2));
        assert!(other.admit());
        let mut all: Vec<_> =
            (0..limits.admitted).map(|_| ConnectionSlot::take(&places, address(1))).collect();
        assert!(all.iter().all(|(place, _)| place.admit()));
        assert_eq!(lock(&places).admitted.len(), limits.admitted);
        // The oldest of the address with the most of them was closed, and no other.
        assert_eq!(all[0].1.try_recv(), Err(Closed));
        assert_eq!(all[1].1.try_recv(), Err(Empty));
        assert_eq!(other_closed.try_recv(), Err(Empty));
        assert!(!all[0].0.admit() && all[1].0.admit());
    }
}
