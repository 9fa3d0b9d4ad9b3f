//! A modem that speaks DIAG over a port or a socket: logs are enabled by commands whose
//! answers are checked, then bytes are forwarded as they arrive. If the modem
//! disconnects, it is waited for, and set up again.
//!
//! A serial port and a character device that is no terminal (`/dev/wwan0qcdm0`,
//! `/dev/mhi_DIAG`) use HDLC frames, a QRTR socket uses frames between marks. A socket of
//! a DIAG router may use either: they are tried in turn. The output is HDLC in any case,
//! so a recording is an ordinary log.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use airmile_decode::diag::hdlc;
use airmile_decode::diag::log_config::{ConfigError, ConfigStep, LogSetup};
use airmile_decode::diag::nhdlc::{self, NhdlcDeframer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use thiserror::Error;

use super::ModemLink;
use super::feed::{CHUNK_BYTES, Feed, RETRY, ReaderGone, SourceItem, SourceState};
use super::search::{SEARCHED, candidates};

/// Timeout of an answer, after which the command is repeated (chosen here).
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Maximum number of attempts until the port is closed and reopened (chosen here).
const ATTEMPTS: u32 = 3;
/// Timeout of waiting for bytes.
const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Maximum frame length of an answer (chosen here: a mask of 4,096 bits, escaped, with margin).
const MAX_ANSWER: usize = 4_096;

/// Why a port is not used.
#[derive(Debug, Error)]
enum PortError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the port was closed")]
    Closed,
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error(
        "no answer to LOG_CONFIG (attempts: {0}): is this the modem's DIAG port, and not its AT \
         port? Of several, try the others, or `auto`"
    )]
    NoAnswer(u32),
}

/// The framing of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Hdlc,
    Nhdlc,
}

/// The kind of opened file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenedKind {
    Device,
    Socket,
    Qrtr,
}

impl OpenedKind {
    /// The framing of an attempt: if unknown, both are tried in turn.
    const fn framing(self, attempt: u32) -> Framing {
        match self {
            Self::Device => Framing::Hdlc,
            Self::Qrtr => Framing::Nhdlc,
            Self::Socket if attempt.is_multiple_of(2) => Framing::Nhdlc,
            Self::Socket => Framing::Hdlc,
        }
    }
}

impl ModemLink {
    fn open(&self) -> io::Result<(File, OpenedKind)> {
        match self {
            Self::Path(path) if is_socket(path) => {
                let socket = UnixStream::connect(path)?;
                socket.set_nonblocking(true)?;
                Ok((OwnedFd::from(socket).into(), OpenedKind::Socket))
            }
            Self::Path(path) => Ok((open(path)?, OpenedKind::Device)),
            #[cfg(target_os = "linux")]
            Self::Qrtr => Ok((super::qrtr::connect()?, OpenedKind::Qrtr)),
            #[cfg(not(target_os = "linux"))]
            Self::Qrtr => Err(io::Error::new(ErrorKind::Unsupported, "QRTR needs Linux")),
            // Each candidate is opened by its path.
            Self::Search(_) => Err(ErrorKind::NotFound.into()),
        }
    }

    /// The links to try, in order.
    fn candidates(&self) -> Vec<Self> {
        match self {
            Self::Search(root) => candidates(root).into_iter().map(Self::Path).collect(),
            one => vec![one.clone()],
        }
    }
}

