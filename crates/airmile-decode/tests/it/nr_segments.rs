//! Timing segments and holes of an NR log: its TTIs follow the clock as LTE's do.

use airmile_decode::diag::LogReader;
use airmile_decode::diag::encode::{Options, write_nr};
use airmile_model::{CellInfo, Direction, Grant, Hole, Record, Stamp};

/// Slots of 30 kHz in a second, and nanoseconds of one.
const SLOTS_PER_S: i64 = 2_000;
const SLOT_NS: i64 = 500_000;

/// NR-ARFCN of the cells.
const ARFCN: u32 = 634_080;

/// Grants of an emulated NR cell at 30 kHz with their time, of both directions.
fn all_grants() -> Vec<(i64, Grant)> {
    let mut scenario = airmile_emulate::named("nr-tdd-video").unwrap().scenario();
    scenario.duration_ms = 12_000;
    let of = |record: Record| match record {
        Record::Grant(grant) => Some((grant.at?.ns, grant)),
        _ => None,
    };
    airmile_emulate::run(&scenario).unwrap().records.into_iter().filter_map(of).collect()
}

/// Those of the downlink.
fn grants() -> Vec<(i64, Grant)> {
    all_grants().into_iter().filter(|(_, grant)| grant.dir == Direction::Dl).collect()
}

/// A part of a log on a cell: SFN and clock are ahead of the emulator's by some slots and
/// nanoseconds.
fn part(grants: &[(i64, Grant)], pci: u16, slots: i64, clock_ns: i64) -> Vec<u8> {
    part_on(ARFCN, grants, pci, slots, clock_ns)
}

fn part_on(arfcn: u32, grants: &[(i64, Grant)], pci: u16, slots: i64, clock_ns: i64) -> Vec<u8> {
    let cell = CellInfo {
        at: None,
        pci: Some(pci),
        earfcn: Some(arfcn),
        ..CellInfo::new(Stamp::modem(0), 0, 0, "test")
    };
    let moved = |(ns, grant): &(i64, Grant)| {
        let mut grant = grant.clone();
        grant.at = Some(Stamp::modem(ns + clock_ns));
        grant.position.tti = grant.position.tti.plus(slots);
        grant.into()
    };
    let records: Vec<Record> = [cell.into()].into_iter().chain(grants.iter().map(moved)).collect();
    write_nr(&[], &records, &Options::default()).unwrap()
}

/// Grants and holes of a log, and its backward jumps of the clock.
fn read(log: &[u8]) -> (Vec<Grant>, Vec<Hole>, usize) {
    let (mut grants, mut holes) = (Vec::new(), Vec::new());
    let mut sink = |tagged: airmile_decode::diag::Tagged| match tagged.record {
        Record::Grant(grant) => grants.push(grant),
        Record::Hole(hole) => holes.push(hole),
        _ => {}
    };
    let mut reader = LogReader::new();
    reader.push(log, &mut sink);
    reader.finish(&mut sink);
    let problems = reader.stats().problems.kept;
    (grants, holes, problems.iter().filter(|p| p.what.contains("jumps back")).count())
}

/// Segment of each grant, its TTIs after the first one's, and its time after the first one's.
fn places(grants: &[Grant]) -> Vec<(u32, i64, i64)> {
    let first = &grants[0];
    let since = |grant: &Grant| {
        let ns = grant.at.unwrap().ns - first.at.unwrap().ns;
        (grant.position.timing_segment, grant.position.tti.since(first.position.tti), ns)
    };
    grants.iter().map(since).collect()
}

/// The expected places of a part.
fn expected(
    grants: &[(i64, Grant)],
    of: &[(i64, Grant)],
    (segment, slots, ns): (u32, i64, i64),
) -> Vec<(u32, i64, i64)> {
    let first = grants[0].1.position.tti;
    let place = |(_, grant): &(i64, Grant)| {
        let since = grant.position.tti.since(first);
        (segment, since + slots, since * SLOT_NS + ns)
    };
    of.iter().map(place).collect()
}

/// A handover, a silence of 10 s, and a clock set back by an hour: slots and times continue
/// as the log's clock does, and the silence is a hole.
#[test]
fn slots_follow_the_clock_over_handover_silence_and_a_clock_step() {
    const HOUR_NS: i64 = 3_600_000_000_000;
    let all = grants();
    let n = all.len() / 4;
    let gap = 10 * SLOTS_PER_S;
    let shifted = 7_778 + gap;
    let log = [
        part(&all[..n], 500, 0, 0),
        part(&all[n..2 * n], 501, 7_778, 0),
        part(&all[2 * n..3 * n], 501, shifted, gap * SLOT_NS),
        part(&all[3 * n..], 501, shifted, gap * SLOT_NS - HOUR_NS),
    ];
    let (read, holes, jumps) = read(&log.concat());
    assert_eq!((read.len(), jumps), (all.len(), 1));
    let places = places(&read);
    assert_eq!(places[..n], expected(&all, &all[..n], (0, 0, 0)));
    assert_eq!(places[n..2 * n], expected(&all, &all[n..2 * n], (1, 0, 0)));
    let after = expected(&all, &all[2 * n..3 * n], (1, gap, gap * SLOT_NS));
    assert_eq!(places[2 * n..3 * n], after);
    // By the clock, the part after the step is earlier; its slots come after those before.
    let (_, from, _) = places[3 * n];
    let skipped = from - expected(&all, &all[3 * n..], (2, gap, 0))[0].1;
    let last = expected(&all, &all[3 * n..], (2, gap + skipped, gap * SLOT_NS - HOUR_NS));
    assert_eq!(places[3 * n..], last);
    let step = from - places[3 * n - 1].1;
    assert!((1..SLOTS_PER_S / 10).contains(&step), "{step}");

    let [hole] = &holes[..] else { panic!("{holes:?}") };
    assert_eq!((hole.why, hole.position.numerology), ("silence", 1));
    let before = hole.position.tti.since(read[2 * n - 1].position.tti);
    let after = read[2 * n].position.tti.since(hole.position.tti.plus(hole.n_tti));
    assert!((0..20).contains(&before), "{before}");
    assert!((-SLOTS_PER_S / 10..=0).contains(&after), "{after}");
}

