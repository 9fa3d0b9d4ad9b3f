//! Inputs: payloads of every message and version, and files made of them.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use airmile_decode::diag::{Message, dlf, frame, hdlc, msg};
use airmile_emulate::net::{IpPacket, Transport};
use airmile_emulate::tcp::{Flags, Literal, SackBlock, TcpSegment};
use rand::{Rng, RngExt};

/// The beginning of a message's payload, for each message and version.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Log code.
    pub code: u16,
    /// Message version.
    pub version: u8,
    /// Major version of NR messages, else 0.
    pub major: u8,
    /// Subpacket id and version.
    pub subpacket: Option<(u8, u8)>,
}

/// Every message and version that has a layout.
#[must_use]
pub fn kinds() -> Vec<Kind> {
    let mut out = Vec::new();
    let mut add = |code, id: Option<u8>, versions: &[u8]| {
        out.extend(versions.iter().map(|&version| match id {
            Some(id) => Kind { code, version: 1, major: 0, subpacket: Some((id, version)) },
            None => Kind { code, version, major: 0, subpacket: None },
        }));
    };
    add(0xB063, Some(7), msg::MacDl::VERSIONS);
    add(0xB063, None, msg::MacDlReport::VERSIONS);
    add(0xB064, Some(8), msg::MacUl::VERSIONS);
    add(0xB064, Some(8), msg::MacUl::CHECKED_VERSIONS);
    add(0xB066, Some(10), msg::UlBufferStatus::VERSIONS);
    add(0xB067, Some(11), msg::UlTxStatistics::VERSIONS);
    add(0xB082, Some(65), msg::RlcDl::VERSIONS);
    add(0xB087, Some(66), msg::RlcCounters::<0xB087>::VERSIONS);
    add(0xB092, Some(70), msg::RlcUl::VERSIONS);
    add(0xB097, Some(71), msg::RlcCounters::<0xB097>::VERSIONS);
    add(0xB0A3, Some(195), msg::PdcpCipher::<0xB0A3>::VERSIONS);
    add(0xB0B3, Some(195), msg::PdcpCipher::<0xB0B3>::VERSIONS);
    add(0xB0C0, None, msg::RrcOta::VERSIONS);
    add(0xB0C1, None, msg::RrcMib::VERSIONS);
    add(0xB0C2, None, msg::RrcServCell::VERSIONS);
    add(0xB126, None, msg::PdschPacket::VERSIONS);
    add(0xB130, None, msg::PdcchDecoding::VERSIONS);
    add(0xB132, None, msg::PdschDecoding::VERSIONS);
    add(0xB139, None, msg::PuschTx::VERSIONS);
    add(0xB173, None, msg::PdschStat::VERSIONS);
    add(0xB179, None, msg::IntraFreqMeas::VERSIONS);
    add(0xB18A, None, msg::RlmReport::VERSIONS);
    add(0xB193, Some(25), msg::ServCellMeas::VERSIONS);
    add(0xB193, Some(25), msg::ServCellMeas::CHECKED_VERSIONS);
    add(0xB195, Some(31), msg::NeighbourMeas::VERSIONS);
    let mut add_nr = |code, versions: &[(u16, u16)]| {
        out.extend(versions.iter().map(|&(major, minor)| Kind {
            code,
            version: minor as u8,
            major: major as u8,
            subpacket: None,
        }));
    };
    let plain = |versions: &[u8]| versions.iter().map(|&v| (0, v.into())).collect::<Vec<_>>();
    add_nr(0xB821, &plain(msg::NrRrcOta::VERSIONS));
    add_nr(0xB823, msg::NrServCell::VERSIONS);
    add_nr(0xB857, &[(0, 6)]);
    add_nr(0xB872, &[(0, 4), (2, 1), (3, 8)]);
    add_nr(0xB881, msg::NrUlTbStats::VERSIONS);
    add_nr(0xB887, &[(2, 5), (3, 3), (3, 13)]);
    add_nr(0xB888, msg::NrPdschStats::VERSIONS);
    add_nr(0xB97F, msg::NrMeas::VERSIONS);
    out
}

/// A valid payload of a kind: random bytes, read and written again, so that counts and lengths fit.
pub fn payload(kind: Kind, rng: &mut impl Rng) -> Vec<u8> {
    let mut bytes = vec![0; rng.random_range(60..600)];
    // Mostly small values: a large count ends the message early.
    let dense = rng.random_range(1..=3);
    for byte in &mut bytes {
        *byte = match rng.random_range(0..4) {
            i if i < dense => rng.random_range(0..4),
            _ => rng.random(),
        };
    }
    bytes[0] = kind.version;
    if matches!(kind.code >> 8, 0xB8 | 0xB9) {
        bytes[1..4].copy_from_slice(&[0, kind.major, 0]);
    }
    if let Some((id, version)) = kind.subpacket {
        let size = (bytes.len() - 4) as u16;
        bytes[1] = 1;
        bytes[4] = id;
        bytes[5] = version;
        bytes[6..8].copy_from_slice(&size.to_le_bytes());
    }
    if kind.code == msg::NrDlData::CODE {
        return dl_data(&bytes, rng).emit();
    }
    match Message::parse(kind.code, &bytes) {
        Ok(Some(parsed)) => parsed.message.emit(),
        _ => bytes,
    }
}

