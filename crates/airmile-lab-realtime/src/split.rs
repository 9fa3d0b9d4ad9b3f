//! A transparent split-TCP box based on the kernel's TCP: it answers for the server and
//! connects to the server for the client (BurstTracker, 4.5).
//!
//! Routing directs the packets of intercepted ports to the box
//! (`network::Host::middlebox`); sockets bound to foreign addresses (`IP_TRANSPARENT`)
//! terminate the connections.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::mpsc;
use std::thread;

use airmile_host::Attempt;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::error::{Error, Result};
use crate::namespace::Namespace;

/// Backlog of incoming connections.
const BACKLOG: i32 = 1_024;

/// Splits the connections to these ports, in the box's namespace.
pub(crate) fn split(namespace: &Namespace, ports: Vec<u16>) -> Result<()> {
    let (bound, is_bound) = mpsc::channel();
    let work = move || {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(bound.send(Err(error))),
        };
        runtime.block_on(async {
            let mut listeners = tokio::task::JoinSet::new();
            for port in ports {
                match listen(port) {
                    Ok(listener) => drop(listeners.spawn(take_all(listener))),
                    Err(error) => return drop(bound.send(Err(error))),
                }
            }
            let _ = bound.send(Ok(()));
            // They end with the process.
            while listeners.join_next().await.is_some() {}
        });
    };
    namespace
        .run(|| thread::Builder::new().name("split".to_owned()).spawn(work).map(drop))?
        .attempt(|| "cannot start the thread of the middlebox".to_owned())?;
    let bound = is_bound.recv().map_err(|_| Error::Thread("the middlebox"))?;
    Ok(bound.attempt(|| "the middlebox cannot listen".to_owned())?)
}

/// A socket that may use another host's address.
fn transparent() -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_ip_transparent_v4(true)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn listen(port: u16) -> io::Result<TcpListener> {
    let socket = transparent()?;
    socket.bind(&SocketAddr::from(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)).into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

async fn take_all(listener: TcpListener) {
    while let Ok((client, _)) = listener.accept().await {
        // If one side fails, both are closed: each host sees an ended connection.
        tokio::spawn(async { join(client).await.ok() });
    }
}

/// Opens the server side of a client's connection and relays data.
async fn join(mut client: TcpStream) -> io::Result<()> {
    let (server, from) = (client.local_addr()?, client.peer_addr()?);
    let socket = transparent()?;
    socket.bind(&from.into())?;
    let mut server = TcpSocket::from_std_stream(socket.into()).connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}
