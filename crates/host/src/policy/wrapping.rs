//! CURVE and TLS that a policy adds to endpoints, without the program's knowledge.
//!
//! If a wrap cannot be applied, the endpoint is refused: it never sends unencrypted data.

use super::certificates::Certificates;
use super::{Allowed, Trust};
use tautline_core::host::{CallRequest, Permission};
use tautline_policy::{Key, Wrap, keys};
use tautline_proto::{Secret, public_key};

/// Numbers of the options that a wrap sets.
const CURVE_SERVER: i32 = 47;
const CURVE_PUBLICKEY: i32 = 48;
const CURVE_SECRETKEY: i32 = 49;
const CURVE_SERVERKEY: i32 = 50;

/// Wraps an endpoint, unless the program has asked for equivalent security itself. The result is in
/// `allowed`.
///
/// # Errors
/// The reason why the wrap cannot be applied. The endpoint must not be used then.
pub(super) fn wrap_endpoint(
    wrap: &Wrap,
    request: &CallRequest<'_>,
    allowed: &mut Allowed,
) -> Result<(), String> {
    // The messages stay in the process.
    if request.endpoint().starts_with("inproc://") {
        return Ok(());
    }
    if request.is_secure() {
        return Ok(());
    }
    if request.is_datagram() {
        return Err("udp has no handshake, so it cannot be encrypted".into());
    }
    if request.is_raw() {
        return Err("the socket does not use ZMTP".into());
    }
    if wrap.tls.is_some() {
        let certificates = Certificates::open(wrap, request)?;
        certificates.wrap(request, &mut allowed.permission).map_err(|error| error.to_string())?;
        allowed.certificates = Some(certificates);
        return Ok(());
    }
    if request.has_credentials() {
        return Err(format!(
            "the socket already uses {0}, which CURVE would replace; use a TLS wrap, which keeps {0}",
            request.mechanism()
        ));
    }
    wrap_in_curve(wrap, request, &mut allowed.permission)?;
    if let (true, Some(clients)) = (request.is_bind(), &wrap.clients) {
        allowed.trust = Some(Trust::open(clients)?);
    }
    Ok(())
}

/// Adds CURVE to an endpoint.
fn wrap_in_curve(wrap: &Wrap, request: &CallRequest<'_>, permission: &mut Permission) -> Result<(), String> {
    let mut set =
        |code, value: &[u8]| permission.set_option(code, value).map_err(|_| "a key is invalid".to_owned());
    let pair = wrap.key.as_deref().map(keys::read_pair).transpose().map_err(|error| error.to_string())?;
    if request.is_bind() {
        let pair = pair.ok_or_else(|| format!("`{}`: a server needs `key`, which is missing", wrap.name))?;
        set(CURVE_SERVER, &1_i32.to_ne_bytes())?;
        set(CURVE_PUBLICKEY, pair.public.as_bytes())?;
        return set(CURVE_SECRETKEY, pair.secret.as_bytes());
    }
    let server = match wrap.server(request.endpoint()) {
        Some(Key::Text(key)) => key.clone(),
        Some(Key::File(path)) => {
            let found = keys::read_public_keys(path).map_err(|error| error.to_string())?;
            match &found[..] {
                [key] => key.clone(),
                _ => {
                    return Err(format!(
                        "{} has {} keys, but must have exactly one",
                        path.display(),
                        found.len()
                    ));
                }
            }
        }
        None => return Err(format!("`servers` of `{}` has no key for this endpoint", wrap.name)),
    };
    set(CURVE_SERVERKEY, server.as_bytes())?;
    match pair {
        Some(pair) => {
            set(CURVE_PUBLICKEY, pair.public.as_bytes())?;
            set(CURVE_SECRETKEY, pair.secret.as_bytes())
        }
        None => {
            let mut secret = Secret::new([0; 32]);
            tautline_io::random::fill(&mut secret[..]).map_err(|error| error.to_string())?;
            set(CURVE_PUBLICKEY, &public_key(&secret))?;
            set(CURVE_SECRETKEY, &secret[..])
        }
    }
}
