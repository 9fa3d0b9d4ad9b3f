//! Each target with its corpus, and with bolero's random engine.

use std::path::Path;

use airmile_fuzz::targets;

#[test]
fn every_corpus_replays() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, target) in targets::TARGETS {
        let files = std::fs::read_dir(corpus.join(name)).unwrap();
        let mut count = 0;
        for file in files {
            target(&std::fs::read(file.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0, "{name} has no corpus");
    }
}

macro_rules! bolero_targets {
    ($($name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            // Bolero's own byte slices have 64 bytes at most.
            let bytes = bolero::produce::<Vec<u8>>().with().len(0usize..1500);
            bolero::check!().with_generator(bytes).for_each(|data| targets::$name(data));
        })+

        #[test]
        fn no_target_is_left_out() {
            let names: Vec<_> = targets::TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [$(stringify!($name)),+]);
        }
    };
}

bolero_targets!(
    deframe,
    hdlc_frame,
    nhdlc,
    diag_packet,
    pdsch,
    pdcch,
    pusch,
    mac,
    rlc,
    pdcp,
    rrc,
    measurements,
    mac_header,
    rlc_header,
    counters,
    nr,
    log_text,
    sniffer,
    capture,
    application,
    packet,
    emulated_packet,
    scrub_capture,
    scrub_log,
    scrub_har,
    air_packets,
    coresight,
    application_log,
    claw_feedback,
    prompt,
);
