//! A stream of packets: tracks, slices and counters, with names sent once.

use std::collections::HashMap;
use std::io::{self, Write};

use prost::Message;

use super::proto::{
    CLOCK_BOOTTIME, CLOCK_REALTIME, COUNTER, Clock, ClockSnapshot, CounterDescriptor,
    DebugAnnotation, InternedData, InternedName, ORDER_EXPLICIT, PACKET_TAG, SEQUENCE_CLEARED,
    SEQUENCE_NEEDS_STATE, SLICE_BEGIN, SLICE_END, TracePacket, TrackDescriptor, TrackEvent, Value,
};

/// The one sequence of packets in the trace; any number but 0.
pub const SEQUENCE: u32 = 1;

/// The name of a slice.
pub enum Name<'a> {
    /// A common name, written once.
    Common(&'a str),
    /// A unique name.
    Own(String),
}

/// Arguments of a slice; unknown ones are omitted.
#[derive(Default)]
pub struct Args(Vec<(&'static str, Value)>);

impl Args {
    /// Adds an integer; one beyond 64 bits is omitted.
    #[must_use]
    pub fn int(mut self, name: &'static str, value: Option<impl TryInto<i64>>) -> Self {
        if let Some(value) = value.and_then(|value| value.try_into().ok()) {
            self.0.push((name, Value::Int(value)));
        }
        self
    }

    /// Adds a number.
    #[must_use]
    pub fn double(mut self, name: &'static str, value: Option<f64>) -> Self {
        if let Some(value) = value {
            self.0.push((name, Value::Double(value)));
        }
        self
    }

    /// Adds a truth value.
    #[must_use]
    pub fn bool(mut self, name: &'static str, value: Option<bool>) -> Self {
        if let Some(value) = value {
            self.0.push((name, Value::Bool(value)));
        }
        self
    }

    /// Adds a text.
    #[must_use]
    pub fn text(mut self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        if let Some(value) = value {
            self.0.push((name, Value::Text(value.into())));
        }
        self
    }
}

/// The properties of a new track.
pub struct TrackKind<'a> {
    /// The name that viewers show.
    pub name: &'a str,
    /// The parent track; 0 for none.
    pub parent: u64,
    /// Rank among its siblings.
    pub rank: i32,
    /// Unit of a counter; `None` for slices.
    pub unit: Option<&'a str>,
}

/// Writes packets; holds the names that it has sent, and one packet.
pub struct Stream<W> {
    out: W,
    packet: Vec<u8>,
    tracks: u64,
    event_names: Names,
    argument_names: Names,
}

impl<W: Write> Stream<W> {
    /// Starts a stream without tracks.
    pub fn new(out: W) -> Self {
        Self {
            out,
            packet: Vec::new(),
            tracks: 0,
            event_names: Names::default(),
            argument_names: Names::default(),
        }
    }

    /// Declares that times are nanoseconds since the Unix epoch, so that viewers can show the time
    /// of day.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn clock(&mut self, ns: u64) -> io::Result<()> {
        let clock = |id| Clock { clock_id: Some(id), timestamp: Some(ns) };
        let clocks = vec![clock(CLOCK_BOOTTIME), clock(CLOCK_REALTIME)];
        self.write(TracePacket {
            clock_snapshot: Some(ClockSnapshot { clocks }),
            ..TracePacket::default()
        })
    }

    /// Creates a track; returns its number.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn track(&mut self, kind: &TrackKind<'_>) -> io::Result<u64> {
        let first = self.tracks == 0;
        self.tracks += 1;
        let counter = kind.unit.map(|unit| CounterDescriptor { unit_name: Some(unit.to_owned()) });
        self.write(TracePacket {
            sequence_flags: first.then_some(SEQUENCE_CLEARED),
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(self.tracks),
                name: Some(kind.name.to_owned()),
                parent_uuid: (kind.parent != 0).then_some(kind.parent),
                child_ordering: (kind.parent == 0).then_some(ORDER_EXPLICIT),
                sibling_order_rank: Some(kind.rank),
                counter,
            }),
            ..TracePacket::default()
        })?;
        Ok(self.tracks)
    }

    /// Begins a slice.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn begin(&mut self, track: u64, ns: u64, name: Name<'_>, args: Args) -> io::Result<()> {
        let mut interned = InternedData::default();
        let mut event = TrackEvent {
            r#type: Some(SLICE_BEGIN),
            track_uuid: Some(track),
            ..TrackEvent::default()
        };
        match name {
            Name::Common(name) => {
                event.name_iid = Some(self.event_names.number(name, &mut interned.event_names));
            }
            Name::Own(name) => event.name = Some(name),
        }
        for (name, value) in args.0 {
            let iid = self.argument_names.number(name, &mut interned.debug_annotation_names);
            let value = Some(value);
            event.debug_annotations.push(DebugAnnotation { name_iid: Some(iid), value });
        }
        let fresh = interned != InternedData::default();
        self.event(ns, event, fresh.then_some(interned))
    }

    /// Ends the last open slice of the track.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn end(&mut self, track: u64, ns: u64) -> io::Result<()> {
        let event = TrackEvent {
            r#type: Some(SLICE_END),
            track_uuid: Some(track),
            ..TrackEvent::default()
        };
        self.event(ns, event, None)
    }

    /// Adds a point of a counter; only numbers are written.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn count(&mut self, track: u64, ns: u64, value: Value) -> io::Result<()> {
        let mut event =
            TrackEvent { r#type: Some(COUNTER), track_uuid: Some(track), ..TrackEvent::default() };
        match value {
            Value::Int(value) => event.counter_value = Some(value),
            Value::Double(value) => event.double_counter_value = Some(value),
            Value::Bool(_) | Value::Text(_) => return Ok(()),
        }
        self.event(ns, event, None)
    }

    /// Number of interned names.
    pub fn names(&self) -> usize {
        self.event_names.0.len() + self.argument_names.0.len()
    }

    /// Passes on what is buffered.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn event(
        &mut self,
        ns: u64,
        event: TrackEvent,
        interned_data: Option<InternedData>,
    ) -> io::Result<()> {
        self.write(TracePacket {
            timestamp: Some(ns),
            track_event: Some(event),
            interned_data,
            sequence_flags: Some(SEQUENCE_NEEDS_STATE),
            ..TracePacket::default()
        })
    }

    fn write(&mut self, mut packet: TracePacket) -> io::Result<()> {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        self.packet.clear();
        self.packet.push(PACKET_TAG);
        packet.encode_length_delimited(&mut self.packet).map_err(io::Error::other)?;
        self.out.write_all(&self.packet)
    }
}

/// Numbers of names, from 1.
#[derive(Default)]
struct Names(HashMap<String, u64>);

impl Names {
    /// A name's number; a new name is also added to `fresh`.
    fn number(&mut self, name: &str, fresh: &mut Vec<InternedName>) -> u64 {
        if let Some(iid) = self.0.get(name) {
            return *iid;
        }
        let iid = self.0.len() as u64 + 1;
        self.0.insert(name.to_owned(), iid);
        fresh.push(InternedName { iid: Some(iid), name: Some(name.to_owned()) });
        iid
    }
}
