//! The services of a host for the engine: its policy, resolvers of names, and reports for tools.
//!
//! ```text
//!  Context ─ Host ─┬─ Admission      Guard: a policy file, its keys and certificates
//!                  ├─ Resolve        Directory: a names file, a folder of the host, DNS
//!                  └─ ContextReport  ContextWatch: a file of counters, and copies of messages
//! ```
//!
//! The engine (crate `tautline-core`) knows only the traits of `tautline_core::host`. [`context`]
//! creates a context that asks the services of this crate.

#![forbid(unsafe_code)]

#[cfg(feature = "names")]
mod directory;
mod policy;
mod reload;
#[cfg_attr(not(unix), path = "report/absent.rs")]
mod report;
mod spare;

pub use policy::{Forecast, Foreseen, certificate_faults, foresee, policy_fault};
pub use report::{note_forked_call, show_route};
pub use tautline_observe::Route as RouteReport;

use tautline_core::Context;
use tautline_core::host::Host;
#[cfg(feature = "names")]
use tautline_core::host::OpenNames;

/// Creates a context with the services that the environment names. The first context of the process
/// reads TAUT_POLICY, TAUT_NAMES, TAUT_OBSERVE and TAUT_NAME from the environment, on the calling
/// thread.
pub fn context() -> Context {
    Context::with(host())
}

/// Returns the services of this crate, with those that the environment names in force.
pub fn host() -> Host {
    #[cfg(feature = "names")]
    let (resolve, open_names) = (directory::of_environment(), Some(directory::open as OpenNames));
    #[cfg(not(feature = "names"))]
    let (resolve, open_names) = (None, None);
    Host {
        admission: policy::of_environment(),
        open_policy: Some(policy::open),
        resolve,
        open_names,
        open_report: Some(report::open),
        is_observed: report::of_environment(),
    }
}
