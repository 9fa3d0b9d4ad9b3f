//! MQTT 3.1.1 over TCP, as much as publishing at QoS 0 takes: two packets there, one back.
//! Numbers are those of the standard's sections.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// A broker answers at once, or is away (chosen here).
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// The broker may close a connection without a packet in one and a half of it, in s (3.1.2.10).
/// A message a second is sent.
const KEEP_ALIVE_S: u16 = 60;

/// Types of packets with their flags (2.2.1).
const CONNECT: u8 = 0x10;
const CONNECTION_ACCEPTED: [u8; 2] = [0x20, 2];
const PUBLISH: u8 = 0x30;
const DISCONNECT: [u8; 2] = [0xe0, 0];

/// A connection to a broker.
#[derive(Debug)]
pub(super) struct Connection<S: Write = TcpStream>(S);

impl Connection {
    /// Connects, as the user of `AIRMILE_MQTT_USER` and `AIRMILE_MQTT_PASSWORD` if these are set.
    pub(super) fn open((host, port): (&str, u16)) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, ANSWERS_WITHIN) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
                    stream.set_write_timeout(Some(ANSWERS_WITHIN))?;
                    stream.set_nodelay(true)?;
                    return Self::begin(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl<S: Read + Write> Connection<S> {
    fn begin(mut stream: S) -> io::Result<Self> {
        let client = format!("airmile-qcut-{}", std::process::id());
        let of = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let (user, password) = (of("AIRMILE_MQTT_USER"), of("AIRMILE_MQTT_PASSWORD"));
        stream.write_all(&connect(&client, user.as_deref(), password.as_deref())?)?;
        let mut answer = [0; 4];
        stream.read_exact(&mut answer)?;
        // The code of the answer (3.2.2.3).
        match (answer[..2] == CONNECTION_ACCEPTED, answer[3]) {
            (true, 0) => Ok(Self(stream)),
            (true, 4 | 5) => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the broker refuses the user (AIRMILE_MQTT_USER, AIRMILE_MQTT_PASSWORD)",
            )),
            _ => Err(io::Error::new(
                io::ErrorKind::ConnectionRefused,
                "what answers does not accept MQTT 3.1.1",
            )),
        }
    }
}

impl<S: Write> Connection<S> {
    /// Publishes a message, at most once (QoS 0).
    pub(super) fn publish(&mut self, topic: &str, message: &[u8]) -> io::Result<()> {
        let mut body = Vec::new();
        text(&mut body, topic)?;
        body.extend_from_slice(message);
        self.0.write_all(&packet(PUBLISH, &body)?)
    }
}

impl<S: Write> Drop for Connection<S> {
    fn drop(&mut self) {
        let _ = self.0.write_all(&DISCONNECT);
    }
}

/// A clean session (3.1).
fn connect(client: &str, user: Option<&str>, password: Option<&str>) -> io::Result<Vec<u8>> {
    const CLEAN: u8 = 0x02;
    const PASSWORD: u8 = 0x40;
    const USER: u8 = 0x80;
    // A password without a user is not allowed (3.1.2.9).
    let password = password.filter(|_| user.is_some());
    let flag = |there: bool, flag: u8| if there { flag } else { 0 };
    let flags = CLEAN | flag(user.is_some(), USER) | flag(password.is_some(), PASSWORD);
    let mut body = Vec::new();
    text(&mut body, "MQTT")?;
    body.extend([4, flags]);
    body.extend(KEEP_ALIVE_S.to_be_bytes());
    for value in [Some(client), user, password].into_iter().flatten() {
        text(&mut body, value)?;
    }
    packet(CONNECT, &body)
}

/// A string with its length (1.5.3).
fn text(out: &mut Vec<u8>, value: &str) -> io::Result<()> {
    let length = u16::try_from(value.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    out.extend(length.to_be_bytes());
    out.extend_from_slice(value.as_bytes());
    Ok(())
}

/// A packet: type, length in groups of seven bits (2.2.3), body.
fn packet(kind: u8, body: &[u8]) -> io::Result<Vec<u8>> {
    const MOST: usize = 268_435_455;
    let mut length = Some(body.len()).filter(|length| *length <= MOST);
    let mut out = vec![kind];
    while let Some(left) = length {
        let more = left > 0x7f;
        out.push((left & 0x7f) as u8 | if more { 0x80 } else { 0 });
        length = more.then_some(left >> 7);
    }
    if out.len() == 1 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    out.extend_from_slice(body);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A broker: what it answers, and what it got.
    #[derive(Debug)]
    struct Broker<'a> {
        answer: &'a [u8],
        got: &'a mut Vec<u8>,
    }

    impl Read for Broker<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            self.answer.read(to)
        }
    }

    impl Write for Broker<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.got.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn packets_are_those_of_the_standard() {
        // By hand from 3.1: protocol name, level 4, clean session, 60 s, client "a".
        let expected = b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01a";
        assert_eq!(connect("a", None, Some("lost")).unwrap(), expected);
        let expected = b"\x10\x13\x00\x04MQTT\x04\xc2\x00\x3c\x00\x01a\x00\x01u\x00\x01p";
        assert_eq!(connect("a", Some("u"), Some("p")).unwrap(), expected);
        // The table of 2.2.3.
        for (bytes, length) in
            [(0, &[0_u8][..]), (127, &[0x7f]), (128, &[0x80, 1]), (16_383, &[0xff, 0x7f])]
        {
            let made = packet(PUBLISH, &vec![0; bytes]).unwrap();
            assert_eq!(made[1..made.len() - bytes], *length, "{bytes}");
        }
        assert!(text(&mut Vec::new(), &"x".repeat(65_536)).is_err());
    }

    #[test]
    fn a_message_follows_the_brokers_answer() {
        let mut got = Vec::new();
        let broker = Broker { answer: &[0x20, 2, 0, 0], got: &mut got };
        let mut connection = Connection::begin(broker).unwrap();
        connection.publish("a/b", b"{}").unwrap();
        drop(connection);
        assert!(got.starts_with(&[CONNECT]));
        assert!(got.ends_with(b"\x30\x07\x00\x03a/b{}\xe0\x00"), "{got:x?}");
    }

    #[test]
    fn other_answers_are_errors() {
        for (answer, kind) in [
            (&[0x20, 2, 0, 5][..], io::ErrorKind::PermissionDenied),
            (&[0x20, 2, 0, 3], io::ErrorKind::ConnectionRefused),
            (b"HTTP", io::ErrorKind::ConnectionRefused),
            (&[0x20], io::ErrorKind::UnexpectedEof),
        ] {
            let mut got = Vec::new();
            let error = Connection::begin(Broker { answer, got: &mut got }).unwrap_err();
            assert_eq!(error.kind(), kind, "{answer:x?}");
        }
    }
}
