//! The security options of an endpoint, in the form that the protocol needs. A bound endpoint
//! prepares them once, not for each peer.

use crate::options::{Mechanism, Options};
use tautline_proto::{MechanismConfig, ServerKeys};

/// The security of an endpoint.
#[derive(Clone)]
pub(super) struct Security {
    /// The mechanism, with its keys.
    pub(super) mechanism: MechanismConfig,
    /// True if the ZAP handler must judge the peers.
    pub(super) authenticate: bool,
    /// True if peers are admitted when there is no handler.
    pub(super) handler_optional: bool,
}

impl Security {
    /// Derives the security from the options.
    pub(super) fn new(options: &Options) -> Self {
        let in_domain = !options.zap_domain.is_empty();
        let enforced = options.zap_enforce_domain;
        let client = |mechanism| Security { mechanism, authenticate: false, handler_optional: true };
        match (options.mechanism, options.as_server) {
            (Mechanism::Null, _) => Security {
                mechanism: MechanismConfig::Null,
                authenticate: in_domain,
                handler_optional: !enforced,
            },
            (Mechanism::Plain, true) => Security {
                mechanism: MechanismConfig::PlainServer,
                authenticate: true,
                // A password that no handler checks protects nothing.
                handler_optional: false,
            },
            (Mechanism::Curve, true) => Security {
                mechanism: MechanismConfig::CurveServer {
                    keys: ServerKeys::new(options.curve_secret_key.clone()),
                    random,
                },
                // If no domain is enforced, any peer that knows the server's key may connect
                // ("Stonehouse").
                authenticate: in_domain || !enforced,
                handler_optional: !enforced,
            },
            (Mechanism::Curve, false) => client(MechanismConfig::CurveClient {
                public: options.curve_public_key,
                secret: options.curve_secret_key.clone(),
                server: options.curve_server_key,
                random,
            }),
            // zmq_bind and zmq_connect already refuse GSSAPI. PLAIN here is a safe fallback: a NULL
            // peer would not be admitted.
            (Mechanism::Plain | Mechanism::Gssapi, _) => client(MechanismConfig::PlainClient {
                username: options.plain_username.clone(),
                password: options.plain_password.clone(),
            }),
        }
    }
}

fn random(bytes: &mut [u8]) -> bool {
    tautline_io::random::fill(bytes).is_ok()
}
