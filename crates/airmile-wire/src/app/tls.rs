//! The unencrypted part of a TLS client hello: SNI (RFC 6066, 3) and ALPN (RFC 7301).

/// Names of a client hello, as far as they were captured.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) server_name: Option<String>,
    /// The first protocol offered by the client.
    pub(super) alpn: Option<String>,
}

/// Whether a payload begins with a client hello (RFC 8446, 5.1 and 4).
pub(super) fn is_hello(payload: &[u8]) -> bool {
    matches!(payload, [0x16, 3, _, _, _, 1, ..])
}

/// Whether the record at the start of a payload is complete, or claims more than a
/// record's maximum length (RFC 8446, 5.1). A post-quantum key share takes two segments.
pub(super) fn is_whole(payload: &[u8]) -> bool {
    const MAX_BYTES: usize = 5 + (1 << 14);
    let length = u16_at(payload, 3).map_or(0, usize::from);
    payload.len() >= (5 + length).min(MAX_BYTES)
}

/// Reads a client hello, record header first.
pub(super) fn client_hello(payload: &[u8]) -> Hello {
    // RFC 8446, 5.1: a record's header has 5 bytes.
    handshake_hello(payload.get(5..).unwrap_or_default())
}

/// Reads a client hello from its handshake header on, as QUIC carries it.
pub(super) fn handshake_hello(handshake: &[u8]) -> Hello {
    let mut hello = Hello::default();
    // The names before a truncation stay.
    let _ = read(handshake, &mut hello);
    hello
}

fn read(handshake: &[u8], hello: &mut Hello) -> Option<()> {
    // Handshake header (4), version (2), random (32).
    let rest = handshake.get(38..)?;
    let rest = skip(rest, usize::from(*rest.first()?) + 1)?;
    let rest = skip(rest, usize::from(u16_at(rest, 0)?) + 2)?;
    let rest = skip(rest, usize::from(*rest.first()?) + 1)?;
    let mut extensions = skip(rest, 2)?;
    loop {
        let (kind, length) = (u16_at(extensions, 0)?, usize::from(u16_at(extensions, 2)?));
        let body = extensions.get(4..4 + length)?;
        match kind {
            // List length (2), type (1), length (2), name.
            0 => {
                let length = usize::from(u16_at(body, 3)?);
                hello.server_name = text(body.get(5..5 + length)?);
            }
            16 => {
                let length = usize::from(*body.get(2)?);
                hello.alpn = text(body.get(3..3 + length)?);
            }
            _ => {}
        }
        extensions = skip(extensions, 4 + length)?;
    }
}

fn skip(bytes: &[u8], n: usize) -> Option<&[u8]> {
    bytes.get(n..)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn text(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.bytes().all(|b| b.is_ascii_graphic()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Vec<u8> {
        let mut out = vec![0x16, 3, 1, 0, 0, 1, 0, 0, 0, 3, 3];
        out.extend([7; 32]);
        out.extend([0, 0, 2, 0x13, 1, 1, 0]);
        let mut extensions = vec![0, 0, 0, 9, 0, 7, 0, 0, 4];
        extensions.extend(b"a.bc");
        extensions.extend([0, 16, 0, 5, 0, 3, 2]);
        extensions.extend(b"h2");
        out.extend((extensions.len() as u16).to_be_bytes());
        out.extend(extensions);
        out
    }

    #[test]
    fn a_hello_may_take_two_segments() {
        let whole = hello();
        let length = whole.len() - 5;
        let mut cut = whole.clone();
        cut[3..5].copy_from_slice(&(length as u16 + 10).to_be_bytes());
        assert!(!is_whole(&cut));
        cut.extend([0; 10]);
        assert!(is_whole(&cut));
        assert!(!is_whole(&cut[..4]));
    }

    #[test]
    fn names_of_whole_and_cut_hellos() {
        let whole = hello();
        assert!(is_hello(&whole));
        let (name, alpn) = (Some("a.bc".to_owned()), Some("h2".to_owned()));
        assert_eq!(client_hello(&whole), Hello { server_name: name.clone(), alpn });
        let cut = &whole[..whole.len() - 1];
        assert_eq!(client_hello(cut), Hello { server_name: name, alpn: None });
        for end in 0..whole.len() {
            client_hello(&whole[..end]);
        }
    }
}
