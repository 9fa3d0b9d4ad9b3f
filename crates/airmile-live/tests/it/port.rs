//! A modem on a pseudo-terminal: it speaks LOG_CONFIG, then replays a log.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread;
use std::time::Duration;

use crate::common::{bursts_of_file, decided, sample, wait_until};
use airmile::RadioOptions;
use airmile::codec::diag::log_config::{CMD_LOG_CONFIG, WANTED};
use airmile::codec::diag::{hdlc, nhdlc};
use airmile_host::source::{LogSource, ModemLink, SourceState};
use airmile_host::thread::StopFlag;
use airmile_live::engine::Engine;
use airmile_live::record::{RecordOptions, record};
use airmile_testing::shared_data;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The modem's end of a pseudo-terminal.
struct Modem {
    end: File,
}

impl Modem {
    /// Connects a modem: the port appears at `path`.
    fn plug(path: &Path) -> Self {
        let end = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&end).unwrap();
        unlockpt(&end).unwrap();
        let name = ptsname(&end, Vec::new()).unwrap();
        let _ = std::fs::remove_file(path);
        symlink(name.to_str().unwrap(), path).unwrap();
        Self { end: end.into() }
    }

    /// The next packet from the other end.
    fn packet(&mut self) -> Vec<u8> {
        let mut piece = Vec::new();
        loop {
            let mut byte = [0];
            // The other end may not be open yet.
            match self.end.read(&mut byte) {
                Ok(1) if byte[0] == hdlc::TERMINATOR => break,
                Ok(1) => piece.push(byte[0]),
                Ok(_) | Err(_) => thread::sleep(std::time::Duration::from_millis(5)),
            }
        }
        let mut frame = Vec::new();
        hdlc::unescape(&piece, &mut frame).unwrap();
        hdlc::check(&frame).unwrap().to_vec()
    }

    fn send(&mut self, packet: &[u8]) {
        let mut frame = Vec::new();
        hdlc::encode(packet, &mut frame);
        self.end.write_all(&frame).unwrap();
    }

    /// Answers until logs are enabled: returns the requested codes.
    fn turn_logs_on(&mut self) -> Vec<u16> {
        loop {
            let request = self.packet();
            assert_eq!(request[0], CMD_LOG_CONFIG);
            let mut answer = request[..8].to_vec();
            answer.extend([0; 4]);
            match request[4] {
                1 => {
                    let ranges = (0..16_u32).map(|i| if i == 11 { 0x1000_u32 } else { 0 });
                    ranges.for_each(|items| answer.extend(items.to_le_bytes()));
                    self.send(&answer);
                }
                3 => {
                    assert_eq!(request[8..16], [11, 0, 0, 0, 0, 0x10, 0, 0]);
                    answer.extend(&request[8..]);
                    self.send(&answer);
                    let mask = &request[16..];
                    let on = |item: &u16| mask[usize::from(item / 8)] >> (item % 8) & 1 == 1;
                    return (0..0x1000).filter(on).map(|item| 0xB000 | item).collect();
                }
                other => panic!("operation {other}"),
            }
        }
    }
}

fn start(
    path: &Path,
) -> (Engine, std::sync::mpsc::Receiver<std::sync::Arc<airmile_live::snapshot::LiveEvent>>) {
    let (sender, lines) = sync_channel(1 << 16);
    let source = LogSource::modem(path.to_owned());
    (Engine::start(&source, RadioOptions::default(), Some(sender)).unwrap(), lines)
}

/// A real log if it is available, else a generated one.
fn log() -> Vec<u8> {
    match shared_data("diag/seoul2021_upload_500KB.mi2log") {
        Some(real) => std::fs::read(real).unwrap(),
        None => sample("sample-download"),
    }
}

#[test]
fn a_modem_gives_the_bursts_of_the_log_that_it_replays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ttyUSB0");
    let (mut engine, lines) = start(&path);
    let mut modem = Modem::plug(&path);
    assert_eq!(modem.turn_logs_on(), WANTED);
    let bytes = log();
    modem.end.write_all(&bytes).unwrap();
    let published = engine.published();
    // Its answers are part of the data.
    wait_until("all is read", || published.now().view.intake.bytes > bytes.len() as u64);
    wait_until("it says so", || {
        let now = published.now();
        matches!(&now.source.state, SourceState::Connected(what) if what == "29 logs on")
    });
    wait_until("all frames are there", || published.now().view.intake.last_us == last_us(&bytes));
    engine.stop();
    assert_eq!(decided(lines.try_iter()), bursts_of_file(&bytes));
}

fn last_us(bytes: &[u8]) -> Option<i64> {
    let mut reader = airmile::codec::diag::LogReader::new();
    reader.push(bytes, &mut |_| {});
    reader.stats().last_ns.map(|ns| ns.div_euclid(1_000))
}

