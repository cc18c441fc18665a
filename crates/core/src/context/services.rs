//! The services of the host in a context.

use std::path::Path;

use super::Context;
use crate::driver::InprocSockets;
use crate::error::Error;
use crate::host::Resolve;
use tautline_queue::sync::Arc;

impl Context {
    /// Puts the sockets of the context under a policy: a ready-made one (`audit`, `loopback`,
    /// `strict`), or the path of a file. The policy applies to later binds and connects.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such policy or it has a fault, which is reported on
    /// standard error, and if the context already has a policy, most likely from `TAUT_POLICY`;
    /// [`Error::NotSupported`] for a context without a host.
    pub fn set_policy(&self, named: &str) -> Result<(), Error> {
        let open = self.0.host.open_policy.ok_or(Error::NotSupported)?;
        self.0.admission.set(open(named)?).map_err(|_| Error::Invalid)
    }

    /// Reads the endpoints of names (`name://`) from a names file, for later binds and connects.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the file cannot be read or has a fault, which is reported on standard
    /// error, and if the context already has a names file, most likely from `TAUT_NAMES`;
    /// [`Error::NotSupported`] if the library was built without names.
    pub fn set_names(&self, path: &Path) -> Result<(), Error> {
        let open = self.0.host.open_names.ok_or(Error::NotSupported)?;
        self.0.resolver.set(open(path)?).map_err(|_| Error::Invalid)
    }
}

/// The resolver of names, if there is one. Always `None` without the feature `names`, so the
/// compiler leaves out the code for names.
pub(crate) fn resolver(context: &Context) -> Option<&Arc<dyn Resolve>> {
    if cfg!(feature = "names") { context.0.resolver.get() } else { None }
}

/// The bound inproc names of a context.
pub(crate) fn bound_inproc_names(context: &Context) -> Arc<dyn InprocSockets> {
    context.0.names.clone()
}
