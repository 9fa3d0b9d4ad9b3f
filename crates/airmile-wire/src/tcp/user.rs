//! One user: a client's address without a pause of an hour (paper 3.1).

use airmile_model::flow::UserRow;
use airmile_model::packet::Address;

use super::aggregate::AggregateBandwidth;
use super::energy::{RadioModel, RadioUse, Without};
use super::opt64::Opt32;
use super::periodic::Rhythms;

/// Maximum number of concurrent flows to distinguish (chosen here: the paper's figure 6
/// ends below it).
const MAX_CONCURRENT: usize = 16;

/// A user session.
#[derive(Debug)]
pub(super) struct UserState {
    pub(super) number: u64,
    pub(super) address: Address,
    start_ns: i64,
    pub(super) last_ns: i64,
    pub(super) flows: u64,
    pub(super) packets: u64,
    bytes: [u64; 2],
    /// G of the flow with the longest observation.
    tick_ns: Option<f64>,
    tick_span_ns: i64,
    second: i64,
    in_second: u32,
    /// Flow that was the first to receive in this second.
    pub(super) first_in_second: Opt32,
    /// Seconds by the number of flows that received in them: 1, 2, ..., and the last or
    /// more.
    seconds: [u32; MAX_CONCURRENT],
    radio: RadioUse,
    radio_prompt_close: Without,
    radio_aperiodic: Without,
    pub(super) low_use_ns: f64,
    pub(super) rhythms: Rhythms,
    pub(super) aggregate: AggregateBandwidth,
}

/// A packet of a user, for the radio models.
#[derive(Debug, Clone, Copy)]
pub(super) struct RadioPacket {
    pub(super) at_ns: i64,
    pub(super) ip_bytes: u32,
    pub(super) payload_bytes: u32,
    pub(super) up: bool,
    /// It belongs to the end of a flow whose payload is complete.
    pub(super) closing: bool,
    pub(super) server: Address,
}

impl UserState {
    pub(super) fn new(number: u64, address: Address, now: i64) -> Self {
        Self {
            number,
            address,
            start_ns: now,
            last_ns: now,
            flows: 0,
            packets: 0,
            bytes: [0; 2],
            tick_ns: None,
            tick_span_ns: 0,
            second: i64::MIN,
            in_second: 0,
            first_in_second: Opt32::NONE,
            seconds: [0; MAX_CONCURRENT],
            radio: RadioUse::default(),
            radio_prompt_close: Without::default(),
            radio_aperiodic: Without::default(),
            low_use_ns: 0.0,
            rhythms: Rhythms::default(),
            aggregate: AggregateBandwidth::default(),
        }
    }

    pub(super) const fn start_ns(&self) -> i64 {
        self.start_ns
    }

    /// Takes any packet of the user.
    #[inline(always)]
    pub(super) fn push(&mut self, model: &RadioModel, packet: RadioPacket) {
        let RadioPacket { at_ns, ip_bytes, up, .. } = packet;
        self.last_ns = self.last_ns.max(at_ns);
        self.packets += 1;
        self.bytes[usize::from(up)] += u64::from(ip_bytes);
        let periodic = packet.payload_bytes > 0
            && self.rhythms.push(packet.server, at_ns, packet.payload_bytes);
        let as_usual = !packet.closing
            && !periodic
            && self.radio_prompt_close.follows()
            && self.radio_aperiodic.follows();
        if as_usual {
            self.radio.push(model, at_ns, ip_bytes, up);
        } else {
            self.push_apart(model, packet, periodic);
        }
    }

    /// Takes a packet that some radio model leaves out or treats apart.
    #[cold]
    fn push_apart(&mut self, model: &RadioModel, packet: RadioPacket, periodic: bool) {
        let RadioPacket { at_ns, ip_bytes, up, .. } = packet;
        let before = self.radio;
        self.radio.push(model, at_ns, ip_bytes, up);
        for (other, skips) in
            [(&mut self.radio_prompt_close, packet.closing), (&mut self.radio_aperiodic, periodic)]
        {
            if skips || !other.follows() {
                other.push(&before, &self.radio, |radio| {
                    if !skips {
                        radio.push(model, at_ns, ip_bytes, up);
                    }
                });
            }
        }
    }

    /// Records that a TCP flow receives for the first time in this second; returns how
    /// many did before it.
    pub(super) fn receives(&mut self, second: i64, flow: u32) -> u32 {
        if second != self.second {
            self.end_second();
            self.second = second;
            self.first_in_second = Some(flow).into();
        }
        self.in_second += 1;
        if self.in_second > 1 {
            self.aggregate.concurrent_flows(second, self.in_second);
        }
        self.in_second - 1
    }

    fn end_second(&mut self) {
        let flows = std::mem::take(&mut self.in_second) as usize;
        let place = flows.min(MAX_CONCURRENT).checked_sub(1);
        if let Some(seconds) = place.and_then(|place| self.seconds.get_mut(place)) {
            *seconds += 1;
        }
    }

    /// Number of concurrent flows, and in how many seconds, after [`row`](Self::row) has
    /// ended the last second.
    pub(super) fn concurrency(&self) -> impl Iterator<Item = (usize, u64)> {
        self.seconds.iter().enumerate().map(|(place, &seconds)| (place + 1, seconds.into()))
    }

    /// Takes G of a flow observed for `span_ns`.
    pub(super) fn learn_tick(&mut self, tick_ns: f64, span_ns: i64) {
        if span_ns > self.tick_span_ns {
            (self.tick_ns, self.tick_span_ns) = (Some(tick_ns), span_ns);
        }
    }

    /// G of the device.
    pub(super) const fn tick_ns(&self) -> Option<f64> {
        self.tick_ns
    }

    pub(super) fn row(&mut self, model: &RadioModel) -> UserRow {
        self.end_second();
        let radio = self.radio.ended(model);
        let energy_mj = radio.energy_mj(model);
        let all = self.radio;
        let without =
            |other: Without| (energy_mj - other.radio(&all).ended(model).energy_mj(model)).max(0.0);
        UserRow {
            user: self.number,
            client: self.address.to_string(),
            start_ns: self.start_ns,
            duration_ns: self.last_ns - self.start_ns,
            flows: self.flows,
            dl_ip_bytes: self.bytes[0],
            ul_ip_bytes: self.bytes[1],
            tick_ns: self.tick_ns(),
            seconds_one_flow: self.seconds[0].into(),
            seconds_more_flows: self.seconds.iter().skip(1).map(|&n| u64::from(n)).sum(),
            promotions: radio.promotions,
            radio_on_ns: radio.on_ns(),
            radio_tail_ns: radio.tail_ns,
            energy_mj,
            energy_late_close_mj: without(self.radio_prompt_close),
            energy_periodic_mj: without(self.radio_aperiodic),
            energy_low_use_mj: self.low_use_ns * model.connected_mw / 1e9,
        }
    }
}
