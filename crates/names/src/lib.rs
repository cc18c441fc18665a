//! What names stand for: `name://orders` in place of an endpoint.
//!
//! ```text
//!  names file ── [names]  ─▶ FromFile ──┐
//!            ├── [folder] ─▶ InFolder ──┼─▶ Resolver::resolve("orders") ─▶ entries
//!            └── [dns]    ─▶ ByDns ─────┘
//! ```
//!
//! A file says which resolvers are asked. It is read as a whole or not at all: what has no meaning
//! is a fault with its line. `docs/names.md` describes it.
//!
//! ```
//! use tautline_names::{Names, RESOLVERS};
//!
//! let names = Names::parse("[names]\norders = \"tcp://10.0.0.1:5555\"", &|_| true).unwrap();
//! let answer = RESOLVERS[0].resolve(&names, "orders").unwrap();
//! assert_eq!(answer.entries[0].endpoints, ["tcp://10.0.0.1:5555"]);
//! ```

#![forbid(unsafe_code)]

mod config;
mod dns;
mod folder;

pub use config::{Dns, Folder, Names, Nats};
pub use folder::{LocalEntry, Registration, known_names, locals, mirror, mirrored, unmirror};
pub use tautline_policy::{Fault, file};

use std::time::Duration;

/// What stands before a name.
pub const SCHEME: &str = "name";

/// Most bytes of a name.
pub const MOST_BYTES: usize = 200;

/// One socket, or one server, behind a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// What it is registered as, if it is a socket of this host.
    pub id: Option<String>,
    /// The ways to it, the nearest one first.
    pub endpoints: Vec<String>,
}

/// What a resolver knows of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What it stands for; nothing, perhaps.
    pub entries: Vec<Entry>,
    /// When to ask again.
    pub fresh_for: Duration,
}

/// Knows names.
pub trait Resolver: Send + Sync {
    /// What messages to people call it.
    fn title(&self) -> &'static str;

    /// What a name stands for now. May take seconds.
    ///
    /// # Errors
    /// It cannot be asked: in words, why. What it has said before still counts.
    fn resolve(&self, names: &Names, name: &str) -> Result<Answer, String>;
}

/// All resolvers. Each answers with no entries where the file does not mention it.
pub static RESOLVERS: [&dyn Resolver; 3] = [&config::FromFile, &folder::InFolder, &dns::ByDns];

/// Whether this can be a name: letters, digits, `-`, `_`, and dots between them.
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
