//! TCP headers (RFC 9293, 3.1), as far as they were captured.

use airmile_model::packet::{SeqNum, TcpFlags, TcpHeader};

use super::dissect::{Unread, u32_at};

/// Reads the header; returns its length in bytes, options included.
#[inline]
pub(super) fn read(data: &[u8], header: &mut TcpHeader) -> Result<usize, Unread> {
    let fixed = data.first_chunk::<20>().ok_or(Unread::Cut("TCP"))?;
    let header_bytes = usize::from(fixed[12] >> 4) * 4;
    if header_bytes < 20 {
        return Err(Unread::Bad("TCP data offset"));
    }
    header.seq = SeqNum(u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]));
    header.ack = SeqNum(u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]));
    header.flags = TcpFlags(fixed[13]);
    header.ae = fixed[12] & 1 != 0;
    header.window = u16::from_be_bytes([fixed[14], fixed[15]]);
    header.checksum = u16::from_be_bytes([fixed[16], fixed[17]]);
    let options = data.get(20..header_bytes.min(data.len())).unwrap_or_default();
    header.options_cut = data.len() < header_bytes;
    read_options(header, options);
    Ok(header_bytes)
}

/// Reads options into a header.
#[inline]
pub(super) fn read_options(header: &mut TcpHeader, mut options: &[u8]) {
    // The usual options: two no-operations, then time stamps.
    if let [1, 1, 8, 10, stamps @ ..] = options
        && let Some(stamps) = stamps.first_chunk::<8>()
    {
        header.timestamps = u32_at(stamps, 0).zip(u32_at(stamps, 4));
        options = options.get(12..).unwrap_or_default();
    }
    if !options.is_empty() {
        read_more(header, options);
    }
}

fn read_more(header: &mut TcpHeader, mut options: &[u8]) {
    while let [kind, rest @ ..] = options {
        match kind {
            0 => return,
            1 => options = rest,
            _ => {
                let Some(&length) = rest.first() else { return };
                let length = usize::from(length);
                if length < 2 {
                    return;
                }
                // Cut by the snap length, which is known, or beyond the header.
                let Some(value) = options.get(2..length) else { return };
                read_option(header, *kind, value);
                options = options.get(length..).unwrap_or_default();
            }
        }
    }
}

fn read_option(header: &mut TcpHeader, kind: u8, value: &[u8]) {
    match (kind, value) {
        (2, &[high, low]) => header.mss_bytes = Some(u16::from_be_bytes([high, low])),
        // RFC 7323, 2.3: more than 14 counts as 14.
        (3, &[scale]) => header.window_scale = Some(scale.min(14)),
        (4, []) => header.sack_permitted = true,
        (5, blocks) => {
            for block in blocks.chunks_exact(8) {
                if let Some((left, right)) = u32_at(block, 0).zip(u32_at(block, 4)) {
                    header.sack.push(SeqNum(left), SeqNum(right));
                }
            }
        }
        // RFC 7323, 3.2: eight bytes; another length is no time stamp.
        (8, stamps) if stamps.len() == 8 => {
            header.timestamps = u32_at(stamps, 0).zip(u32_at(stamps, 4));
        }
        _ => {}
    }
}