#[test]
fn a_modem_that_comes_back_is_asked_again_and_loses_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ttyUSB0");
    let bytes = sample("sample-video");
    let frames: Vec<&[u8]> = bytes.split_inclusive(|b| *b == hdlc::TERMINATOR).collect();
    let (before, after) = frames.split_at(frames.len() / 2);
    let (before, after) = (before.concat(), after.concat());
    let (mut engine, lines) = start(&path);
    let published = engine.published();

    let mut modem = Modem::plug(&path);
    modem.turn_logs_on();
    // It disconnects in the middle of a frame.
    modem.end.write_all(&before[..before.len() - 3]).unwrap();
    let last = last_us(&before[..before.len() - 3]);
    wait_until("the first half is read", || published.now().view.intake.last_us == last);
    drop(modem);
    wait_until("it is missed", || matches!(&published.now().source.state, SourceState::Waiting(_)));

    let mut modem = Modem::plug(&path);
    assert_eq!(modem.turn_logs_on(), WANTED);
    modem.end.write_all(&after).unwrap();
    wait_until("the rest is read", || published.now().view.intake.last_us == last_us(&after));
    engine.stop();
    assert_eq!(published.now().source.gaps, 1);
    assert_eq!(published.now().view.evidence_counts.holes, 1);

    let found = decided(lines.try_iter());
    let whole = bursts_of_file(&bytes);
    // Parameters of the judgement are learnt from the log: a lost frame changes hardly any burst.
    let same = whole.iter().filter(|burst| found.contains(burst)).count();
    println!("{same} of {} bursts are the same", whole.len());
    assert!(whole.len() - same <= 3 + whole.len() / 50, "{same} of {}", whole.len());
}

#[test]
fn the_refusal_of_a_modem_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ttyUSB0");
    let (mut engine, _lines) = start(&path);
    let published = engine.published();
    wait_until("there is no port", || {
        let now = published.now();
        matches!(&now.source.state, SourceState::Waiting(why) if why.contains("No such file"))
    });
    let mut modem = Modem::plug(&path);
    let request = modem.packet();
    modem.send(&[&[0x18], &request[..]].concat());
    wait_until("the refusal is reported", || {
        let now = published.now();
        matches!(&now.source.state, SourceState::Waiting(why) if why.contains("locked"))
    });
    engine.stop();
}

/// Of several ports the one that answers is read; another device's is not opened.
#[test]
fn the_port_of_a_modem_is_found() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    std::fs::create_dir(path("dev")).unwrap();
    for (name, driver) in [("ttyUSB0", "ch341"), ("ttyUSB1", "option1"), ("ttyUSB2", "option1")] {
        let device = path("sys/class/tty").join(name).join("device");
        std::fs::create_dir_all(&device).unwrap();
        symlink(Path::new("/sys/bus/usb-serial/drivers").join(driver), device.join("driver"))
            .unwrap();
    }
    let source = LogSource::Modem(ModemLink::Search(root.path().to_owned()));
    let (sender, lines) = sync_channel(1 << 16);
    let mut engine = Engine::start(&source, RadioOptions::default(), Some(sender)).unwrap();
    let published = engine.published();
    wait_until("there is none", || {
        let now = published.now();
        matches!(&now.source.state, SourceState::Waiting(why) if why.contains("/dev/ttyUSB*"))
    });
    let mut other = Modem::plug(&path("dev/ttyUSB0"));
    // An AT port answers with text.
    let mut at = Modem::plug(&path("dev/ttyUSB1"));
    let mut modem = Modem::plug(&path("dev/ttyUSB2"));
    at.packet();
    at.end.write_all(b"\r\nERROR\r\n").unwrap();
    assert_eq!(modem.turn_logs_on(), WANTED);
    let bytes = log();
    modem.end.write_all(&bytes).unwrap();
    wait_until("all frames are there", || published.now().view.intake.last_us == last_us(&bytes));
    wait_until("it says which", || {
        let now = published.now();
        let on = format!("{}: 29 logs on", path("dev/ttyUSB2").display());
        matches!(&now.source.state, SourceState::Connected(what) if *what == on)
    });
    engine.stop();
    assert_eq!(published.now().source.gaps, 0);
    assert_eq!(decided(lines.try_iter()), bursts_of_file(&bytes));
    // Nothing was asked of the other one.
    let mut byte = [0];
    rustix::io::ioctl_fionbio(&other.end, true).unwrap();
    assert!(other.end.read(&mut byte).is_err());
}

/// A modem on the socket of a DIAG router: it speaks LOG_CONFIG in frames of one kind,
/// then replays a log in them.
struct Router {
    listener: UnixListener,
    marks: bool,
}

impl Router {
    fn frame(&self, packet: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        if self.marks {
            nhdlc::encode(packet, &mut out).unwrap();
        } else {
            hdlc::encode(packet, &mut out);
        }
        out
    }

