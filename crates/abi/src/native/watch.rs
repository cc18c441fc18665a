//! Descriptors that an event loop watches for a socket that several threads may use.

use std::sync::Arc;

use tautline_core::Error;
use tautline_io::fd::OwnedFd;
use tautline_io::wake::WakeFd;

use super::entered::{Access, EnteredSocket};

/// A wait of an event loop for a socket that several threads may use. The methods are for
/// [`super::SocketHandle::at_once`]; elsewhere they fail with [`Error::NotSupported`].
#[derive(Debug)]
pub struct SharedWatch(Arc<WakeFd>);

impl SharedWatch {
    /// Creates a wait that is not armed.
    ///
    /// # Errors
    /// [`Error::TooManyFiles`] without descriptors.
    pub fn new() -> Result<SharedWatch, Error> {
        Ok(SharedWatch(Arc::new(WakeFd::new()?)))
    }

    /// Returns copies of the descriptors to watch for readability.
    ///
    /// # Errors
    /// [`Error::TooManyFiles`] without descriptors.
    pub fn descriptors(&self, entered: &mut EnteredSocket<'_>) -> Result<Vec<OwnedFd>, Error> {
        let Access::Locked(guard) = &entered.0 else { return Err(Error::NotSupported) };
        let socket = guard.wake_descriptor()?;
        Ok(vec![self.0.as_fd().try_clone_to_owned()?, socket.as_fd().try_clone_to_owned()?])
    }

    /// Returns true if an operation of `events` (POLLIN, POLLOUT) that has failed with
    /// [`Error::Again`] is possible now. If not, a descriptor becomes readable when it may be
    /// possible.
    ///
    /// # Errors
    /// [`Error::NotSocket`] if the socket is closed, [`Error::TooManyFiles`] without descriptors.
    pub fn arm(&self, entered: &mut EnteredSocket<'_>, events: i16) -> Result<bool, Error> {
        let Access::Locked(guard) = &mut entered.0 else { return Err(Error::NotSupported) };
        guard.arm(&self.0, events)
    }

    /// Ends the effect of [`SharedWatch::arm`].
    ///
    /// # Errors
    /// See the type.
    pub fn disarm(&self, entered: &mut EnteredSocket<'_>) -> Result<(), Error> {
        let Access::Locked(guard) = &mut entered.0 else { return Err(Error::NotSupported) };
        guard.disarm(&self.0);
        Ok(())
    }
}
