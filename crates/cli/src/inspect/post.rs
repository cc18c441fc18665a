//! HTTP/1.1 client with hyper that sends POST requests with JSON to one URL. Each request has its
//! own connection. rustls encrypts it for `https`.

#[cfg_attr(not(feature = "tls"), path = "post/no_tls.rs")]
mod tls;

use std::error::Error;
use std::io;
use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::failure::{Failure, Result};
use crate::ping::dial;

/// Time limit for connecting, and for the answer.
const TIME: Duration = Duration::from_secs(10);
/// Maximum size of an answer.
const LONGEST: usize = 64 * 1024;
const AGENT: &str = concat!("taut/", env!("CARGO_PKG_VERSION"));

/// Target of the requests.
#[derive(Debug, PartialEq, Eq)]
struct TargetUrl {
    encrypted: bool,
    /// Host name, or an address without brackets.
    host: String,
    port: u16,
    /// Host and port as given.
    authority: String,
    path: String,
}

impl TargetUrl {
    /// Parses `http[s]://HOST[:PORT][/PATH]`. The default port of `http` is `port`; `https` has its
    /// own.
    fn parse(text: &str, port: u16, path: &str) -> Result<TargetUrl> {
        let nonsense =
            || Failure::usage(format!("{text:?} is not a valid address: use http[s]://HOST[:PORT][/PATH]"));
        let uri: Uri = text.parse().map_err(|_| nonsense())?;
        let encrypted = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(nonsense()),
        };
        let authority = uri.authority().ok_or_else(nonsense)?;
        if authority.as_str().contains('@') {
            return Err(Failure::usage("the address of a collector must not contain a password")
                .hint("--otlp-header, or the variable OTEL_EXPORTER_OTLP_HEADERS, carries the credentials"));
        }
        let given = match authority.port() {
            // There is a colon without a valid port after it.
            None if authority.as_str().len() > authority.host().len() => return Err(nonsense()),
            port => port.map(|port| port.as_u16()),
        };
        let own = uri.path_and_query().map(|path| path.as_str()).filter(|path| *path != "/");
        Ok(TargetUrl {
            encrypted,
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: given.unwrap_or(if encrypted { 443 } else { port }),
            authority: authority.as_str().to_owned(),
            path: own.unwrap_or(path).to_owned(),
        })
    }
}

/// Client for one URL.
pub struct Client {
    place: TargetUrl,
    headers: HeaderMap,
    /// Encryption for `https`.
    tls: Option<tls::Connector>,
    runtime: Runtime,
}

impl Client {
    /// Creates a client for this URL. `port` and `path` are the defaults. With `https`, it trusts
    /// the certificates in the file, or those that the system trusts.
    pub fn new(
        address: &str,
        port: u16,
        path: &str,
        headers: HeaderMap,
        trusted: Option<&Path>,
    ) -> Result<Client> {
        let place = TargetUrl::parse(address, port, path)?;
        let tls = place.encrypted.then(|| tls::Connector::new(trusted)).transpose()?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::failed(format!("{address}: {error}")))?;
        Ok(Client { place, headers, tls, runtime })
    }

    /// Sends this JSON. Returns the status and the body of the answer, or the error.
    pub fn post(&self, body: String) -> std::result::Result<(u16, String), String> {
        self.runtime.block_on(self.talk(body)).map_err(|error| cause(&*error))
    }

    async fn talk(&self, body: String) -> Exchanged {
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        let reached = timeout(TIME, TcpStream::connect((&*self.place.host, self.place.port)));
        let stream = reached.await.map_err(late)??;
        dial::refuse_itself(&stream)?;
        let Some(tls) = &self.tls else {
            return timeout(TIME, self.exchange(stream, body)).await.map_err(late)?;
        };
        let stream = timeout(TIME, tls.connect(&self.place.host, stream)).await.map_err(late)??;
        timeout(TIME, self.exchange(stream, body)).await.map_err(late)?
    }

    async fn exchange<S>(&self, stream: S, body: String) -> Exchanged
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut client = http1::Builder::new();
        client.title_case_headers(true);
        let (mut sender, connection) = client.handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let mut request = Request::post(&self.place.path).body(Full::<Bytes>::from(body))?;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_str(&self.place.authority)?);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.extend(self.headers.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let answered: Exchanged = async {
            let answer = sender.send_request(request).await?;
            let status = answer.status().as_u16();
            let body = Limited::new(answer.into_body(), LONGEST).collect().await?.to_bytes();
            Ok((status, String::from_utf8_lossy(&body).into_owned()))
        }
        .await;
        // The connection serves one request only.
        connection.abort();
        answered
    }
}

