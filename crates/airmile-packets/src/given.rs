//! Parses options of a study.

use std::net::IpAddr;

use airmile_model::packet::Address;
use airmile_wire::tcp::SendRateThreshold;

use airmile_io::error::{Error, Result};

/// Parses a network of clients: `10.0.0.0/8`, `fd00::/8`.
///
/// # Errors
///
/// The text is no network.
pub fn client_network(text: &str) -> Result<(Address, u8)> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(a, bits)| (a, Some(bits)));
    let parsed = address.parse().ok().and_then(|address: IpAddr| {
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|bits| *bits <= most));
        Some((address.into(), bits?))
    });
    parsed.ok_or_else(|| {
        Error::Option(format!("{text:?} is no network: give one as 10.0.0.0/8 or fd00::/8"))
    })
}

/// Parses the sending rate that shows the available bandwidth: Mbit/s or `auto`.
///
/// # Errors
///
/// The text is neither.
pub fn send_rate_threshold(text: &str) -> Result<SendRateThreshold> {
    if text == "auto" {
        return Ok(SendRateThreshold::Auto);
    }
    match text.parse::<f64>() {
        Ok(mbps) if mbps > 0.0 && mbps.is_finite() => Ok(SendRateThreshold::Fixed(mbps * 1e6)),
        _ => Err(Error::Option(format!("{text:?}: give Mbit/s above 0, or auto"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        let network = |text| client_network(text).ok().map(|(a, n)| format!("{a}/{n}"));
        for good in ["10.0.0.0/8", "192.0.2.7/32", "fd00::/8"] {
            assert_eq!(network(good).as_deref(), Some(good));
        }
        // One client.
        assert_eq!(network("10.0.0.2").as_deref(), Some("10.0.0.2/32"));
        assert_eq!(network("fd00::2").as_deref(), Some("fd00::2/128"));
        for bad in ["", "10.0.0.0/", "10.0.0.0/33", "fd00::/129", "x/8", "10.0.0.0/-1"] {
            assert_eq!(network(bad), None, "{bad}");
        }
    }

    #[test]
    fn rates() {
        assert_eq!(send_rate_threshold("auto").ok(), Some(SendRateThreshold::Auto));
        assert_eq!(send_rate_threshold("2.5").ok(), Some(SendRateThreshold::Fixed(2.5e6)));
        for bad in ["0", "-1", "inf", "NaN", "30M", ""] {
            assert!(send_rate_threshold(bad).is_err(), "{bad}");
        }
    }
}