/// A handover to a cell of another carrier is one as on the same carrier: whatever the SFN of the new cell,
/// slots continue as the clock does. Back on the first carrier, it is another one.
#[test]
fn slots_follow_the_clock_over_a_handover_to_another_carrier() {
    let mut all = all_grants();
    let n = all.len() / 3;
    // The first messages on the other carrier are the uplink's, which do not name it.
    let from_ns = all[n].0;
    let is_first = |ns: i64| (from_ns..from_ns + 100_000_000).contains(&ns);
    all.retain(|(ns, grant)| grant.dir == Direction::Ul || !is_first(*ns));
    for slots in [-800, -60, 0, 60, 800, 7_778] {
        let log = [
            part(&all[..n], 500, 0, 0),
            part_on(640_000, &all[n..2 * n], 501, slots, 0),
            part(&all[2 * n..], 500, 0, 0),
        ];
        let (read, _, _) = read(&log.concat());
        assert!(read.iter().all(|grant| grant.position.cell == 0), "{slots}");
        let dl: Vec<Grant> = read.into_iter().filter(|g| g.dir == Direction::Dl).collect();
        let first = all.iter().find(|(_, grant)| grant.dir == Direction::Dl).unwrap();
        let expected = all.iter().enumerate().filter(|(_, (_, g))| g.dir == Direction::Dl);
        let expected = expected.map(|(i, (_, grant))| {
            let since = grant.position.tti.since(first.1.position.tti);
            ((i / n).min(2) as u32, since, since * SLOT_NS)
        });
        let wrong = places(&dl).into_iter().zip(expected).find(|(found, right)| found != right);
        assert_eq!(wrong, None, "{slots}");
    }
}

/// A carrier whose blocks come while another has some is a further one: no handover.
#[test]
fn a_carrier_that_is_added_begins_no_segment() {
    let scenario = airmile_emulate::named("nr-two-carriers").unwrap().scenario();
    let records = airmile_emulate::run(&scenario).unwrap().records;
    let (grants, _, _) = read(&write_nr(&[], &records, &Options::default()).unwrap());
    let n_of = |cell: u8| grants.iter().filter(|grant| grant.position.cell == cell).count();
    assert!(n_of(0) > 100 && n_of(1) > 100 && n_of(0) + n_of(1) == grants.len());
    assert!(grants.iter().all(|grant| grant.position.timing_segment == 0));
}

/// Damaged bytes are a hole in NR's log; with LTE's leg in the log, in that, too.
#[test]
fn damage_is_a_hole_of_each_leg() {
    let all = grants();
    let n = all.len() / 2;
    let damaged = |parts: [Vec<u8>; 2]| parts.join(&[0x7E, 1, 2, 3, 0x7E][..]);
    let (_, holes, _) = read(&damaged([part(&all[..n], 500, 0, 0), part(&all[n..], 500, 0, 0)]));
    let [hole] = &holes[..] else { panic!("{holes:?}") };
    assert_eq!((hole.why, hole.position.numerology), ("damaged bytes", 1));

    let records =
        airmile_emulate::run(&airmile_emulate::named("nsa-split-bearer").unwrap().scenario())
            .unwrap()
            .records;
    let is_nr = |record: &Record| match record {
        Record::Grant(r) => r.position.cell > 0,
        Record::CellInfo(r) => r.cell > 0,
        _ => false,
    };
    let (nr, lte): (Vec<Record>, Vec<Record>) = records.into_iter().partition(is_nr);
    let mut log = write_nr(&lte, &nr, &Options::default()).unwrap();
    let middle = log.len() / 2;
    log.drain(middle..middle + 20_000);
    let (grants, holes, _) = read(&log);
    for hole in &holes {
        let is_of_leg = |grant: &&Grant| grant.position.numerology == hole.position.numerology;
        let of_leg: Vec<&Grant> = grants.iter().filter(is_of_leg).collect();
        let is_before = |grant: &&&Grant| grant.at.unwrap().ns < hole.at.unwrap().ns;
        let before = of_leg.iter().rfind(is_before).unwrap().position.tti;
        let ms = hole.position.tti.since(before) >> hole.position.numerology;
        assert!((0..100).contains(&ms), "{hole:?}");
    }
    let legs: Vec<_> = holes.iter().map(|h| (h.position.numerology, h.why)).collect();
    assert_eq!(legs, [(0, "damaged bytes"), (1, "damaged bytes")]);
}