/// Blocks of one bearer that add up: chance does not find them.
fn dl_data(bytes: &[u8], rng: &mut impl Rng) -> msg::NrDlData {
    let bearer = msg::NrRlcBearer {
        lcid: 4,
        pdcp_sn_code: rng.random_range(0..4),
        kind: 2,
        rlc_index: rng.random_range(0..4),
        rlc_sn_code: rng.random_range(0..4),
        rlc_mode: rng.random_range(0..4),
        counters: rng.random(),
    };
    let mut block = |logged: Vec<msg::NrSubPdu>| msg::NrDlDataBlock {
        tbs_bytes: rng.random_range(300_000..400_000),
        slot: rng.random_range(0..20),
        frame: rng.random_range(0..1024),
        subheaders: logged.len() as u16,
        carrier: rng.random_range(0..2),
        logged,
    };
    let sdu = |bytes: &[u8; 12]| {
        let mut bytes = *bytes;
        bytes[0] = 4 | bytes[0] & 64;
        msg::NrSubPdu(bytes)
    };
    let (subheaders, _) = bytes[4..].as_chunks();
    let blocks = subheaders.chunks(4).map(|few| block(few.iter().map(sdu).collect())).collect();
    msg::NrDlData { last_time: 0, bearers: vec![bearer], blocks }
}

/// A log packet to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Subscription, 0 for none.
    pub subscription: u8,
    /// Log code.
    pub code: u16,
    /// Time stamp.
    pub ts_raw: u64,
    /// Payload.
    pub payload: Vec<u8>,
}

/// Log packets, a few ms apart.
pub fn logs(n: usize, rng: &mut impl Rng) -> Vec<Log> {
    let kinds = kinds();
    let mut ticks: u64 = 900_000_000_000 + rng.random_range(0..100_000_000_000);
    let mut log = |_| {
        let kind = kinds[rng.random_range(0..kinds.len())];
        ticks += rng.random_range(0..100);
        Log {
            subscription: [0, 0, 1, 2][rng.random_range(0..4)],
            code: kind.code,
            ts_raw: ticks << 16 | rng.random_range(0..49_152),
            payload: payload(kind, rng),
        }
    };
    (0..n).map(&mut log).collect()
}

/// A packet, as in an HDLC frame without its CRC.
#[must_use]
pub fn packet(log: &Log) -> Vec<u8> {
    let mut out = Vec::new();
    frame::emit_log(log.subscription, log.code, log.ts_raw, &log.payload, &mut out);
    out
}

/// HDLC frames.
#[must_use]
pub fn hdlc_file(logs: &[Log]) -> Vec<u8> {
    let mut out = Vec::new();
    for log in logs {
        hdlc::encode(&packet(log), &mut out);
    }
    out
}

/// DLF records.
#[must_use]
pub fn dlf_file(logs: &[Log]) -> Vec<u8> {
    let mut out = Vec::new();
    for log in logs {
        dlf::emit(log.code, log.ts_raw, &log.payload, &mut out);
    }
    out
}

/// Unencoded packets between other bytes, as in an `.hdf`.
pub fn hdf_file(logs: &[Log], rng: &mut impl Rng) -> Vec<u8> {
    let mut out = Vec::new();
    for log in logs {
        out.resize_with(out.len() + rng.random_range(0..40usize), || rng.random());
        out.extend(packet(log));
    }
    out
}

/// HDLC frames after a leading section.
pub fn qmdl2_file(logs: &[Log], rng: &mut impl Rng) -> Vec<u8> {
    let len: u32 = rng.random_range(8..300);
    let mut out = len.to_le_bytes().to_vec();
    out.resize_with(len as usize, || rng.random());
    out.extend(hdlc_file(logs));
    out
}

/// A text in QCAT's layout; the values are made up.
pub const QCAT_TEXT: &str = include_str!("../../crates/airmile-decode/tests/it/samples/qcat.txt");
/// Blocks of 0xB063 version 50 as text.
pub const QCAT_BLOCKS: &str = include_str!("../corpus/log_text/qcat_b063");

