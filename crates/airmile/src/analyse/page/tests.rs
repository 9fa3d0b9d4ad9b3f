use airmile_model::{
    AppPage, AppTransfer, ApplicationLog, Direction, PageCause, Phases, RequestPhase, TransferKind,
};

use super::connections::move_to_link;
use super::graph::{Graph, Milestone};
use super::parts;
use super::select::page_loads;
use crate::fact::WaitDoubt;

const MS: i64 = 1_000_000;

/// A request from its phases in ms: blocked, lookup, connect, wait, receive.
fn request(
    name: &str,
    start_ms: i64,
    [blocked, dns, connect, wait, receive]: [i64; 5],
) -> AppTransfer {
    let total = blocked + dns + connect + wait + receive;
    let mut out = AppTransfer::new(name.into(), start_ms * MS, (start_ms + total) * MS);
    out.url = Some(format!("https://a.example/{name}"));
    let part = |ms: i64| Some(ms * MS);
    out.phases = Phases {
        blocked_ns: part(blocked),
        dns_ns: part(dns),
        connect_ns: part(connect),
        wait_ns: part(wait),
        receive_ns: part(receive),
        ..Phases::default()
    };
    out
}

fn asked_by(mut one: AppTransfer, name: &str) -> AppTransfer {
    one.initiator = Some(format!("https://a.example/{name}"));
    one
}

fn graph(log: &ApplicationLog) -> Graph {
    let loads = page_loads(log);
    let [load] = loads.as_slice() else { panic!("one page, not {}", loads.len()) };
    Graph::new(load, parts::requests(load, log, None))
}

/// The critical path: request, cause, ms.
fn path(graph: &Graph) -> Vec<(Option<usize>, PageCause, i64)> {
    let steps = graph.critical_path().into_iter();
    steps.map(|step| (step.request, step.cause, (step.to_ns - step.from_ns) / MS)).collect()
}

fn saves_ms(graph: &Graph, cause: PageCause) -> i64 {
    graph.saves_ns(cause) / MS
}

/// A document, a style sheet and a large image that both wait for it; `load` at 660 ms.
fn page() -> ApplicationLog {
    let mut transfers = vec![
        request("index", 0, [0, 10, 40, 240, 10]),
        asked_by(request("style", 310, [0, 0, 0, 100, 20]), "index"),
        asked_by(request("image", 310, [0, 0, 0, 45, 300]), "index"),
    ];
    transfers[0].kind = TransferKind::Document;
    transfers.iter_mut().for_each(|one| one.page = Some("p".into()));
    let page = AppPage {
        id: "p".into(),
        url: None,
        start_ns: 0,
        first_paint_ms: None,
        content_loaded_ms: None,
        loaded_ms: Some(660.0),
    };
    ApplicationLog { transfers, pages: vec![page], ..ApplicationLog::default() }
}

#[test]
fn the_critical_path_adds_up_and_goes_to_what_came_last() {
    let graph = graph(&page());
    assert_eq!((graph.milestone, graph.wait_ns() / MS), (Milestone::Load, 660));
    let expected = [
        (Some(0), PageCause::Dns, 10),
        (Some(0), PageCause::Setup, 40),
        // The handshake gives the round trip: 40 of 240 ms.
        (Some(0), PageCause::RoundTrip, 40),
        (Some(0), PageCause::Server, 200),
        (Some(0), PageCause::Transfer, 10),
        (None, PageCause::Browser, 10),
        (Some(2), PageCause::RoundTrip, 40),
        (Some(2), PageCause::Server, 5),
        (Some(2), PageCause::Transfer, 300),
        (None, PageCause::Browser, 5),
    ];
    assert_eq!(path(&graph), expected);
}

