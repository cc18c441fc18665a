//! The services of a host, which a context asks: [`Resolve`] for the endpoints of names.
//!
//! The crate `tautline-host` implements the traits. The engine asks them at a bind, a connect, a
//! handshake or a subscription, and never for a message. The first context of a process may get
//! services that the environment names; [`Host`] has them, and the functions that open others.

mod resolve;

pub use resolve::{NameEntry, NameFollower, NameRegistration, Resolve, may_be_named};

use crate::error::Error;
use std::path::Path;
use tautline_queue::sync::Arc;

/// The services of a context. The default has none: no names.
#[derive(Clone, Default)]
pub struct Host {
    /// The resolver of names that is in force from the start.
    pub resolve: Option<Arc<dyn Resolve>>,
    /// Opens another resolver. `None`: the library was built without names.
    pub open_names: Option<OpenNames>,
}

/// Opens a resolver by the path of its file. Reports a fault of the file on standard error.
pub type OpenNames = fn(&Path) -> Result<Arc<dyn Resolve>, Error>;
