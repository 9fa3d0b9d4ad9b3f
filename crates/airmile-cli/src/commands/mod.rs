//! One module per command: passes arguments to the library and prints its result.

mod budgets;
#[cfg(feature = "network")]
pub mod claw;
#[cfg(feature = "network")]
mod claw_attach;
pub mod compare;
pub mod decode;
pub mod diagnose;
pub mod engine;
pub mod inspect;
pub mod lab;
#[cfg(feature = "network")]
pub mod live;
pub mod manual;
pub mod packets;
mod pages;
#[cfg(feature = "network")]
pub mod probe;
#[cfg(feature = "network")]
pub mod qcut;
pub mod radio;
#[cfg(feature = "network")]
pub mod record;
pub mod scrub;
#[cfg(feature = "network")]
pub mod shell;

use airmile::format_utc;
#[cfg(feature = "network")]
use shell::hosts;

/// This build runs nothing in real time: experiments that need it are skipped.
#[cfg(not(feature = "network"))]
#[allow(clippy::unnecessary_wraps, reason = "as that of `shell`")]
fn hosts() -> anyhow::Result<Option<Box<dyn airmile_lab::reproduce::Hosts>>> {
    Ok(None)
}

/// Time of day of a time in microseconds.
fn time_of_day(us: i64) -> String {
    let text = format_utc(us.saturating_mul(1_000));
    text.get(11..).unwrap_or(&text).to_owned()
}