#[test]
fn sending_an_upload_is_neither_a_round_trip_nor_the_servers_wait() {
    // Firefox counts it as sending, Chrome as waiting.
    for (send, wait) in [(9_000, 40), (0, 9_040)] {
        let mut log = page();
        let mut upload = asked_by(request("upload", 310, [0, 0, 0, wait, 5]), "index");
        upload.phases.send_ns = Some(send * MS);
        upload.end_ns += send * MS;
        upload.page = Some("p".into());
        for (dir, bytes, cause) in [
            (Direction::Ul, 6_000_000, PageCause::UplinkQueue),
            // The first flight carries it.
            (Direction::Ul, 2_000, if send > 0 { PageCause::RoundTrip } else { PageCause::Server }),
        ] {
            (upload.dir, upload.bytes) = (Some(dir), Some(bytes));
            log.transfers.truncate(3);
            log.transfers.push(upload.clone());
            log.pages[0].loaded_ms = Some(9_355.0);
            let path = path(&graph(&log));
            let longest = path.iter().max_by_key(|(_, _, ms)| *ms).map(|(_, cause, _)| *cause);
            assert_eq!(longest, Some(cause), "{send} {path:?}");
        }
    }
}

#[test]
fn a_request_without_phases_has_no_known_cause() {
    let mut log = page();
    log.transfers[2].phases = Phases::default();
    assert!(path(&graph(&log)).contains(&(Some(2), PageCause::Unknown, 345)));
}

#[test]
fn a_fix_saves_until_another_request_is_the_last() {
    let graph = graph(&page());
    // 200 ms of the document and 5 of the image.
    assert_eq!(saves_ms(&graph, PageCause::Server), 205);
    assert_eq!(saves_ms(&graph, PageCause::Dns), 10);
    // Without receiving, the image ends at 345 ms and the style sheet at 400: without the
    // document's 10 ms, 400 + 5 ms of the page's own time remain.
    assert_eq!(saves_ms(&graph, PageCause::Transfer), 660 - 405);
    assert_eq!(saves_ms(&graph, PageCause::Loss), 0);
}

#[test]
fn first_paint_waits_for_documents_and_code_alone() {
    let mut log = page();
    log.pages[0].first_paint_ms = Some(440.0);
    log.transfers[1].kind = TransferKind::Code;
    log.transfers[2].kind = TransferKind::Image;
    let graph = graph(&log);
    assert_eq!((graph.milestone, graph.wait_ns() / MS), (Milestone::FirstPaint, 440));
    let last = path(&graph).into_iter().filter_map(|step| step.0).next_back();
    assert_eq!(last, Some(1));
}

#[test]
fn a_request_in_the_queue_is_blocked_by_the_one_that_ends_with_it() {
    let mut transfers =
        vec![request("a", 0, [0, 0, 0, 50, 50]), request("b", 0, [100, 0, 0, 50, 50])];
    transfers.iter_mut().for_each(|one| one.connection = Some("1".into()));
    let log = ApplicationLog { transfers, ..ApplicationLog::default() };
    let graph = graph(&log);
    assert_eq!(graph.milestone, Milestone::LastByte);
    assert_eq!(graph.parts(1)[0].blocked_by, Some(0));
    assert_eq!(path(&graph)[0], (Some(1), PageCause::Blocked, 100));
    assert_eq!(saves_ms(&graph, PageCause::Blocked), 100);
    // Without round trips, the first ends after 50 ms, and the second 50 ms later.
    assert_eq!(saves_ms(&graph, PageCause::RoundTrip), 100);
}

/// Three requests in turn on each of six connections: the third waited for what the first two waited
/// for.
#[test]
fn a_queue_behind_all_connections_is_followed_through_each_blocker() {
    let turn = |n: i64, lane: i64| {
        let mut one = request(&format!("{n}-{lane}"), 0, [n * 500, 0, 0, 500, 0]);
        one.connection = Some(lane.to_string());
        one
    };
    let transfers = (0..3).flat_map(|n| (0..6).map(move |lane| turn(n, lane))).collect();
    let graph = graph(&ApplicationLog { transfers, ..ApplicationLog::default() });
    let blocked = path(&graph).into_iter().filter(|(_, cause, _)| *cause == PageCause::Blocked);
    assert_eq!(blocked.collect::<Vec<_>>(), []);
    assert_eq!(path(&graph).iter().map(|(.., ms)| ms).sum::<i64>(), 1_500);
}

