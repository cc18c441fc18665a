//! Proof of a peer's identity.

use tautline_proto::PeerCertificates;

/// Proof that a peer has shown. The policy may check it again later.
#[derive(Debug, Default)]
pub struct Proof {
    /// The peer's public key, or its user name.
    key: Option<Box<[u8]>>,
    /// The peer's certificates, and the revision of the configuration that accepted them.
    certificates: Vec<Vec<u8>>,
    judged: u64,
}

impl Proof {
    pub(crate) fn of_key(key: &[u8]) -> Self {
        Proof { key: Some(key.into()), ..Proof::default() }
    }

    /// The peer's public key, or its user name.
    pub fn key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    pub(crate) fn add_certificates(&mut self, shown: PeerCertificates) {
        (self.certificates, self.judged) = (shown.certificates, shown.verified_by);
    }

    /// True if this revision of the configuration accepts the certificates. Calls `judge` once per
    /// revision.
    pub fn passes(&mut self, revision: u64, judge: impl FnOnce(&[Vec<u8>]) -> bool) -> bool {
        if self.judged != revision && judge(&self.certificates) {
            self.judged = revision;
        }
        self.judged == revision
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_judged_once_by_each() {
        let mut proof = Proof::default();
        let shown =
            PeerCertificates { user: String::new(), certificates: vec![b"one".to_vec()], verified_by: 1 };
        proof.add_certificates(shown);
        assert!(proof.passes(1, |_| unreachable!("it has passed")));
        assert!(!proof.passes(2, |_| false));
        assert!(proof.passes(3, |certificates| certificates == [b"one"]));
        assert!(proof.passes(3, |_| unreachable!("it has passed")));
    }
}
