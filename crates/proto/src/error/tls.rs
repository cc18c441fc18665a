//! Failures of TLS and their numbers.

use std::fmt;

/// Fault in the TLS of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TlsFault {
    /// The peer's bytes are not TLS.
    NotTls,
    /// The two ends have no common version or no common cipher.
    Incompatible,
    /// The peer's certificate does not lead to a trusted one.
    Untrusted,
    /// The peer's certificate, or one between it and the trusted one, has expired or is not valid
    /// yet.
    Expired,
    /// The peer's certificate is for another name.
    OtherName,
    /// The peer's certificate is malformed, revoked, or made for another purpose.
    BadCertificate,
    /// The peer shows no certificate.
    NoCertificate,
    /// The peer has ended the connection with this alert (RFC 8446, 6). The alerts 42 to 49 and 116
    /// concern our certificate.
    Refused(u8),
    /// The peer speaks TLS, but this end does not.
    UnexpectedTls,
    /// The peer has broken another rule.
    Broken,
}

// The ZMQ_TAUTLINE_PROTOCOL_ERROR_TLS_* numbers of the public header. The number of an alert is
// added to the last one.
const UNSPECIFIED: u32 = 0x5441_3000;
const NOT_TLS: u32 = 0x5441_3001;
const INCOMPATIBLE: u32 = 0x5441_3002;
const UNTRUSTED: u32 = 0x5441_3003;
const EXPIRED: u32 = 0x5441_3004;
const OTHER_NAME: u32 = 0x5441_3005;
const BAD_CERTIFICATE: u32 = 0x5441_3006;
const NO_CERTIFICATE: u32 = 0x5441_3007;
const UNASKED: u32 = 0x5441_3008;
const REFUSED: u32 = 0x5441_3100;

impl TlsFault {
    /// Returns the number that a monitor event `HANDSHAKE_FAILED_PROTOCOL` carries.
    pub fn code(self) -> u32 {
        match self {
            Self::NotTls => NOT_TLS,
            Self::Incompatible => INCOMPATIBLE,
            Self::Untrusted => UNTRUSTED,
            Self::Expired => EXPIRED,
            Self::OtherName => OTHER_NAME,
            Self::BadCertificate => BAD_CERTIFICATE,
            Self::NoCertificate => NO_CERTIFICATE,
            Self::Refused(alert) => REFUSED + u32::from(alert),
            Self::UnexpectedTls => UNASKED,
            Self::Broken => UNSPECIFIED,
        }
    }

    /// Returns the fault that such a number stands for.
    pub fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            NOT_TLS => Self::NotTls,
            INCOMPATIBLE => Self::Incompatible,
            UNTRUSTED => Self::Untrusted,
            EXPIRED => Self::Expired,
            OTHER_NAME => Self::OtherName,
            BAD_CERTIFICATE => Self::BadCertificate,
            NO_CERTIFICATE => Self::NoCertificate,
            UNASKED => Self::UnexpectedTls,
            UNSPECIFIED => Self::Broken,
            _ => Self::Refused(u8::try_from(code.checked_sub(REFUSED)?).ok()?),
        })
    }
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotTls => "the peer does not speak TLS",
            Self::Incompatible => "the two ends have no common TLS version or cipher",
            Self::Untrusted => "the peer's certificate is not trusted",
            Self::Expired => "the peer's certificate has expired, or is not valid yet",
            Self::OtherName => "the peer's certificate is for another name",
            Self::BadCertificate => "the peer's certificate is malformed, revoked, or for another purpose",
            Self::NoCertificate => "the peer sent no certificate",
            Self::Refused(45) => "the peer refuses our certificate: it has expired",
            Self::Refused(48) => "the peer does not trust our certificate",
            Self::Refused(116) => "the peer requires a certificate from us",
            // The authority has the name of a trusted authority but a different key.
            Self::Refused(51) => "the peer refuses our certificate: a signature is invalid",
            Self::Refused(42..=44 | 46) => "the peer refuses our certificate",
            Self::Refused(70) => "the peer does not support our TLS version",
            Self::Refused(alert) => {
                return write!(f, "the peer refuses the TLS handshake with alert {alert}");
            }
            Self::UnexpectedTls => "the peer uses TLS, but this end does not",
            Self::Broken => "the peer violated TLS",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_says_what_it_was_made_of() {
        let faults = [
            TlsFault::NotTls,
            TlsFault::Incompatible,
            TlsFault::Untrusted,
            TlsFault::Expired,
            TlsFault::OtherName,
            TlsFault::BadCertificate,
            TlsFault::NoCertificate,
            TlsFault::Refused(0),
            TlsFault::Refused(255),
            TlsFault::UnexpectedTls,
            TlsFault::Broken,
        ];
        for fault in faults {
            assert_eq!(TlsFault::from_code(fault.code()), Some(fault));
        }
        for code in [0, 0x3000_0000, UNSPECIFIED - 1, UNASKED + 1, REFUSED + 256, u32::MAX] {
            assert_eq!(TlsFault::from_code(code), None, "{code:#x}");
        }
        assert_eq!(TlsFault::Refused(48).code(), 0x5441_3130);
        assert_eq!(TlsFault::Refused(80).to_string(), "the peer refuses the TLS handshake with alert 80");
    }
}
