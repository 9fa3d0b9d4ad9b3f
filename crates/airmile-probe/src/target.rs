//! The server, and the requested content.

use crate::{Error, Result};

/// A server and the content to request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Name or address.
    pub host: String,
    /// Path and query of a URL; `None` if the server is `airmile probe serve`.
    pub path: Option<String>,
}

impl Target {
    /// Parses a host, or a URL without a port.
    ///
    /// # Errors
    /// The text is neither.
    pub fn parse(given: &str) -> Result<Self> {
        let wrong = || Error::Target { given: given.to_owned() };
        let rest = match given.split_once("://") {
            Some(("http" | "https", rest)) => rest,
            Some(_) => return Err(wrong()),
            None => given,
        };
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let host = match authority.strip_prefix('[') {
            Some(address) => address.strip_suffix(']').ok_or_else(wrong)?,
            // More than one colon indicates an IPv6 address; a single one, a port.
            None if authority.matches(':').count() == 1 => return Err(wrong()),
            None => authority,
        };
        let bad = |c: char| c.is_whitespace() || c.is_control();
        if host.is_empty() || host.contains(['@', '?', '#']) || given.contains(bad) {
            return Err(wrong());
        }
        let path = Some(path).filter(|path| path.len() > 1).map(str::to_owned);
        Ok(Self { host: host.to_owned(), path })
    }

    /// The request's target for a segment.
    pub(crate) fn path_of(&self, number: u64, bytes: u64) -> String {
        let own = || format!("/segment?bytes={bytes}&n={number}");
        self.path.clone().unwrap_or_else(own)
    }

    /// The host in URL form.
    pub(crate) fn authority(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_urls() {
        let check = |given: &str, expected: Option<(&str, Option<&str>)>| {
            let got = Target::parse(given).ok();
            let got = got.as_ref().map(|t| (t.host.as_str(), t.path.as_deref()));
            assert_eq!(got, expected, "{given}");
        };
        check("203.0.113.1", Some(("203.0.113.1", None)));
        check("example.org", Some(("example.org", None)));
        check("http://example.org/", Some(("example.org", None)));
        check("https://example.org/a/b?c=d", Some(("example.org", Some("/a/b?c=d"))));
        check("2001:db8::1", Some(("2001:db8::1", None)));
        check("http://[2001:db8::1]/a", Some(("2001:db8::1", Some("/a"))));
        check("example.org:80", None);
        check("ftp://example.org", None);
        check("a b", None);
        check("", None);
    }
}