#[test]
fn answers_back_to_back_on_a_connection_wait_for_their_turn() {
    let mut transfers =
        vec![request("a", 0, [0, 0, 0, 50, 250]), request("b", 0, [0, 0, 0, 300, 20])];
    transfers.iter_mut().for_each(|one| one.connection = Some("1".into()));
    let log = ApplicationLog { transfers, ..ApplicationLog::default() };
    let graph = graph(&log);
    let of_b: Vec<(PageCause, i64)> =
        graph.parts(1).iter().map(|part| (part.cause, part.ns() / MS)).collect();
    assert_eq!(
        of_b,
        [(PageCause::RoundTrip, 50), (PageCause::Blocked, 250), (PageCause::Transfer, 20)]
    );
}

/// Further connections do not shorten a turn behind a link that is busy, and what is blocked by it saves
/// nothing.
#[test]
fn a_turn_behind_a_busy_link_waits_for_the_link() {
    let mut transfers =
        vec![request("a", 0, [0, 0, 0, 50, 250]), request("b", 0, [0, 0, 0, 300, 20])];
    transfers.iter_mut().for_each(|one| one.connection = Some("1".into()));
    let log = ApplicationLog { transfers, ..ApplicationLog::default() };
    let loads = page_loads(&log);
    use PageCause::{Blocked, Radio, SlowStart, Transfer, Wireline};
    for (cause, blocked_ms) in [(Wireline, 0), (Radio, 0), (SlowStart, 250), (Transfer, 250)] {
        let mut split = parts::requests(&loads[0], &log, None);
        let received = split.parts.iter_mut().flatten().filter(|part| part.cause == Transfer);
        received.for_each(|part| part.cause = cause);
        let graph = Graph::new(&loads[0], split);
        let path = path(&graph);
        let ms = |of: PageCause| -> i64 {
            path.iter().filter(|(_, cause, _)| *cause == of).map(|(.., ms)| ms).sum()
        };
        assert_eq!((ms(Blocked), ms(cause)), (blocked_ms, 270 - blocked_ms), "{path:?}");
        if blocked_ms == 0 {
            assert!(saves_ms(&graph, cause) > saves_ms(&graph, Blocked));
        }
    }
}

#[test]
fn a_document_that_still_comes_asks_for_what_it_names() {
    let transfers = vec![
        request("index", 0, [0, 0, 0, 100, 200]),
        asked_by(request("style", 150, [0, 0, 0, 50, 200]), "index"),
    ];
    let log = ApplicationLog { transfers, ..ApplicationLog::default() };
    let graph = graph(&log);
    let sums: i64 = path(&graph).iter().map(|step| step.2).sum();
    assert_eq!((sums, graph.waited_for(1)), (400, Some(0)));
    // Of the document's 100 ms until its first byte, a round trip of 50 remains.
    assert_eq!(saves_ms(&graph, PageCause::Server), 50);
}

/// A phase that cannot be read is left out: its time is not the next one's.
#[test]
fn time_that_no_phase_explains_is_unknown() {
    let mut one = request("a", 0, [0, 0, 40, 514, 6]);
    one.phases.wait_ns = None;
    let graph = graph(&ApplicationLog { transfers: vec![one], ..ApplicationLog::default() });
    let parts = graph.parts(0).iter().map(|part| (part.cause, part.ns() / MS));
    let expected = [(PageCause::Setup, 40), (PageCause::Unknown, 514), (PageCause::Transfer, 6)];
    assert_eq!(parts.collect::<Vec<_>>(), expected);
}

#[test]
fn pages_without_a_name_end_at_a_pause() {
    let transfers =
        vec![request("a", 0, [0, 0, 0, 50, 50]), request("b", 1_200, [0, 0, 0, 50, 50])];
    let log = ApplicationLog { transfers, ..ApplicationLog::default() };
    let loads = page_loads(&log);
    let found: Vec<(&str, usize)> =
        loads.iter().map(|load| (load.grouped_by, load.requests.len())).collect();
    assert_eq!(found, [("pauses", 1), ("pauses", 1)]);
}