/// Reads the modem until the reader is gone.
pub(super) fn run(link: &ModemLink, feed: &Feed) -> Result<(), ReaderGone> {
    let searches = matches!(link, ModemLink::Search(_));
    let mut was_there = false;
    let mut reported = BTreeSet::new();
    loop {
        let links = link.candidates();
        let nothing_found = format!("no port of a modem: none of {SEARCHED}");
        if !links.is_empty() {
            reported.remove(&nothing_found);
        } else if !reported.contains(&nothing_found) {
            reported = BTreeSet::from([nothing_found.clone()]);
            feed.state(SourceState::Waiting(nothing_found))?;
        }
        for one in &links {
            let mut session = PortConnection {
                feed,
                kind: OpenedKind::Device,
                setup: Some(LogSetup::default()),
                piece: Vec::new(),
                framing: Framing::Hdlc,
                deframer: NhdlcDeframer::default(),
                found: searches.then(|| one.name()),
            };
            let ended = match one.open() {
                Ok((port, kind)) => {
                    if was_there && !searches {
                        feed.give(SourceItem::Gap)?;
                    }
                    session.kind = kind;
                    session.run(port, &mut was_there)
                }
                Err(error) => Err(PortEnd::Port(error.into())),
            };
            match ended {
                Ok(()) => {}
                Err(PortEnd::Stopped) => return Err(ReaderGone),
                Err(PortEnd::Port(error)) => {
                    if session.setup.is_none() {
                        reported.clear();
                    }
                    let why = match &session.found {
                        Some(port) => format!("{port}: {error}"),
                        None => error.to_string(),
                    };
                    // Each reason once: it may stay away for hours.
                    if reported.insert(why.clone()) {
                        feed.state(SourceState::Waiting(why))?;
                    }
                }
            }
        }
        feed.pause(RETRY)?;
    }
}

fn is_socket(path: &Path) -> bool {
    path.metadata().is_ok_and(|there| there.file_type().is_socket())
}

/// Opens a port; a terminal in raw mode: no echo, no line ends, all eight bits. USB ports
/// ignore the speed. A character device that is no terminal passes all bytes unchanged.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let port = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    match tcgetattr(&port) {
        Ok(mut settings) => {
            settings.make_raw();
            tcsetattr(&port, OptionalActions::Now, &settings)?;
        }
        Err(Errno::NOTTY | Errno::INVAL) if port.metadata()?.file_type().is_char_device() => {}
        Err(error) => return Err(error.into()),
    }
    Ok(port)
}

enum PortEnd {
    Port(PortError),
    Stopped,
}

impl From<ReaderGone> for PortEnd {
    fn from(_: ReaderGone) -> Self {
        Self::Stopped
    }
}

impl<E: Into<PortError>> From<E> for PortEnd {
    fn from(error: E) -> Self {
        Self::Port(error.into())
    }
}

/// One connection.
struct PortConnection<'a> {
    feed: &'a Feed,
    kind: OpenedKind,
    /// While the logs are not enabled.
    setup: Option<LogSetup>,
    /// Bytes after the last terminator.
    piece: Vec<u8>,
    framing: Framing,
    deframer: NhdlcDeframer,
    /// The port's name, if it was searched for.
    found: Option<String>,
}

