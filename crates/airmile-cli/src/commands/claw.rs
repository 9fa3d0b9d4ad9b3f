//! `airmile claw`.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use airmile::Replacement;
use airmile::model::printable;
use airmile_claw::Error as ClawError;
use airmile_claw::agent::{AgentOptions, Fixed, Modem, Reported, Reports, report};
use airmile_claw::client::{Fetched, Trust, ask_for_key, get};
use airmile_claw::keys::read_key;
use airmile_claw::server::{ServeOptions, Server, ServerEvent};
use airmile_host::source::LogSource;
use anyhow::Result;
#[cfg(target_os = "linux")]
use rustix::thread::CapabilitySet;
use serde_json::json;

use crate::Outcome;
use crate::args::{ClawAgentArgs, ClawCommand, ClawGetArgs, ClawServeArgs, Global, ModemArgs};
use crate::output;

pub fn run(global: &Global, command: &ClawCommand) -> Result<Outcome> {
    let outcome = match command {
        ClawCommand::Serve(args) => serve(global, args),
        ClawCommand::Agent(args) => agent(global, args),
        ClawCommand::Get(args) => fetch(global, args),
        ClawCommand::Attach(args) => super::claw_attach::attach(global, args),
        ClawCommand::Detach => super::claw_attach::detach(global),
    };
    outcome.map_err(|error| match error.downcast::<ClawError>() {
        // The user can correct it, as other options.
        Ok(ClawError::Option(what)) => airmile::Error::Option(what).into(),
        Ok(other) => other.into(),
        Err(error) => error,
    })
}

fn serve(global: &Global, args: &ClawServeArgs) -> Result<Outcome> {
    let options = ServeOptions {
        dir: args.dir.clone(),
        bind: args.bind,
        reports: args.reports,
        identity: args.cert.clone().zip(args.private_key.clone()),
        names: args.name.clone(),
        shared_key: args.key_file.as_deref().map(read_key).transpose()?,
        limits: args.cap.into(),
        window: args.window.into(),
    };
    let (as_json, quiet) = (global.json, global.quiet);
    let on_event = move |event: &ServerEvent| {
        // The server continues if the terminal is gone.
        if as_json {
            let text = serde_json::to_string(event).unwrap_or_default();
            let _ = writeln!(std::io::stdout(), "{}", output::json_printable(&text));
        } else if !quiet {
            output::notice(&printable(&event_line(event)));
        }
    };
    #[cfg(target_os = "linux")]
    {
        let has = rustix::thread::capabilities(None)?.permitted;
        // A site and a key of another user. Root has only the second one in Docker's
        // default set; Landlock refuses the writes that it would allow.
        let reading = if has.contains(CapabilitySet::DAC_READ_SEARCH) {
            CapabilitySet::DAC_READ_SEARCH
        } else {
            CapabilitySet::DAC_OVERRIDE
        };
        airmile_host::privilege::keep(airmile_host::privilege::Kept {
            // Ports below 1024.
            capabilities: CapabilitySet::NET_BIND_SERVICE | reading,
            writable: &[],
            starts_programs: false,
        })?;
    }
    let server = Server::start(options, Arc::new(on_event))?;
    let name = args.name.first().map_or("localhost", String::as_str);
    let spki = server.spki_sha256().map(|hash| base64(hash));
    if global.json {
        let text = json!({ "url": format!("https://{name}:{}/", server.address().port()),
            "address": server.address().to_string(), "spki_sha256": spki,
            "reports": server.reports().map(|at| at.to_string()) });
        output::print(&format!("{text}\n"))?;
    } else {
        let mut text = format!("https://{name}:{}/  (HTTP/3)\n", server.address().port());
        if let Some(at) = server.reports() {
            text += &format!("reports over UDP at {at}\n");
        }
        if let Some(spki) = spki {
            text += &format!(
                "self-signed certificate; for Chromium: \
                 --ignore-certificate-errors-spki-list={spki}\n"
            );
        }
        output::print(&text)?;
    }
    std::io::stdout().flush()?;
    server.wait();
    Ok(Outcome::Done)
}

