//! What a policy would do to a call: for `taut policy`, which asks what the sockets of a program
//! ask.

use super::{Asked, is_secure, judge};
use crate::error::Error;
use crate::options::{ContextDefaults, Mechanism, Options};
use crate::transport;
use tautline_policy::{Call, Policy, Verdict};
use tautline_proto::SocketType;

/// A call of some program.
#[derive(Debug, Clone)]
pub struct Foreseen<'a> {
    /// [`Call::Bind`] or [`Call::Connect`].
    pub call: Call,
    /// The endpoint.
    pub endpoint: &'a str,
    /// Type of the socket. `None`: not known, so that rules which name a type do not fit.
    pub socket_type: Option<SocketType>,
    /// File name of the program.
    pub program: &'a str,
    /// `NULL`, `PLAIN` or `CURVE`, as the program has asked for.
    pub mechanism: &'a str,
}

/// What becomes of it.
#[derive(Debug, Clone)]
pub struct Forecast {
    /// The answer of the rules.
    pub verdict: Verdict,
    /// Why the endpoint cannot be wrapped as the verdict says, so that the call fails with EACCES.
    pub fault: Option<String>,
    /// True if the endpoint is protected without a wrap.
    pub is_secure: bool,
}

/// What becomes of a call under this policy. Asks the resolver about a host that is to be bound.
///
/// # Errors
/// What the call fails with under any policy.
pub fn foresee(policy: &Policy, foreseen: &Foreseen<'_>) -> Result<Forecast, Error> {
    let Foreseen { call, endpoint, socket_type, program, mechanism } = *foreseen;
    let mut options = Options::new(socket_type.unwrap_or(SocketType::Dealer), &ContextDefaults::default());
    options.mechanism = match mechanism {
        "PLAIN" => Mechanism::Plain,
        "CURVE" => Mechanism::Curve,
        _ => Mechanism::Null,
    };
    let parsed = transport::parse(endpoint)?;
    let at = if call == Call::Bind {
        parsed.for_bind()?;
        transport::question(&parsed, &options).map(|question| question.ask()).transpose()?
    } else {
        parsed.for_connect()?;
        None
    };
    let address = transport::reach(&parsed, at, call == Call::Bind, &options);
    let asked = Asked { call, endpoint, parsed: &parsed, address, path: transport::socket_path(&parsed) };
    let known_type = socket_type.map_or("", |socket_type| socket_type.name());
    let (verdict, allowed) = judge(policy, program, &asked, &options, known_type);
    Ok(Forecast { verdict, fault: allowed.err(), is_secure: is_secure(&options, endpoint) })
}
