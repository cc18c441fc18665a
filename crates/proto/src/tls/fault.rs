//! Converts errors of rustls into faults.

use rustls::{CertificateError, Error};

use crate::error::TlsFault;

/// `is_new` is true until a handshake has completed.
pub(super) fn of(error: &Error, is_new: bool) -> TlsFault {
    match error {
        Error::InvalidMessage(_) if is_new => TlsFault::NotTls,
        Error::PeerIncompatible(_) => TlsFault::Incompatible,
        Error::NoCertificatesPresented => TlsFault::NoCertificate,
        Error::InvalidCertificate(why) => of_certificate(why),
        Error::AlertReceived(alert) => TlsFault::Refused(u8::from(*alert)),
        _ => TlsFault::Broken,
    }
}

fn of_certificate(why: &CertificateError) -> TlsFault {
    use CertificateError::*;
    match why {
        Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. } => TlsFault::Expired,
        UnknownIssuer => TlsFault::Untrusted,
        NotValidForName | NotValidForNameContext { .. } => TlsFault::OtherName,
        _ => TlsFault::BadCertificate,
    }
}
