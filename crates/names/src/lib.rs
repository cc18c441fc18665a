//! Resolves names such as `name://orders`, which replace endpoints.
//!
//! ```text
//!  names file ── [names]  ─▶ FromFile ──┐
//!            ├── [folder] ─▶ InFolder ──┼─▶ Resolver::resolve("orders") ─▶ entries
//!            └── [dns]    ─▶ ByDns ─────┘
//! ```
//!
//! A names file selects the resolvers. It is read as a whole or not at all: an unknown or invalid
//! value is a fault with its line. `docs/use/names.md` describes the file.
//!
//! ```
//! use tautline_names::{NamesConfig, RESOLVERS};
//!
//! let names = NamesConfig::parse("[names]\norders = \"tcp://10.0.0.1:5555\"", &|_| true).unwrap();
//! let answer = RESOLVERS[0].resolve(&names, "orders").unwrap();
//! assert_eq!(answer.entries[0].endpoints, ["tcp://10.0.0.1:5555"]);
//! ```

#![forbid(unsafe_code)]

mod config;
mod dns;
mod folder;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;

pub use config::{Dns, Folder, NamesConfig, Nats};
pub use folder::{LocalEntry, Registration, host, known_names, locals, mirror, mirrored, remove_mirrored};
pub use tautline_policy::{FileError, file};

use std::time::Duration;

/// Most bytes of a name.
pub const MOST_BYTES: usize = 200;

/// Most refused endpoints that an answer lists.
pub const MOST_REFUSED: usize = 100;

/// One socket, or one server, behind a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameEntry {
    /// Id under which it is registered, if it is a socket of this host.
    pub id: Option<String>,
    /// Endpoints that lead to it, the nearest first.
    pub endpoints: Vec<String>,
}

/// Answer of a resolver for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolution {
    /// Sockets and servers behind the name; may be empty.
    pub entries: Vec<NameEntry>,
    /// Endpoints that were left out because a name may not stand for them. At most
    /// [`MOST_REFUSED`].
    pub refused: Vec<String>,
    /// Time after which to ask again.
    pub fresh_for: Duration,
}

impl Resolution {
    /// Creates an answer without refused endpoints.
    pub fn new(entries: Vec<NameEntry>, fresh_for: Duration) -> Self {
        Resolution { entries, refused: Vec::new(), fresh_for }
    }

    /// Moves the endpoints that a name may not stand for to `refused`.
    fn admit(mut self, is_of_this_host: bool) -> Self {
        for entry in &mut self.entries {
            let may_be_ipc = is_of_this_host || entry.id.is_some();
            self.refused.extend(
                entry.endpoints.extract_if(.., |endpoint| !is_allowed_endpoint(endpoint, may_be_ipc)),
            );
        }
        self.entries.retain(|entry| !entry.endpoints.is_empty());
        self.refused.truncate(MOST_REFUSED);
        self
    }
}

/// Source of names.
pub trait Resolver: Send + Sync {
    /// Returns the title of this resolver for messages to users.
    fn title(&self) -> &'static str;

    /// Returns the current entries of a name, unchecked. May take seconds.
    ///
    /// # Errors
    /// An error message if the resolver cannot be asked. Its earlier answers stay valid.
    fn look_up(&self, names: &NamesConfig, name: &str) -> Result<Resolution, String>;

    /// True if all its entries come from this host, so that `ipc` may be among them.
    fn is_of_this_host(&self) -> bool {
        false
    }

    /// Returns the current entries of a name: the answer of [`Resolver::look_up`] without the
    /// endpoints that a name may not stand for. May take seconds.
    ///
    /// Only endpoints of streams remain. An `inproc` endpoint would lead into the program itself,
    /// past CURVE and ZAP. An `ipc` endpoint is accepted only from this host. A `tcp` endpoint must
    /// not have a source address, because a policy rule could mistake it for the destination.
    ///
    /// # Errors
    /// Returns the reason why [`Resolver::look_up`] has failed.
    fn resolve(&self, names: &NamesConfig, name: &str) -> Result<Resolution, String> {
        Ok(self.look_up(names, name)?.admit(self.is_of_this_host()))
    }
}

/// True if an entry that another host has written may have this endpoint.
pub(crate) fn is_allowed_remotely(endpoint: &str) -> bool {
    is_allowed_endpoint(endpoint, false)
}

/// True if a name may stand for an endpoint.
pub(crate) fn is_allowed_endpoint(endpoint: &str, may_be_ipc: bool) -> bool {
    let Some((scheme, address)) = endpoint.split_once("://") else { return false };
    let is_text = !address.is_empty() && !endpoint.chars().any(char::is_control);
    is_text
        && match scheme {
            "tcp" | "tls+tcp" | "ws" | "wss" | "vsock" => !address.contains(';'),
            "ipc" => may_be_ipc,
            _ => false,
        }
}

/// All resolvers. A resolver that the file does not mention answers without entries.
pub static RESOLVERS: [&dyn Resolver; 3] = [&config::FileResolver, &folder::FolderResolver, &dns::BY_DNS];

/// True if this is a valid name: letters, digits, `-`, `_`, and dots between them.
pub fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.len() <= MOST_BYTES && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_labels() {
        for name in ["orders", "eu.orders", "a-b_c.1"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "a..b", ".a", "a.", "a/b", "../x", "a b", "ä", "a@b", &"x".repeat(201)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