/// On an open connection, a slow server looks like a long round trip.
#[test]
fn a_slow_wait_is_a_round_trip_only_if_the_log_shows_how_long_that_takes() {
    use PageCause::{RoundTrip, Server, Unknown};
    // Handshake of an earlier connection, waits; the parts of the last wait.
    let check = |connect: i64, waits: &[i64], expected: &[(PageCause, i64)]| {
        let connect = [connect].into_iter().chain(std::iter::repeat(0));
        let each = waits.iter().zip(connect).enumerate();
        let transfers = each.map(|(n, (wait, connect))| {
            request(&n.to_string(), 4_000 * n as i64, [0, 0, connect, *wait, 0])
        });
        let log = ApplicationLog { transfers: transfers.collect(), ..ApplicationLog::default() };
        let loads = page_loads(&log);
        let split = parts::requests(loads.last().unwrap(), &log, None);
        let got = split.parts[0].iter().filter(|part| part.phase == RequestPhase::Wait);
        let got: Vec<(PageCause, i64)> = got.map(|part| (part.cause, part.ns() / MS)).collect();
        assert_eq!(got, expected, "{waits:?}");
        let unbounded = got.iter().any(|(cause, _)| *cause == Unknown);
        assert_eq!(split.doubts[0], WaitDoubt { round_trip: unbounded, ..WaitDoubt::default() });
    };
    check(0, &[3_000], &[(Unknown, 3_000)]);
    check(0, &[1_000, 1_500], &[(Unknown, 1_000), (Server, 500)]);
    check(0, &[30, 1_000], &[(RoundTrip, 30), (Server, 970)]);
    check(40, &[1_000, 1_000], &[(RoundTrip, 40), (Server, 960)]);
    // A handshake that took as long: a path by satellite.
    check(600, &[1_000, 700], &[(RoundTrip, 600), (Server, 100)]);
    check(0, &[150], &[(RoundTrip, 150)]);
}

/// A connection that could not be opened: the browser logs 30 s in its queue, and an error.
#[test]
fn the_time_of_a_failed_request_is_not_the_pages_own_work() {
    let mut failed = asked_by(request("script", 100, [30_000, 0, 0, 0, 0]), "index");
    let index = request("index", 0, [0, 0, 40, 50, 10]);
    let of = |failed: AppTransfer| {
        let transfers = vec![index.clone(), failed];
        graph(&ApplicationLog { transfers, ..ApplicationLog::default() })
    };
    // One that waits in the browser and is answered is the page's.
    assert_eq!(of(failed.clone()).parts(1)[0].cause, PageCause::Browser);
    failed.failed = true;
    failed.error = Some("net::ERR_CONNECTION_TIMED_OUT".into());
    assert_eq!(path(&of(failed.clone())).last(), Some(&(Some(1), PageCause::Unknown, 30_000)));
    // A response with an error's status is a response.
    failed.error = None;
    assert_eq!(of(failed).parts(1)[0].cause, PageCause::Browser);
    // A response that ended early.
    let mut cut = asked_by(request("script", 100, [0, 0, 0, 20, 9_000]), "index");
    cut.error = Some("net::ERR_ABORTED".into());
    let causes = of(cut).parts(1).iter().map(|part| part.cause).collect::<Vec<_>>();
    assert!(causes.contains(&PageCause::Transfer), "{causes:?}");
}