    /// The packets in the received data; frames of the other kind yield none.
    fn packets(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        if self.marks {
            let mut deframer = nhdlc::NhdlcDeframer::default();
            deframer.push(bytes);
            while let Some(packet) = deframer.poll() {
                packets.push(packet.to_vec());
            }
        } else {
            for piece in bytes.split(|byte| *byte == hdlc::TERMINATOR) {
                let mut frame = Vec::new();
                if hdlc::unescape(piece, &mut frame).is_ok()
                    && let Ok(packet) = hdlc::check(&frame)
                {
                    packets.push(packet.to_vec());
                }
            }
        }
        packets
    }

    /// Enables logs, sends all packets of a log, and keeps the connection until `done`.
    fn serve(self, log: Vec<u8>, done: Receiver<()>) {
        let (mut end, _) = self.listener.accept().unwrap();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let n = end.read(&mut buffer).unwrap();
            let mut is_on = false;
            for request in self.packets(&buffer[..n]) {
                let mut answer = request[..8].to_vec();
                answer.extend([0; 4]);
                if request[4] == 1 {
                    let ranges = (0..16_u32).map(|i| if i == 11 { 0x1000_u32 } else { 0 });
                    ranges.for_each(|items| answer.extend(items.to_le_bytes()));
                } else {
                    answer.extend(&request[8..]);
                    is_on = true;
                }
                end.write_all(&self.frame(&answer)).unwrap();
            }
            if is_on {
                break;
            }
        }
        for frame in log.split_inclusive(|byte| *byte == hdlc::TERMINATOR) {
            let mut packet = Vec::new();
            hdlc::unescape(&frame[..frame.len() - 1], &mut packet).unwrap();
            end.write_all(&self.frame(hdlc::check(&packet).unwrap())).unwrap();
        }
        let _ = done.recv();
    }
}

/// QRTR frames and HDLC over a unix socket: the same result as for the file.
#[test]
fn a_routers_socket_gives_the_bursts_of_the_log_that_it_replays() {
    for marks in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("diag");
        let router = Router { listener: UnixListener::bind(&path).unwrap(), marks };
        let bytes = sample("sample-download");
        let (done, until) = channel();
        let log = bytes.clone();
        let server = thread::spawn(move || router.serve(log, until));
        let (mut engine, lines) = start(&path);
        let published = engine.published();
        wait_until("all frames are there", || {
            published.now().view.intake.last_us == last_us(&bytes)
        });
        engine.stop();
        done.send(()).unwrap();
        server.join().unwrap();
        assert_eq!(decided(lines.try_iter()), bursts_of_file(&bytes), "{marks}");
    }
}

/// The contents of a recording equal the log sent.
#[test]
fn a_recording_gives_the_bursts_of_the_log_that_came() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("diag");
    let router = Router { listener: UnixListener::bind(&path).unwrap(), marks: true };
    let bytes = sample("sample-download");
    let (done, until) = channel();
    let log = bytes.clone();
    let server = thread::spawn(move || router.serve(log, until));
    let to = dir.path().join("drive");
    let stop = StopFlag::new();
    let options = RecordOptions {
        dir: to.clone(),
        rotate_bytes: bytes.len() as u64 / 4,
        rotate_after: Duration::from_secs(60),
        keep: None,
    };
    let recording = {
        let stop = stop.clone();
        thread::spawn(move || record(&LogSource::modem(path), None, options, &stop, |_, _| {}))
    };
    let recorded = || {
        let mut names: Vec<_> = match std::fs::read_dir(&to) {
            Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
            Err(_) => Vec::new(),
        };
        names.sort();
        let mut log = Vec::new();
        for name in &names {
            // The last one is still being written.
            let mut decoder = zstd::Decoder::new(File::open(name).unwrap()).unwrap();
            let _ = decoder.read_to_end(&mut log);
        }
        (names.len(), log)
    };
    wait_until("all is there", || last_us(&recorded().1) == last_us(&bytes));
    stop.set();
    let report = recording.join().unwrap().unwrap();
    done.send(()).unwrap();
    server.join().unwrap();
    let (files, log) = recorded();
    assert!(files >= 3 && report.logs.len() == files, "{report:?}");
    assert_eq!(report.log_bytes, log.len() as u64);
    assert_eq!(bursts_of_file(&log), bursts_of_file(&bytes));
}

/// A character device that is no terminal is opened and set up.
#[test]
fn a_device_that_is_no_terminal_is_asked() {
    let (mut engine, _lines) = start(Path::new("/dev/null"));
    let published = engine.published();
    wait_until(
        "it says why",
        || matches!(&published.now().source.state, SourceState::Waiting(why) if why.contains("closed")),
    );
    engine.stop();
}