type Exchanged = std::result::Result<(u16, String), Box<dyn Error + Send + Sync>>;

/// Returns the root cause of an error. The outer errors say only that a request failed.
fn cause(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Parses the `NAME=VALUE` pairs of the options and of the variable `OTEL_EXPORTER_OTLP_HEADERS`.
/// Errors do not show the pairs, because they may be secrets.
pub fn headers(given: &[String], variable: Option<&str>) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for pair in variable.unwrap_or_default().split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, value) = header(pair, true).ok_or_else(|| {
            Failure::usage("OTEL_EXPORTER_OTLP_HEADERS does not have the form NAME=VALUE,NAME=VALUE")
                .hint(WORDS)
        })?;
        headers.insert(name, value);
    }
    for (at, pair) in given.iter().enumerate() {
        let (name, value) = header(pair, false).ok_or_else(|| {
            Failure::usage(format!("--otlp-header number {} does not have the form NAME=VALUE", at + 1))
                .hint(WORDS)
        })?;
        headers.insert(name, value);
    }
    Ok(headers)
}

const WORDS: &str = "for example authorization=Bearer ...";

/// Parses a pair. A value in the variable may encode bytes as %XX.
fn header(pair: &str, is_coded: bool) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = pair.split_once('=')?;
    let bytes = if is_coded { decoded(value.trim())? } else { value.as_bytes().to_vec() };
    let mut value = HeaderValue::from_bytes(&bytes).ok()?;
    value.set_sensitive(true);
    Some((name.trim().parse().ok()?, value))
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_url_parts_get_defaults() {
        for (text, host, port, path) in [
            ("http://collector", "collector", 4318, "/v1/metrics"),
            ("http://collector/", "collector", 4318, "/v1/metrics"),
            ("http://10.0.0.7:80/a/b?c", "10.0.0.7", 80, "/a/b?c"),
            ("http://[::1]", "::1", 4318, "/v1/metrics"),
            ("http://[::1]:9", "::1", 9, "/v1/metrics"),
            ("https://collector", "collector", 443, "/v1/metrics"),
            ("https://collector:4318/a", "collector", 4318, "/a"),
        ] {
            let place = TargetUrl::parse(text, 4318, "/v1/metrics").unwrap();
            assert_eq!((&*place.host, place.port, &*place.path), (host, port, path), "{text}");
            assert_eq!(place.encrypted, text.starts_with("https"));
            assert_eq!(place.authority, text.split('/').nth(2).unwrap());
        }
    }

    #[test]
    fn nonsense_is_refused_and_no_password_is_shown() {
        for text in ["collector", "/path", "ftp://a", "http://", "http://a:b", "http://a:99999", "http://a b"]
        {
            let failure = TargetUrl::parse(text, 4318, "/").unwrap_err();
            assert!(failure.what.contains("is not a valid address"), "{text}: {failure}");
        }
        let failure = TargetUrl::parse("http://joe:sesame@a", 4318, "/").unwrap_err();
        assert!(failure.to_string().contains("--otlp-header") && !failure.to_string().contains("sesame"));
    }

    #[test]
    fn headers_come_from_arguments_and_the_variable() {
        let given = ["X-Token=a=b%20".to_owned(), "empty=".to_owned()];
        let headers = headers(&given, Some("x-token=no, other = Bearer%20x%2Cy ,")).unwrap();
        let value = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
        assert_eq!(
            [value("x-token"), value("empty"), value("other")],
            [Some("a=b%20"), Some(""), Some("Bearer x,y")]
        );
        assert_eq!(headers.len(), 3);
        assert!(headers.values().all(HeaderValue::is_sensitive));
    }

    #[test]
    fn a_header_that_is_none_is_not_shown() {
        for (given, variable) in [
            ("sesame", None),
            ("=sesame", None),
            ("a b=sesame", None),
            ("a=sesame\n", None),
            ("a=b", Some("sesame")),
            ("a=b", Some("a=sesame%2")),
            ("a=b", Some("a=sesame%zz")),
        ] {
            let failure = headers(&[given.to_owned()], variable).unwrap_err().to_string();
            assert!(!failure.contains("sesame") && failure.contains("NAME=VALUE"), "{failure}");
        }
    }
}
