//! A list of accepted peers.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tautline_core::Secret;

use super::{Authenticate, Credentials, Request, Verdict};
use crate::curve::PublicKey;

/// Accepts the listed peers and refuses all others. Clones share one list, so the list can be
/// changed while it is in use. Connected peers stay connected.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::Context;
/// use tautline::curve::KeyPair;
/// use tautline::zap::AllowList;
///
/// let alice = KeyPair::generate()?;
/// let list = AllowList::new().key(alice.public, "alice").password("joe", "swordfish");
/// let context = Context::new();
/// context.authenticate(list.clone())?;
/// // Later:
/// list.remove_key(&alice.public);
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct AllowList(Arc<RwLock<Entries>>);

#[derive(Default)]
struct Entries {
    /// User id of each key.
    keys: HashMap<PublicKey, String>,
    /// Password of each name.
    passwords: HashMap<String, Secret<Vec<u8>>>,
    anonymous: bool,
}

impl AllowList {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the peer with the secret key to `key`. Its messages carry `user_id`.
    #[must_use]
    pub fn key(self, key: PublicKey, user_id: impl Into<String>) -> Self {
        self.add_key(key, user_id);
        self
    }

    /// Adds a peer that knows the password of `username`. Its messages carry the name as user id.
    #[must_use]
    pub fn password(self, username: impl Into<String>, password: impl Into<Vec<u8>>) -> Self {
        self.add_password(username, password);
        self
    }

    /// Accepts every peer at sockets that have a [`zap_domain`](crate::Builder::zap_domain) but
    /// require neither key nor password.
    #[must_use]
    pub fn anonymous(self) -> Self {
        self.entries_mut().anonymous = true;
        self
    }

    /// Adds `key` to the list.
    pub fn add_key(&self, key: PublicKey, user_id: impl Into<String>) {
        self.entries_mut().keys.insert(key, user_id.into());
    }

    /// Removes `key` from the list. True if it was listed.
    pub fn remove_key(&self, key: &PublicKey) -> bool {
        self.entries_mut().keys.remove(key).is_some()
    }

    /// Adds `username`, or replaces its password.
    pub fn add_password(&self, username: impl Into<String>, password: impl Into<Vec<u8>>) {
        self.entries_mut().passwords.insert(username.into(), Secret::new(password.into()));
    }

    /// Removes `username` from the list. True if it was listed.
    pub fn remove_password(&self, username: &str) -> bool {
        self.entries_mut().passwords.remove(username).is_some()
    }

    // Ignores poisoning: no code panics with the lock held, and the maps would stay consistent.
    fn entries(&self) -> RwLockReadGuard<'_, Entries> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries_mut(&self) -> RwLockWriteGuard<'_, Entries> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authenticate for AllowList {
    fn authenticate(&mut self, request: &Request) -> Verdict {
        let entries = self.entries();
        match request.credentials() {
            Credentials::Curve(key) => match entries.keys.get(key) {
                Some(user_id) => Verdict::admit(user_id),
                None => Verdict::refuse("unknown key"),
            },
            Credentials::Plain { username, password } => match entries.passwords.get(username) {
                Some(expected) if *expected == password.0 => Verdict::admit(username),
                _ => Verdict::refuse("unknown name or wrong password"),
            },
            Credentials::Null if entries.anonymous => Verdict::admit(""),
            _ => Verdict::refuse("not on the list"),
        }
    }
}

impl fmt::Debug for AllowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries();
        f.debug_struct("AllowList")
            .field("keys", &entries.keys.len())
            .field("passwords", &entries.passwords.len())
            .field("anonymous", &entries.anonymous)
            .finish()
    }
}
