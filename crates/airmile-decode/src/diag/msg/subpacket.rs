//! The subpacket framing used by many messages.
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | u8 | message version |
//! | 1 | u8 | number of subpackets |
//! | 2 | 2 bytes | not explained |
//! | 4 | | subpackets: u8 id, u8 version, u16 size with these 4 bytes, body |
//!
//! The size field leads to the next subpacket; a body's own tables are not trusted to
//! reach its end.

use crate::diag::bits::{BEYOND, Cursor, Short, Writer, u8_at, u16_at};

/// A subpacket body being read.
pub(crate) struct Body<'a> {
    /// Its id.
    pub id: u8,
    /// Its version.
    pub version: u8,
    /// Its bytes.
    pub cursor: Cursor<'a>,
}

/// Message version, the known subpackets, and the unreadable parts.
pub(crate) type Subpackets<T> = (u8, Vec<T>, Option<Short>);

/// Reads all subpackets with `known`, which returns `None` for an unknown id or version.
pub(crate) fn parse_all<T>(
    payload: &[u8],
    mut known: impl FnMut(&mut Body<'_>, &mut Option<Short>) -> Result<Option<T>, Short>,
) -> Result<Option<Subpackets<T>>, Short> {
    let mut cursor = Cursor::new(payload);
    let head = cursor.take(4, "message head")?;
    let version = head.u8(u8_at(0));
    let count = head.u8(u8_at(1));
    if version != 1 {
        return Ok(None);
    }
    let mut problem = None;
    let mut out = Vec::new();
    let mut unknown = false;
    for _ in 0..count {
        let at = cursor.at();
        let head = match cursor.take(4, "subpacket head") {
            Ok(head) => head,
            Err(short) => {
                problem.get_or_insert(short);
                break;
            }
        };
        let size = usize::from(head.u16(u16_at(2)));
        if size < 4 {
            let why = "is less than the subpacket's head";
            problem.get_or_insert(Short { field: "subpacket size", at: at + 2, why });
            break;
        }
        let (sub, whole) = cursor.sub(size - 4);
        let mut body = Body { id: head.u8(u8_at(0)), version: head.u8(u8_at(1)), cursor: sub };
        let mut inner = None;
        match known(&mut body, &mut inner) {
            Ok(Some(value)) => out.push(value),
            Ok(None) => unknown = true,
            Err(short) => inner = Some(short),
        }
        if !whole {
            inner.get_or_insert(Short { field: "subpacket size", at: at + 2, why: BEYOND });
        }
        if let Some(short) = inner {
            problem.get_or_insert(short);
        }
    }
    if out.is_empty() && unknown && problem.is_none() {
        return Ok(None);
    }
    Ok(Some((version, out, problem)))
}

/// Writes the message head.
pub(crate) fn emit_head(version: u8, count: usize) -> Writer {
    let mut writer = Writer::new(4);
    writer.set(0, u8_at(0), version).set(0, u8_at(1), count as u64);
    writer
}

/// Writes a subpacket with a body written by `fill`, padded with zeros to a multiple of 4
/// bytes, as phones do.
pub(crate) fn emit(writer: &mut Writer, id: u8, version: u8, fill: impl FnOnce(&mut Writer)) {
    let start = writer.part(4);
    fill(writer);
    let odd = (writer.len() - start) % 4;
    if odd != 0 {
        writer.part(4 - odd);
    }
    let size = writer.len() - start;
    writer.set(start, u8_at(0), id).set(start, u8_at(1), version).set(
        start,
        u16_at(2),
        size as u64,
    );
}
