//! One module per command: passes arguments to the library and prints its result.

mod budgets;
pub mod claw;
mod claw_attach;
pub mod compare;
pub mod decode;
pub mod diagnose;
pub mod engine;
pub mod inspect;
pub mod lab;
pub mod live;
pub mod manual;
pub mod packets;
mod pages;
pub mod probe;
pub mod qcut;
pub mod radio;
pub mod record;
pub mod scrub;
pub mod shell;

use airmile::format_utc;

/// Time of day of a time in microseconds.
fn time_of_day(us: i64) -> String {
    let text = format_utc(us.saturating_mul(1_000));
    text.get(11..).unwrap_or(&text).to_owned()
}
