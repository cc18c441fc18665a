//! Prediction of a policy's effect on a call, for `taut policy`. The questions are the same as
//! those of a program's sockets.

use super::{PolicyRequest, is_secure, judge};
use crate::error::Error;
use crate::options::{ContextDefaults, Mechanism, Options};
use crate::transport;
use tautline_policy::{Call, Policy, PolicyDecision};
use tautline_proto::SocketType;

/// The call of a program whose result is predicted.
#[derive(Debug, Clone)]
pub struct Foreseen<'a> {
    /// [`Call::Bind`] or [`Call::Connect`].
    pub call: Call,
    /// The endpoint.
    pub endpoint: &'a str,
    /// Type of the socket. `None` if unknown: rules that name a type do not match then.
    pub socket_type: Option<SocketType>,
    /// File name of the program.
    pub program: &'a str,
    /// The mechanism that the program has asked for: `NULL`, `PLAIN` or `CURVE`.
    pub mechanism: &'a str,
}

/// Predicted result.
#[derive(Debug, Clone)]
pub struct Forecast {
    /// The verdict of the rules.
    pub verdict: PolicyDecision,
    /// Reason why the endpoint cannot be wrapped as the verdict says. The call fails with EACCES
    /// then.
    pub fault: Option<String>,
    /// True if the endpoint is protected without a wrap.
    pub is_secure: bool,
}

/// Predicts the result of a call under this policy. Asks the resolver about a host to bind.
///
/// # Errors
/// Returns the errors with which the call fails under any policy.
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
        parsed.check_bind()?;
        transport::question(&parsed, &options).map(|question| question.ask()).transpose()?
    } else {
        parsed.check_connect()?;
        None
    };
    let address = transport::known_ip(&parsed, at, call == Call::Bind, &options);
    let asked =
        PolicyRequest { call, endpoint, parsed: &parsed, address, path: transport::socket_path(&parsed) };
    let known_type = socket_type.map_or("", |socket_type| socket_type.name());
    let (verdict, allowed) = judge(policy, program, &asked, &options, known_type);
    Ok(Forecast { verdict, fault: allowed.err(), is_secure: is_secure(&options, endpoint) })
}
