//! The modem log of a run, packet by packet.

use super::*;

/// A data PDU of the modem log: its first TTI on the air, the TTI of its reception, its unwrapped
/// number, its size with header.
struct DataPdu {
    first_tti: i64,
    received_tti: i64,
    sn: i64,
    size_bytes: u64,
}

/// Downlink data PDUs of a modem log, as decoded, in order of their numbers. A failed block was
/// first on the air when its HARQ process took it.
fn data_pdus(log: &Path) -> Vec<DataPdu> {
    let records = |kind: &str| -> Vec<serde_json::Value> {
        let got = airmile().args(["decode", "--only", kind]).arg(log).output().unwrap();
        assert_eq!(got.status.code(), Some(0), "{got:?}");
        let lines = String::from_utf8(got.stdout).unwrap();
        let all = lines.lines().map(|line| serde_json::from_str(line).unwrap());
        all.filter(|row: &serde_json::Value| row["dir"] == "dl").collect()
    };
    let mut began: HashMap<i64, i64> = HashMap::new();
    let mut first_of: HashMap<i64, i64> = HashMap::new();
    for grant in records("grant") {
        let (tti, process) = (grant["tti"].as_i64().unwrap(), grant["harq_id"].as_i64().unwrap());
        if grant["retx"] == false {
            began.insert(process, tti);
        }
        if grant["crc_ok"] == true {
            first_of.insert(tti, began[&process]);
        }
    }
    let mut next = 0;
    let mut pdus: Vec<DataPdu> = Vec::new();
    for row in records("rlc") {
        if row["status"] == true {
            continue;
        }
        assert_eq!(row["resegment"], false, "an RLC retransmission: {row}");
        let received_tti = row["tti"].as_i64().unwrap();
        // Ten bits, and reordered by less than half of them (TS 36.322, 7.1).
        let sn = row["sn"].as_i64().unwrap();
        let sn = next + (sn - next + 512).rem_euclid(1024) - 512;
        next = next.max(sn + 1);
        let size_bytes = row["size_bytes"].as_u64().unwrap();
        pdus.push(DataPdu { first_tti: first_of[&received_tti], received_tti, sn, size_bytes });
    }
    pdus.sort_by_key(|pdu| pdu.sn);
    assert!(pdus.iter().enumerate().all(|(n, pdu)| pdu.sn == n as i64), "one PDU a number");
    pdus
}

/// Bytes of packets that a PDU of a size holds, given the remaining bytes of the next packets: two
/// bytes of header, and a length of 12 bits for each packet except the last (TS 36.322, 6.2.1.4 and
/// 6.2.1.5). `None`: it holds more than all of them.
fn field_bytes(size_bytes: u64, packets: impl Iterator<Item = u64>) -> Option<u64> {
    let mut held = 0;
    for (before, left) in packets.enumerate() {
        let field = size_bytes - 2 - (12 * before as u64).div_ceil(8);
        if held + left >= field {
            return Some(field);
        }
        held += left;
    }
    None
}

#[test]
#[ignore = "needs namespaces: make test-realtime"]
fn the_log_has_the_packets_byte_for_byte_and_the_truth_their_queue() {
    if !is_able("the_log_has_the_packets_byte_for_byte_and_the_truth_their_queue") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::create_dir(dir.join("www")).unwrap();
    file(&dir.join("www/file"), 3_000_000);
    // Blocks fail and are retransmitted, but hardly one so often that RLC has to.
    let scenario = format!("{SCENARIO}[link]\nbler_target = 0.03\n");
    let options = ["--serve", "www", "-o", "run"];
    let words = ["curl", "-sS", "-o", "/dev/null", "http://203.0.113.1/file"];
    let got = shell(dir, &scenario, &options, &words);
    assert_eq!(got.status.code(), Some(0), "{got:?}");
    let run = dir.join("run");
    let of = |name: &str, comes_in: bool| -> Vec<Seen> {
        let all = capture(&run.join(name)).into_iter();
        all.filter(|packet| packet.comes_in == comes_in).collect()
    };
    let (sent, got) = (of("server.pcapng", false), of("phone.pcapng", true));
    let heads = |seen: &[Seen]| -> Vec<Vec<u8>> { seen.iter().map(|p| p.head.clone()).collect() };
    assert!(got.len() > 2_000 && heads(&sent) == heads(&got), "the same packets in order");
    let started = fs::read_to_string(run.join("scenario.toml")).unwrap();
    let epoch = started.lines().find_map(|line| line.strip_prefix("epoch_ns = ")).unwrap();
    let epoch_ns: i64 = epoch.replace('_', "").parse().unwrap();

    // The log's PDUs divide the captures' packets, each with two bytes of PDCP; the phone has a
    // packet when the TTI with its last byte, and all before, have ended.
    let pdus = data_pdus(&run.join("modem.mi2log"));
    let mut departed: HashMap<i64, u64> = HashMap::new();
    let sizes: Vec<u64> = got.iter().map(|packet| u64::from(packet.ip_bytes) + 2).collect();
    let (mut packet, mut taken, mut latest) = (0, 0, 0);
    for pdu in &pdus {
        let left =
            std::iter::once(sizes[packet] - taken).chain(sizes[packet + 1..].iter().copied());
        let field = field_bytes(pdu.size_bytes, left).unwrap();
        *departed.entry(pdu.first_tti).or_default() += field;
        latest = latest.max(pdu.received_tti);
        taken += field;
        while packet < sizes.len() && taken >= sizes[packet] {
            taken -= sizes[packet];
            assert_eq!(got[packet].at_ns, epoch_ns + (latest + 1) * 1_000_000, "packet {packet}");
            packet += 1;
        }
    }
    assert_eq!((packet, taken), (sizes.len(), 0), "all of the packets, and nothing else");
    let (blocks, again) = pdus.iter().fold((0, 0), |(all, again), pdu| {
        (all + 1, again + usize::from(pdu.first_tti < pdu.received_tti))
    });
    assert!(again > 0 && again < blocks / 5, "{again} of {blocks} PDUs came by HARQ");

    // The queue's truth in each TTI: the bytes that arrived from the server, 10 ms after its
    // capture, minus those that the log shows as sent.
    let mut arrivals = sent.iter().map(|packet| (packet.at_ns + 10_000_000, packet.ip_bytes + 2));
    let mut next = arrivals.next();
    let mut queue_bytes = 0;
    let mut compared = 0;
    for row in table(&run.join("truth.csv")) {
        let number = |name: &str| row[name].parse::<i64>().unwrap();
        for tti in number("tti")..number("tti") + number("n_tti") {
            while let Some((_, bytes)) = next.filter(|(at, _)| *at <= epoch_ns + tti * 1_000_000) {
                queue_bytes += u64::from(bytes);
                next = arrivals.next();
            }
            assert_eq!(queue_bytes, number("queue_bytes").cast_unsigned(), "TTI {tti}: {row:?}");
            queue_bytes -= departed.get(&tti).copied().unwrap_or(0);
            compared += u64::from(queue_bytes > 0);
        }
    }
    assert!(next.is_none() && queue_bytes == 0 && compared > 500, "{compared} TTIs with a queue");
}
