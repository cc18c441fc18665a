//! A library without TLS: refuses endpoints that a policy wraps in TLS.

use super::{PolicyRequest, Proof};
use crate::error::Error;
use crate::options::Options;
use crate::transport::CarrierFactory;
use tautline_policy::{TlsWrap, Wrap};
use tautline_queue::sync::Arc;

/// Without TLS there are no certificates.
#[derive(Debug)]
pub(crate) enum Certificates {}

/// Returns no faults: without TLS, the wrap itself fails.
pub fn certificate_faults(_: &TlsWrap) -> Vec<String> {
    Vec::new()
}

impl Certificates {
    pub(super) fn open(_: &Wrap, _: &PolicyRequest<'_>) -> Result<Arc<Self>, String> {
        Err("this library was built without TLS".into())
    }

    pub(super) fn carrying(&self, _: &PolicyRequest<'_>, _: &Options) -> Result<CarrierFactory, Error> {
        match *self {}
    }

    pub(super) fn is_current(&self) -> bool {
        match *self {}
    }

    pub(super) fn admit(&self, _: &mut Proof) -> bool {
        match *self {}
    }
}
