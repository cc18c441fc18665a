//! Prediction of a policy's effect on a call, for `taut policy`. The questions are the same as
//! those of a program's sockets.

use super::judge;
use tautline_core::Error;
use tautline_core::SocketType;
use tautline_core::host::PlannedCall;
use tautline_policy::{Call, Policy, PolicyDecision};

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
    let planned_type = socket_type.unwrap_or(SocketType::Dealer);
    let mut planned = PlannedCall::new(call == Call::Bind, endpoint, planned_type)?;
    planned.set_mechanism(mechanism);
    let asked = planned.request();
    let known_type = socket_type.map_or("", |socket_type| socket_type.name());
    let (verdict, allowed) = judge(policy, program, &asked, known_type);
    Ok(Forecast { verdict, fault: allowed.err(), is_secure: asked.is_secure() })
}