impl PortConnection<'_> {
    fn run(&mut self, mut port: File, was_there: &mut bool) -> Result<(), PortEnd> {
        let mut buffer = vec![0; CHUNK_BYTES];
        // Of several ports, the next one is tried soon.
        let max_attempts = if self.found.is_some() { 1 } else { ATTEMPTS };
        let mut attempts = 0;
        let mut asked: Option<Instant> = None;
        loop {
            if self.feed.is_stopped() {
                return Err(PortEnd::Stopped);
            }
            if let Some(setup) = &mut self.setup
                && asked.is_none_or(|asked| asked.elapsed() > ANSWER_WITHIN)
            {
                if attempts == max_attempts {
                    return Err(PortError::NoAnswer(attempts).into());
                }
                self.framing = self.kind.framing(attempts);
                attempts += 1;
                asked = Some(Instant::now());
                let request = setup.begin();
                send(&mut port, &request, self.framing)?;
            }
            if !readable(&port)? {
                continue;
            }
            match port.read(&mut buffer) {
                Ok(0) => return Err(PortError::Closed.into()),
                Ok(n) => {
                    let mut bytes = self.as_hdlc(buffer.get(..n).unwrap_or_default());
                    let answer = self.look_for_answers(&mut port, &bytes)?;
                    if self.found.is_some() && (self.setup.is_some() || answer.is_some()) {
                        // Bytes of a port that may be another one are no log, nor is the rest of
                        // an answer whose first part came before.
                        let end = answer
                            .as_ref()
                            .and_then(|_| bytes.iter().position(|byte| *byte == hdlc::TERMINATOR));
                        let from = end.map_or(bytes.len(), |end| end + 1);
                        bytes.drain(..from);
                    }
                    if let Some(on) = answer {
                        if *was_there && self.found.is_some() {
                            self.feed.give(SourceItem::Gap)?;
                        }
                        *was_there = true;
                        let on = match &self.found {
                            Some(name) => format!("{name}: {on}"),
                            None => on,
                        };
                        self.feed.state(SourceState::Connected(on))?;
                    }
                    if !bytes.is_empty() {
                        self.feed.give(SourceItem::Bytes(bytes))?;
                    }
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The received bytes, in the frames of a log.
    fn as_hdlc(&mut self, bytes: &[u8]) -> Vec<u8> {
        match self.framing {
            Framing::Hdlc => bytes.to_vec(),
            Framing::Nhdlc => {
                let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 16);
                self.deframer.push(bytes);
                self.deframer.take_as_hdlc(&mut out);
                out
            }
        }
    }

    /// Searches the received data for answers, until the logs are enabled; then returns a
    /// description of them.
    fn look_for_answers(
        &mut self,
        port: &mut File,
        bytes: &[u8],
    ) -> Result<Option<String>, PortError> {
        let Some(setup) = &mut self.setup else { return Ok(None) };
        for part in bytes.split_inclusive(|byte| *byte == hdlc::TERMINATOR) {
            self.piece.extend(part);
            if self.piece.len() > 2 * MAX_ANSWER {
                self.piece.clear();
            }
            if self.piece.pop_if(|last| *last == hdlc::TERMINATOR).is_none() {
                continue;
            }
            let mut frame = Vec::new();
            let good = hdlc::unescape(&self.piece, &mut frame).is_ok();
            self.piece.clear();
            let Some(packet) = good.then(|| hdlc::check(&frame).ok()).flatten() else { continue };
            match setup.take(packet)? {
                ConfigStep::Wait => {}
                ConfigStep::Send(request) => send(port, &request, self.framing)?,
                ConfigStep::Done { on, off } => {
                    self.setup = None;
                    return Ok(Some(words(on.len(), &off)));
                }
            }
        }
        Ok(None)
    }
}

fn words(on: usize, off: &std::collections::BTreeSet<u16>) -> String {
    let off: Vec<String> = off.iter().map(|code| format!("0x{code:04X}")).collect();
    match off.len() {
        0 => format!("{on} logs on"),
        _ => format!("{on} logs on; the modem does not have {}", off.join(", ")),
    }
}

/// Sends a packet; a port that accepts nothing for long counts as closed.
fn send(port: &mut File, packet: &[u8], framing: Framing) -> Result<(), PortError> {
    let mut frame = Vec::new();
    match framing {
        Framing::Hdlc => hdlc::encode(packet, &mut frame),
        Framing::Nhdlc => {
            let fits = nhdlc::encode(packet, &mut frame);
            fits.ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
        }
    }
    let begun = Instant::now();
    let mut rest = frame.as_slice();
    while !rest.is_empty() {
        match port.write(rest) {
            Ok(0) => return Err(PortError::Closed),
            Ok(n) => rest = rest.get(n..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error)
                if error.kind() == ErrorKind::WouldBlock && begun.elapsed() < ANSWER_WITHIN =>
            {
                let mut fds = [PollFd::new(port, PollFlags::OUT)];
                poll(&mut fds, Some(&POLL)).map_err(io::Error::from)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn readable(port: &File) -> io::Result<bool> {
    let mut fds = [PollFd::new(port, PollFlags::IN)];
    match poll(&mut fds, Some(&POLL)) {
        Ok(n) => Ok(n > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
