//! Checks of endpoints: at compile time by [`endpoint!`](crate::endpoint!), and at run time by
//! [`bind`](crate::Socket::bind) and [`connect`](crate::Socket::connect).
//!
//! ```
//! use tautline::endpoint::{self, EndpointError};
//!
//! assert_eq!(endpoint::check("tcp://127.0.0.1:5555"), Ok(()));
//! assert_eq!(endpoint::check("127.0.0.1:5555"), Err(EndpointError::NoTransport));
//! assert_eq!(endpoint::check("tcp://localhost"), Err(EndpointError::NoPort));
//! assert_eq!(endpoint::check("tcp://localhost:99999"), Err(EndpointError::Port));
//! ```

#[doc(hidden)]
pub use tautline_core::assert_endpoint as assert;
#[doc(inline)]
pub use tautline_core::{EndpointError, check_endpoint as check};

/// Makes a `&'static str` from an endpoint that is [checked](crate::endpoint::check) at compile
/// time.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::{Context, Pub, endpoint};
///
/// let mut publisher = Pub::new(&Context::new())?;
/// publisher.bind(endpoint!("tcp://127.0.0.1:*"))?;
/// # Ok(()) }
/// ```
///
/// ```compile_fail
/// let endpoint = tautline::endpoint!("tcp:/127.0.0.1:5555");
/// ```
#[macro_export]
macro_rules! endpoint {
    ($text:expr) => {{
        const TEXT: &str = $text;
        const _: () = $crate::endpoint::assert(TEXT);
        TEXT
    }};
}

/// Returns the reason why the engine refused an endpoint as invalid; `None` if the endpoint itself
/// is valid.
pub(crate) fn reason(text: &str, connecting: bool) -> Option<EndpointError> {
    match check(text) {
        Err(reason) => Some(reason),
        Ok(()) if connecting && (text.contains('*') || text.ends_with(":0")) => {
            Some(EndpointError::NotConnectable)
        }
        Ok(()) if connecting => Some(EndpointError::Address),
        Ok(()) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bind_only_endpoint_cannot_be_connected() {
        for (text, wrong) in [
            ("tcp://*:5555", EndpointError::NotConnectable),
            ("tcp://127.0.0.1:*", EndpointError::NotConnectable),
            ("tcp://127.0.0.1:0", EndpointError::NotConnectable),
            ("tcp://host name:1", EndpointError::Address),
        ] {
            assert_eq!(reason(text, true), Some(wrong), "{text}");
        }
        assert_eq!(reason("tcp://127.0.0.1:0", false), None);
    }

    #[test]
    fn macro_returns_its_text() {
        assert_eq!(crate::endpoint!("tcp://127.0.0.1:*"), "tcp://127.0.0.1:*");
    }
}