fn event_line(event: &ServerEvent) -> String {
    match event {
        ServerEvent::Answered { peer, path, status, bytes } => {
            format!("{peer} {path} {status}: {bytes} bytes")
        }
        ServerEvent::Ended { peer, duration_ms, rtt_ms, sent_bytes, lost_packets, used } => {
            format!(
                "{peer} ended after {duration_ms:.0} ms: {sent_bytes} bytes sent, {lost_packets} \
             packets lost, RTT {rtt_ms:.1} ms, {} reports, the client's window on {} of {} ACKs",
                used.reports, used.acks_with_client_window, used.acks
            )
        }
    }
}

/// Base64 with padding (RFC 4648, 4), only for hashes.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let word = (0..3)
            .fold(0_usize, |word, n| word << 8 | usize::from(three.get(n).copied().unwrap_or(0)));
        for n in 0..4 {
            let digit = DIGITS[word >> (18 - 6 * n) & 63];
            out.push(if n <= three.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

/// The source of reports; `None` if none was requested.
fn reports(args: &ModemArgs) -> Result<Option<Arc<dyn Reports>>> {
    if let Some(w_claw_bytes) = args.report {
        if !(0.0..=1.0).contains(&args.load) {
            return Err(
                airmile::Error::Option("--load: give a share between 0 and 1".into()).into()
            );
        }
        let report = airmile_claw::FeedbackReport {
            w_claw_bytes,
            load: args.load,
            ..airmile_claw::FeedbackReport::default()
        };
        return Ok(Some(Arc::new(Fixed(report))));
    }
    let source = match (&args.modem, &args.follow) {
        (Some(port), _) => LogSource::modem(port.clone()),
        (_, Some(file)) if file.as_os_str() == "-" => LogSource::Stdin,
        (_, Some(file)) => LogSource::Follow(file.clone()),
        _ => return Ok(None),
    };
    Ok(Some(Arc::new(Modem::start(&source)?)))
}

fn trust(insecure: bool, ca: Option<&PathBuf>) -> Result<Trust> {
    match (insecure, ca) {
        (true, _) => Ok(Trust::Anyone),
        (_, Some(file)) => Ok(Trust::File(file.clone())),
        // The system's store is not read: this is for the user's own server.
        _ => Err(airmile::Error::Option(
            "no trusted certificate: give --ca with the server's certificate, or --insecure".into(),
        )
        .into()),
    }
}

fn agent(global: &Global, args: &ClawAgentArgs) -> Result<Outcome> {
    let Some(reports) = reports(&args.modem)? else {
        let what = "give --modem, --follow, or --report for tests";
        return Err(airmile::Error::Option(what.into()).into());
    };
    let stop = AtomicBool::new(false);
    if args.tcp_option {
        return super::claw_attach::write_options(global, args, &*reports);
    }
    let to = args.to.as_deref().unwrap_or_default();
    let (key, key_id, address) = if to.starts_with("https://") {
        ask_for_key(to, &trust(args.insecure, args.ca.as_ref())?)?
    } else {
        let wrong = format!("--to {to}: give an https URL, or an address with its port");
        let address: SocketAddr = to.parse().map_err(|_| airmile::Error::Option(wrong))?;
        let Some(file) = &args.key_file else {
            let what = "--to with an address needs --key-file";
            return Err(airmile::Error::Option(what.into()).into());
        };
        (read_key(file)?, 0, address)
    };
    let mut options = AgentOptions::new(address, key, key_id);
    options.every = Duration::from_millis(args.every);
    options.rtt_ns = args.rtt.and_then(|rtt| i64::try_from(rtt.as_nanos()).ok());
    let watched = MissingReports::new(&*reports, global.quiet);
    let mut n = 0;
    report(&options, &watched, &stop, &mut |reported| {
        n = reported.n;
        print_report(global, reported);
    })?;
    if !global.quiet {
        output::notice(&format!("the modem log has ended; {n} reports sent"));
    }
    Ok(Outcome::Done)
}

/// Reports once why there are no reports, after a while without any.
struct MissingReports<'a> {
    reports: &'a dyn Reports,
    /// Start of the time without reports; `None`: already reported, or not wanted.
    since: Mutex<Option<Instant>>,
}

/// A shorter time without reports is normal (chosen here: the log has been read by then).
const NONE_YET: Duration = Duration::from_secs(3);

impl<'a> MissingReports<'a> {
    fn new(reports: &'a dyn Reports, quiet: bool) -> Self {
        Self { reports, since: Mutex::new((!quiet).then(Instant::now)) }
    }
}

impl Reports for MissingReports<'_> {
    fn report(&self, rtt_ns: i64, used: bool) -> Option<airmile_claw::FeedbackReport> {
        let report = self.reports.report(rtt_ns, used);
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        match (&report, *since) {
            (Some(_), Some(_)) => *since = Some(Instant::now()),
            (None, Some(began)) if began.elapsed() > NONE_YET => {
                *since = None;
                if let Some(why) = self.reports.why_none() {
                    output::notice(&format!("no reports: {why}"));
                }
            }
            _ => {}
        }
        report
    }

    fn has_ended(&self) -> bool {
        self.reports.has_ended()
    }
}

