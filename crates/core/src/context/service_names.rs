//! A context whose sockets may be bound and connected by names.

use std::path::Path;

use super::Context;
#[cfg(feature = "names")]
use crate::directory::Directory;
#[cfg(feature = "names")]
use crate::driver::InprocSockets;
use crate::error::Error;
#[cfg(feature = "names")]
use crate::stderr_report::report_and_wait;
#[cfg(feature = "names")]
use tautline_queue::sync::Arc;

impl Context {
    /// Reads the endpoints of names (`name://`) from a names file, for later binds and connects.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the file cannot be read or has a fault, which is reported on standard
    /// error, and if the context already has a names file, most likely from `TAUT_NAMES`;
    /// [`Error::NotSupported`] if the library was built without names.
    #[cfg(feature = "names")]
    pub fn set_names(&self, path: &Path) -> Result<(), Error> {
        let directory = Directory::open(path.to_owned()).map_err(|fault| {
            report_and_wait(&fault);
            Error::Invalid
        })?;
        self.0.directory.set(directory).map_err(|_| Error::Invalid)
    }

    /// Fails: the library was built without names.
    ///
    /// # Errors
    /// [`Error::NotSupported`].
    #[cfg(not(feature = "names"))]
    pub fn set_names(&self, _path: &Path) -> Result<(), Error> {
        Err(Error::NotSupported)
    }
}

/// The directory for names, if there is one.
#[cfg(feature = "names")]
pub(crate) fn directory(context: &Context) -> Option<&Arc<Directory>> {
    context.0.directory.get()
}

/// Returns the fault of the names file that `TAUT_NAMES` names, if it has one. Every bind and
/// connect to a name fails then, and the fault is reported on standard error.
#[cfg(feature = "names")]
pub(crate) fn names_fault() -> Option<&'static str> {
    Directory::environment_fault()
}

/// The bound inproc names of a context.
#[cfg(feature = "names")]
pub(crate) fn bound_inproc_names(context: &Context) -> Arc<dyn InprocSockets> {
    context.0.names.clone()
}
