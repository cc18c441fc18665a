//! What a peer has shown to prove what it is.

use tautline_proto::Shown;

/// What a peer has shown, by which it may be judged again.
#[derive(Debug, Default)]
pub(crate) struct Proof {
    /// Its public key, or the name that it goes by.
    key: Option<Box<[u8]>>,
    /// Its certificates, and the number of what has judged them last.
    certificates: Vec<Vec<u8>>,
    judged: u64,
}

impl Proof {
    pub(crate) fn of_key(key: &[u8]) -> Self {
        Proof { key: Some(key.into()), ..Proof::default() }
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    pub(crate) fn add_certificates(&mut self, shown: Shown) {
        (self.certificates, self.judged) = (shown.certificates, shown.judged);
    }

    /// Whether its certificates pass what has this number: `judge` says so, once.
    #[cfg_attr(not(feature = "tls"), allow(dead_code, reason = "there are no certificates"))]
    pub(super) fn passes(&mut self, number: u64, judge: impl FnOnce(&[Vec<u8>]) -> bool) -> bool {
        if self.judged != number && judge(&self.certificates) {
            self.judged = number;
        }
        self.judged == number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_judged_once_by_each() {
        let mut proof = Proof::default();
        let shown = Shown { user: String::new(), certificates: vec![b"one".to_vec()], judged: 1 };
        proof.add_certificates(shown);
        assert!(proof.passes(1, |_| unreachable!("it has passed")));
        assert!(!proof.passes(2, |_| false));
        assert!(proof.passes(3, |certificates| certificates == [b"one"]));
        assert!(proof.passes(3, |_| unreachable!("it has passed")));
    }
}
