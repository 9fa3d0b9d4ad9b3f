//! The senders of a phone's connections, of either direction.

use airmile_model::Direction;
use airmile_wire::attribute::{
    ByteBins, CaptureSite, LostSegment, PayloadBegin, PolicedSpan, ReceiveWindow, SenderModel,
    Uploads, WaitSpan, WaitTimeline,
};
use airmile_wire::tcp::TracedPacket;

use super::Phone;
use super::connection::PhoneConnection;

/// A connection's start.
#[derive(Debug)]
pub struct Opening {
    /// When, in nanoseconds.
    pub begun_ns: i64,
    /// How the window of the receiver grew.
    pub windows: Vec<ReceiveWindow>,
}

impl PhoneConnection {
    /// Takes a packet as the phone's own sender sees it, unless round trips show that the capture is
    /// the server's. Appends what its uploads waited for, and their payload.
    pub(super) fn send(
        &mut self,
        packet: &TracedPacket,
        begin: &PayloadBegin,
        held: &mut Vec<WaitSpan>,
        into: (&mut WaitTimeline, &mut ByteBins),
    ) {
        if self.sender.is_at_server() {
            (self.sending, self.uploads) = (None, Uploads::default());
            return;
        }
        let sending = self.sending.get_or_insert_with(SenderModel::of_phone);
        if packet.dir == Direction::Ul && packet.payload_bytes > 0 {
            sending.client_payload(begin);
        }
        held.clear();
        sending.push(packet, held);
        self.uploads.push(packet, held, into);
    }
}

impl Phone {
    /// What sends to it, or its own sides that send; none if its connections end inside it.
    pub(super) fn senders(&self, dir: Direction) -> impl Iterator<Item = &SenderModel> + Clone {
        let connections = self.connections.iter().filter(|_| self.place != CaptureSite::Inside);
        connections.filter_map(move |one| match dir {
            Direction::Dl => Some(&one.sender),
            Direction::Ul => one.sending.as_ref(),
        })
    }

    /// Whether most of its uploads' waits for windows were for readers that are slow.
    #[must_use]
    pub fn waits_for_readers(&self) -> bool {
        let waits = self.senders(Direction::Ul).map(SenderModel::window_waits);
        let sum = |of: usize| waits.clone().map(|each| u64::from(each[of])).sum::<u64>();
        2 * sum(1) > sum(0)
    }

    /// When its connections started, in nanoseconds, and how windows of their receivers of data in a
    /// direction grew; in order.
    #[must_use]
    pub fn openings(&self, dir: Direction) -> Vec<Opening> {
        let mut openings: Vec<Opening> = self
            .senders(dir)
            .filter(|sender| !sender.windows().is_empty())
            .filter_map(|sender| Some((sender.begun_ns()?, sender.windows().to_vec())))
            .map(|(begun_ns, windows)| Opening { begun_ns, windows })
            .collect();
        openings.sort_by_key(|one| one.begun_ns);
        openings
    }

    /// When policers acted on its connections.
    #[must_use]
    pub fn policed(&self) -> Vec<PolicedSpan> {
        self.senders(Direction::Dl).filter_map(SenderModel::policed).collect()
    }

    /// Retransmitted segments of a direction.
    #[must_use]
    pub fn lost(&self, dir: Direction) -> Vec<LostSegment> {
        self.senders(dir).flat_map(SenderModel::lost).copied().collect()
    }
}