/// Prints a line for each report in JSON mode, one per second otherwise.
pub(super) fn print_report(global: &Global, reported: &Reported) {
    if global.json {
        let text = serde_json::to_string(reported).unwrap_or_default();
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{text}");
        let _ = out.flush();
    } else if !global.quiet && (reported.n % 10 == 1 || global.verbose > 0) {
        output::notice(&format!(
            "report {}: window {} bytes, load {:.0} %{}, bottleneck {}; {}{}",
            reported.n,
            reported.w_claw_bytes,
            // Not "-0 %".
            reported.load * 100.0 + 0.0,
            if reported.idle { ", idle" } else { "" },
            reported.bottleneck,
            match reported.status {
                "no connection" => "the server has no open page from this address",
                "not answered yet" =>
                    "no response yet: no server at this address, or a different key",
                other => other,
            },
            reported
                .session
                .as_ref()
                .filter(|_| reported.n <= 20)
                .map_or_else(String::new, |session| format!(
                    "; a page can name the session: ?claw={session}"
                )),
        ));
    }
}

fn fetch(global: &Global, args: &ClawGetArgs) -> Result<Outcome> {
    let trust = trust(args.insecure, args.ca.as_ref())?;
    let reports = reports(&args.modem)?;
    let mut all = Vec::new();
    for _ in 0..args.times {
        let mut file = args.output.as_ref().map(|path| Replacement::begin(path)).transpose()?;
        let fetched = get(&args.url, &trust, reports.clone(), &mut |bytes| match &mut file {
            Some((_, file)) => file.write_all(bytes),
            None => Ok(()),
        })?;
        if let Some((out, _)) = file {
            out.done()?;
        }
        if !global.json {
            output::print(&fetched_line(&fetched))?;
        }
        if let Some(reports) = reports.as_ref().filter(|_| fetched.reports == 0 && !global.quiet) {
            let why = reports.why_none().unwrap_or_default();
            output::notice(&format!("no reports were sent, the window was Cubic's: {why}"));
        }
        all.push(fetched);
    }
    let failed = all.iter().any(|fetched| fetched.status >= 400);
    if global.json {
        let mut times: Vec<f64> = all.iter().map(|fetched| fetched.total_ms).collect();
        times.sort_by(f64::total_cmp);
        let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
        let text = json!({ "fetches": all, "n": times.len(), "mean_total_ms": mean,
            "median_total_ms": times.get(times.len() / 2), "worst_total_ms": times.last() });
        output::print(&format!("{text}\n"))?;
    }
    Ok(if failed { Outcome::Status(3) } else { Outcome::Done })
}

fn fetched_line(fetched: &Fetched) -> String {
    format!(
        "{} {}: {} bytes in {:.1} ms (handshake {:.1}, first byte {:.1}); {} reports, {} bytes\n",
        fetched.url,
        fetched.status,
        fetched.bytes,
        fetched.total_ms,
        fetched.connect_ms,
        fetched.first_byte_ms,
        fetched.reports,
        fetched.report_bytes
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_the_standard() {
        // RFC 4648, 10.
        for (bytes, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
    }
}
