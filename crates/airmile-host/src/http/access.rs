//! Access control: by token, if one is set.

use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::listener::ConnectionPlace;
use super::refuse;

/// The credentials that a request needs.
#[derive(Debug, Clone)]
pub(super) struct Access {
    token: Option<Arc<str>>,
}

impl Access {
    pub(super) fn new(token: Option<&str>) -> Self {
        Self { token: token.map(Arc::from) }
    }
}

/// Admits a request: with the token if one is set, otherwise if it names the machine itself.
pub(super) async fn admit(State(access): State<Access>, request: Request, next: Next) -> Response {
    if let Err(why) = may_enter(&access, &request) {
        let mut refusal = refuse(StatusCode::UNAUTHORIZED, why);
        let headers = refusal.headers_mut();
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        return refusal;
    }
    let place = request.extensions().get::<ConnectInfo<ConnectionPlace>>();
    if !place.is_none_or(|ConnectInfo(place)| place.admit()) {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many connections are open");
    }
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    answer
}

fn may_enter(access: &Access, request: &Request) -> Result<(), &'static str> {
    let Some(token) = &access.token else {
        let named = request
            .uri()
            .host()
            .or_else(|| request.headers().get(header::HOST).and_then(|host| host.to_str().ok()));
        return match named {
            Some(host) if is_loopback_name(host) => Ok(()),
            _ => Err("the request must name this machine: localhost, 127.0.0.1 or [::1]"),
        };
    };
    let bearer = request.headers().get(header::AUTHORIZATION).and_then(|value| {
        let value = value.to_str().ok()?;
        value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
    });
    let query = request.uri().query().unwrap_or_default();
    let in_query = query.split('&').find_map(|pair| pair.strip_prefix("token="));
    match bearer.map(|(_, given)| given).or(in_query) {
        Some(given) if is_same(given.as_bytes(), token.as_bytes()) => Ok(()),
        Some(_) => Err("the token is wrong"),
        None => Err("a token is needed: Authorization: Bearer TOKEN, or ?token=TOKEN"),
    }
}

/// Whether a name, with or without a port, can only be this machine.
fn is_loopback_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Compares in constant time.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}