/// A document that is answered in 30 ms, then five requests in parallel whose first bytes take
/// longer and longer while the others arrive.
#[test]
fn waits_that_grow_with_parallel_responses_are_not_the_servers_for_certain() {
    let page = |waits: [i64; 5], receive: i64| {
        let mut transfers = vec![request("index", 0, [0, 0, 40, 70, 10])];
        let parallel = waits.into_iter().enumerate().map(|(n, wait)| {
            asked_by(request(&format!("part-{n}"), 120, [0, 0, 0, wait, receive]), "index")
        });
        transfers.extend(parallel);
        ApplicationLog { transfers, ..ApplicationLog::default() }
    };
    let of_last = |log: &ApplicationLog| -> Vec<(PageCause, i64)> {
        graph(log).parts(5).iter().map(|part| (part.cause, part.ns() / MS)).collect()
    };
    // A round trip of 40 ms and the document's 30 ms at the server; the rest may be a queue.
    assert_eq!(
        of_last(&page([70, 300, 350, 400, 500], 600)),
        [
            (PageCause::RoundTrip, 40),
            (PageCause::Server, 30),
            (PageCause::Unknown, 430),
            (PageCause::Transfer, 600),
        ]
    );
    // Nothing arrived meanwhile: the server is slow.
    assert_eq!(
        of_last(&page([500, 500, 500, 500, 500], 20)),
        [(PageCause::RoundTrip, 40), (PageCause::Server, 460), (PageCause::Transfer, 20)]
    );
}

/// Two responses fill the link in turn: if they come in parallel, each takes longer.
#[test]
fn a_busy_link_bounds_what_a_fix_saves() {
    let transfers = vec![
        request("a", 0, [0, 0, 0, 0, 300]),
        request("b", 0, [0, 0, 0, 0, 100]),
        request("c", 0, [100, 0, 0, 0, 300]),
    ];
    let log = ApplicationLog { transfers, ..ApplicationLog::default() };
    let graph = graph(&log);
    assert_eq!(path(&graph)[0], (Some(2), PageCause::Blocked, 100));
    assert_eq!(saves_ms(&graph, PageCause::Blocked), 0);
    // The link's own share is what a faster one saves.
    assert_eq!(saves_ms(&graph, PageCause::Transfer), 400);
}

/// Between two requests of the log, the packets show another one: until its end, the page waited
/// for that; one that goes on was not waited for.
#[test]
fn requests_that_the_log_lacks_are_not_the_pages_own_work() {
    let transfers = vec![
        request("index", 0, [0, 0, 0, 50, 50]),
        asked_by(request("last", 500, [0, 0, 0, 50, 50]), "index"),
    ];
    let log = ApplicationLog { transfers, ..ApplicationLog::default() };
    let loads = page_loads(&log);
    let mut split = parts::requests(&loads[0], &log, None);
    split.unlogged = vec![(120 * MS, 200 * MS), (150 * MS, 470 * MS), (140 * MS, 900 * MS)];
    let graph = Graph::new(&loads[0], split);
    let expected = [
        (Some(0), PageCause::RoundTrip, 50),
        (Some(0), PageCause::Transfer, 50),
        (None, PageCause::Browser, 20),
        (None, PageCause::Unlogged, 350),
        (None, PageCause::Browser, 30),
        (Some(1), PageCause::RoundTrip, 50),
        (Some(1), PageCause::Transfer, 50),
    ];
    assert_eq!(path(&graph), expected);
    assert_eq!(saves_ms(&graph, PageCause::Browser), 50);
}

#[test]
fn time_of_a_busy_link_is_the_links_up_to_what_its_queues_already_have() {
    let parts = [(PageCause::Loss, 5), (PageCause::SlowStart, 40), (PageCause::Server, 30)];
    let moved = |link: PageCause, queued_ns: i64, busy_ns: i64| {
        let mut parts = parts.to_vec();
        parts.push((PageCause::UplinkQueue, queued_ns));
        move_to_link(&mut parts, link, busy_ns);
        parts
    };
    let expected = [(PageCause::Server, 15), (PageCause::UplinkQueue, 10), (PageCause::Radio, 60)];
    assert_eq!(moved(PageCause::Radio, 10, 60), expected);
    let all = moved(PageCause::Radio, 0, 1_000);
    assert_eq!(all.iter().map(|(_, ns)| ns).sum::<i64>(), 75);
    assert_eq!(all, [(PageCause::Radio, 75)]);
    assert_eq!(moved(PageCause::Transfer, 0, 0), parts);
    assert_eq!(moved(PageCause::UplinkQueue, 90, 80)[..3], parts, "the queue has it already");
}
