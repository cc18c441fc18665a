//! Reasons why an endpoint was refused as invalid, in words, for the bindings.

use super::Socket;
use crate::context::resolver;
use crate::endpoint::Endpoint;
#[cfg(feature = "tls")]
use crate::transport;

/// Returns the reason why a bind or a connect failed with [`Error::Invalid`], if the reason is not
/// the form of the endpoint: the names file of the environment, or the certificates of the socket.
///
/// [`Error::Invalid`]: crate::Error::Invalid
pub fn endpoint_fault(socket: &Socket, endpoint: &str, connecting: bool) -> Option<String> {
    let parsed = Endpoint::parse(endpoint).ok()?;
    if let Endpoint::Name(name) = &parsed {
        return resolver(&socket.context)?.fault(name);
    }
    #[cfg(feature = "tls")]
    return transport::tls::fault(&parsed, connecting, &socket.pipes.options).map(|fault| fault.to_string());
    #[cfg(not(feature = "tls"))]
    {
        let _ = (socket, parsed, connecting);
        None
    }
}
