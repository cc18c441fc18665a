//! A library without TLS: refuses endpoints that a policy wraps in TLS.

use tautline_core::Error;
use tautline_core::host::{CallRequest, Permission, Proof};
use tautline_policy::{TlsWrap, Wrap};
use tautline_queue::sync::Arc;

/// Without TLS there are no certificates.
#[derive(Debug)]
pub(super) enum Certificates {}

/// Returns no faults: without TLS, the wrap itself fails.
pub fn certificate_faults(_: &TlsWrap) -> Vec<String> {
    Vec::new()
}

impl Certificates {
    pub(super) fn open(_: &Wrap, _: &CallRequest<'_>) -> Result<Arc<Self>, String> {
        Err("this library was built without TLS".into())
    }

    pub(super) fn wrap(&self, _: &CallRequest<'_>, _: &mut Permission) -> Result<(), Error> {
        match *self {}
    }

    pub(super) fn is_current(&self) -> bool {
        match *self {}
    }

    pub(super) fn admit(&self, _: &mut Proof) -> bool {
        match *self {}
    }
}
