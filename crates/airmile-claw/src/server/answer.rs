//! Answers to requests: files, and the parameters for reports.

use std::net::IpAddr;

use airmile_control::claw::feedback::SessionToken;
use airmile_host::files::open_site_file;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use tokio::io::AsyncReadExt;

use super::bounded::RequestStream;
use super::files::media_type;
use super::{ABOUT, Site};
use crate::keys;

/// Size of the chunks in which files are read (chosen here: each request of a connection may
/// hold one).
const CHUNK_BYTES: usize = 16 * 1024;

/// The parameter and the cookie that name a session.
const NAME: &str = "claw";

type Stream = h3::server::RequestStream<RequestStream, Bytes>;

/// The session that a request names: `?claw=TOKEN`, or the cookie of the same name.
pub(super) fn session_of(request: &Request<()>) -> Option<SessionToken> {
    let of_query = request.uri().query().into_iter().flat_map(|query| query.split('&'));
    let cookies = request.headers().get_all(http::header::COOKIE).into_iter();
    let cookies = cookies.filter_map(|cookie| cookie.to_str().ok());
    let of_cookie = cookies.flat_map(|cookie| cookie.split(';')).map(str::trim);
    of_query.chain(of_cookie).find_map(|pair| token(pair.strip_prefix(NAME)?.strip_prefix('=')?))
}

fn token(text: &str) -> Option<SessionToken> {
    let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()?;
    Some(SessionToken(number.to_be_bytes()))
}

pub(super) async fn answer(
    request: &Request<()>,
    stream: &mut Stream,
    site: &Site,
    from: IpAddr,
) -> (StatusCode, u64) {
    let is_head = request.method() == Method::HEAD;
    if !is_head && request.method() != Method::GET {
        return refuse(stream, StatusCode::METHOD_NOT_ALLOWED).await;
    }
    if request.uri().path() == ABOUT {
        return match about(site, from) {
            Some(text) => whole(stream, "application/json", text.into(), is_head).await,
            None => refuse(stream, StatusCode::NOT_FOUND).await,
        };
    }
    let Some((path, file)) = open_site_file(&site.dir, request.uri().path()) else {
        return refuse(stream, StatusCode::NOT_FOUND).await;
    };
    let mut file = tokio::fs::File::from_std(file);
    let length = file.metadata().await.map(|data| data.len()).unwrap_or_default();
    let mut response = Response::builder()
        .header(http::header::CONTENT_LENGTH, length)
        .header(http::header::CONTENT_TYPE, media_type(&path));
    if let Some(token) = session_of(request) {
        // Its further connections belong to the same session.
        let number = u128::from_be_bytes(token.0);
        let cookie = format!("{NAME}={number:032x}; Path=/; Secure; HttpOnly; SameSite=Lax");
        response = response.header(http::header::SET_COOKIE, cookie);
    }
    let Ok(response) = response.body(()) else { return (StatusCode::INTERNAL_SERVER_ERROR, 0) };
    if stream.send_response(response).await.is_err() {
        return (StatusCode::OK, 0);
    }
    // A HEAD request gets no body.
    let wanted = if is_head { 0 } else { length };
    let mut sent = 0;
    while sent < wanted {
        let mut chunk = vec![0; CHUNK_BYTES];
        let Ok(bytes) = file.read(&mut chunk).await else { break };
        chunk.truncate(bytes.min(usize::try_from(wanted - sent).unwrap_or(bytes)));
        let bytes = chunk.len() as u64;
        if bytes == 0 || stream.send_data(chunk.into()).await.is_err() {
            break;
        }
        sent += bytes;
    }
    if sent < wanted {
        // The body is truncated: the client must not treat it as complete.
        stream.stop_stream(h3::error::Code::H3_INTERNAL_ERROR);
    } else {
        let _ = stream.finish().await;
    }
    (StatusCode::OK, sent)
}

/// Parameters for reports over UDP: a key for this client, and the port.
fn about(site: &Site, from: IpAddr) -> Option<String> {
    let port = site.reports_port?;
    // Key 0 is the shared one.
    let key_id = u64::from_be_bytes(keys::random().ok()?).max(1);
    let key = keys::to_text(&site.secret.derive(key_id));
    let text = serde_json::json!({ "version": 1, "port": port, "key_id": key_id.to_string(),
        "key": key, "address": from.to_canonical().to_string() });
    Some(text.to_string())
}

async fn refuse(stream: &mut Stream, status: StatusCode) -> (StatusCode, u64) {
    if let Ok(response) = Response::builder().status(status).body(()) {
        let _ = stream.send_response(response).await;
        let _ = stream.finish().await;
    }
    (status, 0)
}

async fn whole(
    stream: &mut Stream,
    media_type: &str,
    body: Bytes,
    is_head: bool,
) -> (StatusCode, u64) {
    let response = Response::builder()
        .header(http::header::CONTENT_TYPE, media_type)
        .header(http::header::CACHE_CONTROL, "no-store")
        .body(());
    let bytes = body.len() as u64;
    if let Ok(response) = response
        && stream.send_response(response).await.is_ok()
    {
        if !is_head {
            let _ = stream.send_data(body).await;
        }
        let _ = stream.finish().await;
    }
    (StatusCode::OK, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_their_session() {
        let hex = "000102030405060708090a0b0c0d0e0f";
        let token = SessionToken(std::array::from_fn(|n| n as u8));
        let check = |uri: String, cookie: &str, expected: Option<SessionToken>| {
            let request = Request::get(uri).header("cookie", cookie).body(()).unwrap();
            assert_eq!(session_of(&request), expected);
        };
        check(format!("https://a/b?x=1&claw={hex}"), "", Some(token));
        check("https://a/b".to_owned(), &format!("x=1; claw={hex}"), Some(token));
        check(format!("https://a/b?claw={}", &hex[1..]), "", None);
        check(format!("https://a/b?claw=+{}", &hex[1..]), "claw=", None);
    }
}
