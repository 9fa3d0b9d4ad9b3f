//! Which cause each moment of a transfer went to.
//!
//! [`SenderStory`] takes one connection's packets and tells what its sender
//! waited for before each of them. [`Attribution`] puts the stories of a phone's
//! connections on one time axis, lets the radio take precedence where its queue
//! was not empty, and splits each transfer among causes; the parts add up to its
//! duration.
//!
//! A capture may be taken anywhere. At the phone, a packet was released by the
//! acknowledgement whose time stamp it echoes (RFC 7323, 4.3), or which passed an
//! upstream round trip before; at the server that round trip is nothing.

mod least;
mod merge;
mod path;
mod place;
mod split;
mod story;
#[cfg(test)]
mod tests;
mod window;

pub use least::least_ns;
pub use path::{Passage, PathQueue};
pub use merge::{ByteBins, Wait, Waits};
pub use place::{Place, Sides};
pub use split::{Attribution, RELEASE_NS, Radio, RadioSpan, Shares};
pub use story::{Held, LostSegment, Reason, SenderStory};