/// A text in the form of QXDM's copy; the values are made up.
pub const QXDM_TEXT: &str = "\
23:59:59.999000          LOG            [0xB887]        NR5G MAC PDSCH Status      1    Length:   88
23:59:59.999000\t[0xB887]\tNR5G MAC PDSCH Status
Version 131077 {
   Num Records = 1
   Records[0] {
      System Time {
         Slot = 39
         Numerology =    60kHz
         Frame = 1023
      }
      PDSCH Status Info[0] {
         Carrier ID = 1
         Physical cell ID = 1
         TB Size =     100
         Num Rbs =    4
         HARQ Or MBSFN Area Id = 5
         CRC State =     PASS
         New Tx Flag = 1
         Mod Type =   256_QAM
      }
   }
}
00:00:00.001000\t[0xB113]\tSomething Else
A = 1
";

/// Two lines of an srsRAN gNB's log.
pub const SRSRAN: &str = "\
2026-04-27T11:25:31.257380 [SCHED   ] [I] [   30.16] Slot decisions pci=1 t=26us (1 PDSCH, 1 PUSCH, 0 PUCCHs): DL: ue=1 c-rnti=0x4611 h_id=3 ss_id=2 rb=[4..55) k1=11 newtx=true rv=0 tbs=3240 ri=2 dl_bo=100, UL: ue=1 rnti=0x4611 h_id=2 ss_id=2 rb=[0..5) k2=4 newtx=false rv=2 tbs=36\n\
2026-04-27T11:25:31.257399 [MAC     ] [I] [   30.16] DL PDU: ue=1 rnti=0x4611 size=3240: SDU: lcid=4 nof_sdus=1 total_size=3200\n";

/// Two reports of an OpenAirInterface gNB; the values are made up.
pub const OAI: &str = "\
[NR_MAC]   Frame.Slot 896.0\n\
UE 2460: dlsch_rounds 1000/50/10/0, dlsch_errors 1, pucch0_DTX 1385, BLER 0.19557 MCS (1) 23\n\
UE 2460: ulsch_rounds 300/3/0/0, ulsch_errors 0, ulsch_DTX 285, BLER 0.33021 MCS (1) 27\n\
UE 2460: LCID 4: TX        1000000 RX          16152 bytes\n\
[NR_MAC]   Frame.Slot 0.0\n\
UE 2460: dlsch_rounds 1400/80/20/0, dlsch_errors 3, pucch0_DTX 1385, BLER 0.1\n\
UE 2460: LCID 4: TX        2600000 RX          32152 bytes\n";

/// Sniffers' tables; the values are made up.
pub const FALCON: &str = "\
1000.000\t1023\t9\t100\t1\t10\t20\t8000\t8000\t-1\t1\t0\t0\t3\t0\t2\t2\t9\t40\tff\n\
1000.009\t0\t8\t200\t0\t29\t20\t8000\t8000\t-1\t0\t0\t0\t3\t0\t2\t2\t9\t40\tff\n";
/// As [`FALCON`].
pub const NG_SCOPE: &str = "\
10239\t100\t50\t20\t10\t0\t8000\t12\t0\t9000\t3\t1000000\t1\t0\n\
0\t0\t50\t0\t0\t0\t0\t0\t0\t0\t0\t1001000\t0\t0\n";
/// As [`FALCON`].
pub const NR_SCOPE: &str = "\
timestamp,system_frame_index,slot_index,rnti,dci_format,frequency_length,transport_block_size\n\
10.0,5,13,17921,1_1,51,80000\n10.1,15,3,17921,0_1,51,800\n";

/// A text export and a sniffer's table.
pub fn texts(rng: &mut impl Rng) -> [&'static str; 2] {
    let tables = [FALCON, NG_SCOPE, NR_SCOPE];
    [[QCAT_TEXT, QXDM_TEXT, QCAT_BLOCKS][rng.random_range(0..3)], tables[rng.random_range(0..3)]]
}

/// Packets of the emulator by name: a SYN with every option, data after a gap, a datagram.
#[must_use]
pub fn packets() -> [(&'static str, Vec<u8>); 3] {
    let syn = TcpSegment {
        seq: 7,
        flags: Flags { syn: true, ..Flags::default() },
        window: 65_535,
        mss_bytes: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some((1, 0)),
        ..TcpSegment::default()
    };
    let blocks = [(2_000, 3_000), (5_000, 6_000)];
    let blocks = blocks.map(|(start_seq, end_seq)| SackBlock { start_seq, end_seq });
    let data = TcpSegment {
        seq: 8,
        ack: 1_000,
        flags: Flags { ack: true, psh: true, ..Flags::default() },
        window: 500,
        timestamps: Some((9, 4)),
        sack: blocks.into_iter().collect(),
        payload: 0..5,
        literals: vec![Literal { offset: 0, bytes: Arc::from(&b"hello"[..]) }],
        ..TcpSegment::default()
    };
    let of = |transport| {
        let end = |last, port| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), port);
        IpPacket { src: end(1, 40_000), dst: end(2, 443), ip_id: 3, transport }.emit()
    };
    [
        ("syn", of(Transport::Tcp(syn))),
        ("sack", of(Transport::Tcp(data))),
        ("datagram", of(Transport::Udp(b"hello".to_vec()))),
    ]
}
