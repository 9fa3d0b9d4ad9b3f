//! A session without encryption: packets have the sizes of TLS 1.3 with AES-128-GCM, the
//! handshake has its messages and round trips, and the same seed gives the same bytes. For
//! emulated networks only.

use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey,
    HmacKey, KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

/// Bytes of an AEAD's tag, and of header protection's sample (RFC 9001, 5.3, 5.4).
const TAG_BYTES: usize = 16;

// Message sizes of the handshake: chosen here, typical of a browser's ClientHello, a
// ServerHello with a key share, a chain of two certificates with its signature, and a
// Finished with SHA-256.
const CLIENT_HELLO_BYTES: usize = 300;
const SERVER_HELLO_BYTES: usize = 122;
const SERVER_FLIGHT_BYTES: usize = 3000;
const FINISHED_BYTES: usize = 36;

/// Keys without effect.
#[derive(Debug, Clone, Copy)]
pub(super) struct NullKey;

impl PacketKey for NullKey {
    fn encrypt(&self, _packet: u64, buf: &mut [u8], _header_len: usize) {
        let tag = buf.len().saturating_sub(TAG_BYTES);
        buf[tag..].fill(0);
    }

    fn decrypt(&self, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG_BYTES).ok_or(CryptoError)?;
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for NullKey {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG_BYTES
    }
}

impl AeadKey for NullKey {
    fn seal(&self, data: &mut Vec<u8>, _additional_data: &[u8]) -> Result<(), CryptoError> {
        data.extend([0; TAG_BYTES]);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let length = data.len().checked_sub(TAG_BYTES).ok_or(CryptoError)?;
        Ok(&mut data[..length])
    }
}

impl HandshakeTokenKey for NullKey {
    fn aead_from_hkdf(&self, _random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(*self)
    }
}

impl HmacKey for NullKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        // FNV-1a, extended for the output: only distinguishes connection IDs.
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut step = |byte: u8| {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            (hash >> 56) as u8
        };
        data.iter().for_each(|&byte| {
            step(byte);
        });
        signature_out.iter_mut().for_each(|byte| *byte = step(0));
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut own = vec![0; signature.len()];
        self.sign(data, &mut own);
        if own == signature { Ok(()) } else { Err(CryptoError) }
    }
}

fn pair<T>(key: impl Fn() -> T) -> KeyPair<T> {
    KeyPair { local: key(), remote: key() }
}

fn keys() -> Keys {
    Keys {
        header: pair(|| Box::new(NullKey) as Box<dyn HeaderKey>),
        packet: pair(|| Box::new(NullKey) as Box<dyn PacketKey>),
    }
}

/// Progress of a side in the handshake of RFC 9001, 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HandshakeStep {
    /// Client: the ClientHello must be written.
    ClientHello,
    /// Waiting for the peer's next message.
    AwaitHello,
    /// Client: the handshake keys are due. Server: also its hello.
    HandshakeKeys,
    /// Server: its flight and the last keys are due.
    ServerFlight,
    /// Client: waiting for the server's flight; server: waiting for the client's Finished.
    AwaitFlight,
    /// Client: Finished and the last keys are due.
    Finished,
    Done,
}

/// One side's session.
struct NullSession {
    side: Side,
    own: Vec<u8>,
    peer: Option<TransportParameters>,
    step: HandshakeStep,
    inbox: Vec<u8>,
}

impl NullSession {
    fn new(side: Side, params: &TransportParameters) -> Self {
        let mut own = Vec::new();
        params.write(&mut own);
        let step =
            if side.is_client() { HandshakeStep::ClientHello } else { HandshakeStep::AwaitHello };
        Self { side, own, peer: None, step, inbox: Vec::new() }
    }

    /// Writes a message: its length, as in TLS, then the contents.
    fn message(length: usize, content: &[u8], buf: &mut Vec<u8>) {
        let length = length.max(content.len() + 5);
        buf.extend(&(length as u32).to_be_bytes()[1..]);
        buf.extend((content.len() as u16).to_be_bytes());
        buf.extend(content);
        buf.resize(buf.len() + length - 5 - content.len(), 0);
    }

    /// The contents of the next complete message, if any.
    fn take_message(&mut self) -> Option<Vec<u8>> {
        let head: [u8; 5] = self.inbox.get(..5)?.try_into().ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let content = usize::from(u16::from_be_bytes([head[3], head[4]]));
        if self.inbox.len() < length || length < content + 5 {
            return None;
        }
        let message: Vec<u8> = self.inbox.drain(..length).collect();
        Some(message[5..5 + content].to_vec())
    }

    fn take_params(&mut self, content: &[u8]) -> Result<(), TransportError> {
        self.peer = Some(TransportParameters::read(self.side, &mut Cursor::new(content))?);
        Ok(())
    }
}

impl Session for NullSession {
    fn initial_keys(&self, _dst_cid: &ConnectionId, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.peer.as_ref().map(|_| Box::new(()) as Box<dyn Any>)
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.step != HandshakeStep::Done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inbox.extend(buf);
        let client = self.side.is_client();
        let mut fresh = false;
        while let Some(content) = self.take_message() {
            match self.step {
                HandshakeStep::AwaitHello => {
                    if !client {
                        self.take_params(&content)?;
                        fresh = true;
                    }
                    self.step = HandshakeStep::HandshakeKeys;
                }
                HandshakeStep::AwaitFlight if client => {
                    self.take_params(&content)?;
                    fresh = true;
                    self.step = HandshakeStep::Finished;
                }
                HandshakeStep::AwaitFlight => self.step = HandshakeStep::Done,
                // A message out of order.
                _ => return Err(TransportErrorCode::PROTOCOL_VIOLATION.into()),
            }
        }
        Ok(fresh)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let client = self.side.is_client();
        match self.step {
            HandshakeStep::ClientHello => {
                Self::message(CLIENT_HELLO_BYTES, &self.own, buf);
                self.step = HandshakeStep::AwaitHello;
                None
            }
            HandshakeStep::HandshakeKeys => {
                if client {
                    self.step = HandshakeStep::AwaitFlight;
                } else {
                    Self::message(SERVER_HELLO_BYTES, &[], buf);
                    self.step = HandshakeStep::ServerFlight;
                }
                Some(keys())
            }
            HandshakeStep::ServerFlight => {
                Self::message(SERVER_FLIGHT_BYTES, &self.own, buf);
                self.step = HandshakeStep::AwaitFlight;
                Some(keys())
            }
            HandshakeStep::Finished => {
                Self::message(FINISHED_BYTES, &[], buf);
                self.step = HandshakeStep::Done;
                Some(keys())
            }
            HandshakeStep::AwaitHello | HandshakeStep::AwaitFlight | HandshakeStep::Done => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(pair(|| Box::new(NullKey) as Box<dyn PacketKey>))
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], payload: &[u8]) -> bool {
        payload.len() >= TAG_BYTES
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        output.fill(0);
        Ok(())
    }
}

/// Starts sessions of either side.
#[derive(Debug, Clone, Copy)]
pub(super) struct NullCrypto;

impl ClientConfig for NullCrypto {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(NullSession::new(Side::Client, params)))
    }
}

impl ServerConfig for NullCrypto {
    fn initial_keys(
        &self,
        _version: u32,
        _dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: &ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        self: Arc<Self>,
        _version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        Box::new(NullSession::new(Side::Server, params))
    }
}
