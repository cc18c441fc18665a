//! What an endpoint's options say about security, as the protocol needs it. Made once for a bound
//! endpoint, not for each peer.

use crate::options::{Mechanism, Options};
use tautline_proto::{MechanismConfig, ServerKeys};

/// The security of an endpoint.
#[derive(Clone)]
pub(super) struct Security {
    /// The mechanism, with its keys.
    pub(super) mechanism: MechanismConfig,
    /// Peers must be judged by the ZAP handler.
    pub(super) authenticate: bool,
    /// Peers are let in when there is no handler.
    pub(super) handler_optional: bool,
}

impl Security {
    /// What follows from the options.
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
                // A password that is not looked at protects nothing.
                handler_optional: false,
            },
            (Mechanism::Curve, true) => Security {
                mechanism: MechanismConfig::CurveServer {
                    keys: ServerKeys::new(options.curve_secret_key.clone()),
                    random,
                },
                // Without a domain that is asked for, any peer that knows the server's key may come
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
            // GSSAPI gets no further than zmq_bind and zmq_connect. Whatever came here, a NULL peer
            // would not let in.
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
