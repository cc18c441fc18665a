//! Both implementations agree with Project Wycheproof, with libsodium and with each other. The code
//! that runs depends on the processor, so `tests/host/crypto/run.sh` runs these tests on several.

use sha1::{Digest, Sha1};
use wycheproof::TestResult;
use wycheproof::xdh::{TestName, TestSet};

use super::{TAG, dryoc, rustcrypto};

/// Octets that look random and are the same in every run (SplitMix64).
struct Octets(u64);

impl Octets {
    fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut word = self.0;
            word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            word ^= word >> 31;
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
    }

    fn next<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        self.fill(&mut out);
        out
    }

    fn body(&mut self, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        self.fill(&mut out);
        out
    }
}

/// Every length up to a few blocks of the widest kernel, then the lengths around powers of two.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=2100).chain(
        (12..=17)
            .flat_map(|power| [-65i32, -64, -17, -1, 0, 1, 15, 64].map(|by| ((1 << power) + by) as usize)),
    )
}

#[test]
fn agreement_is_that_of_wycheproof() {
    let set = TestSet::load(TestName::X25519).unwrap();
    let (mut agreed, mut refused) = (0, 0);
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let theirs: [u8; 32] = test.public_key.as_ref().try_into().unwrap();
        let ours: [u8; 32] = test.private_key.as_ref().try_into().unwrap();
        let shared: [u8; 32] = test.shared_secret.as_ref().try_into().unwrap();
        assert_ne!(test.result, TestResult::Invalid, "case {}", test.tc_id);
        // Wycheproof calls cases acceptable where the peer alone decides the result. Here they are
        // refused.
        let expected = (shared != [0; 32]).then(|| rustcrypto::subkey(&shared, &[0; 16]));
        assert!(rustcrypto::agree(&theirs, &ours) == expected, "case {}", test.tc_id);
        assert!(dryoc::agree(&theirs, &ours) == expected, "case {} with dryoc", test.tc_id);
        if expected.is_some() { agreed += 1 } else { refused += 1 }
    }
    assert!(agreed > 400 && refused > 20, "{agreed} {refused}");
}

#[test]
fn both_agree_on_keys() {
    let mut octets = Octets(1);
    for round in 0..200 {
        let (ours, theirs) = (octets.next(), octets.next());
        let public = rustcrypto::public_key(&theirs);
        assert_eq!(dryoc::public_key(&theirs), public, "{round}");
        let key = rustcrypto::agree(&public, &ours);
        assert!(key.is_some() && dryoc::agree(&public, &ours) == key, "{round}");
        assert!(rustcrypto::agree(&rustcrypto::public_key(&ours), &theirs) == key, "{round}");
        // Any 32 octets are accepted as a public key.
        let public = octets.next();
        assert!(rustcrypto::agree(&public, &ours) == dryoc::agree(&public, &ours), "{round}");
    }
}

#[test]
fn both_make_the_same_boxes() {
    let mut octets = Octets(2);
    for len in lengths() {
        let (key, prefix, rest) = (octets.next(), octets.next(), octets.next());
        let (mine, other) = (rustcrypto::PrefixKey::new(&key, &prefix), dryoc::PrefixKey::new(&key, &prefix));
        let content = octets.body(len);
        // Use another place in memory: the first and last bytes of some kernels depend on the
        // alignment.
        let (mut by_mine, mut by_other) = (content.clone(), [vec![0; len % 16], content.clone()].concat());
        let by_other = &mut by_other[len % 16..];
        let tag = mine.seal(&rest, &mut by_mine);
        assert_eq!(other.seal(&rest, by_other), tag, "{len}");
        assert!(by_mine == by_other, "{len}");
        assert!(mine.open(&rest, &tag, by_other) && *by_other == *content, "{len}");
        assert!(other.open(&rest, &tag, &mut by_mine) && by_mine == content, "{len}");
    }
}

#[test]
fn forged_boxes_do_not_open() {
    let mut octets = Octets(3);
    for len in [0, 1, 15, 16, 17, 63, 64, 65, 255, 512, 1025, 5000] {
        let (key, prefix, rest): (_, _, [u8; 8]) = (octets.next(), octets.next(), octets.next());
        let (mine, other) = (rustcrypto::PrefixKey::new(&key, &prefix), dryoc::PrefixKey::new(&key, &prefix));
        let mut body = octets.body(len);
        let tag = mine.seal(&rest, &mut body);
        let refused = |rest: &[u8; 8], tag: &[u8; TAG], body: &[u8]| {
            let (mut by_mine, mut by_other) = (body.to_vec(), body.to_vec());
            assert!(!mine.open(rest, tag, &mut by_mine) && !other.open(rest, tag, &mut by_other), "{len}");
            assert!(by_mine == body && by_other == body, "untouched, {len}");
        };
        for bit in 0..8 * TAG {
            let mut tag = tag;
            tag[bit / 8] ^= 1 << (bit % 8);
            refused(&rest, &tag, &body);
        }
        for at in (0..len).step_by(len / 40 + 1) {
            body[at] ^= 0x10;
            refused(&rest, &tag, &body);
            body[at] ^= 0x10;
        }
        refused(&[rest[0] ^ 1, 0, 0, 0, 0, 0, 0, 0], &tag, &body);
        if len > 0 {
            refused(&rest, &tag, &body[1..]);
        }
    }
}

/// Combines the tags and boxes of all lengths, and the agreed keys, in one digest. libsodium 1.0.18
/// produced the same digest.
macro_rules! digest_of {
    ($cipher:ident) => {{
        let (mut octets, mut digest) = (Octets(4), Sha1::new());
        for len in lengths() {
            let (key, prefix, rest) = (octets.next(), octets.next(), octets.next());
            let mut body = octets.body(len);
            digest.update($cipher::PrefixKey::new(&key, &prefix).seal(&rest, &mut body));
            digest.update(&body);
        }
        for _ in 0..50 {
            let (ours, theirs) = (octets.next(), octets.next());
            let public = $cipher::public_key(&theirs);
            digest.update(public);
            digest.update(&*$cipher::agree(&public, &ours).unwrap());
        }
        digest.finalize().iter().map(|octet| format!("{octet:02x}")).collect::<String>()
    }};
}

#[test]
fn both_make_what_libsodium_makes() {
    let libsodium = "8179e946a3d732949384ad1b2ef2c0d43e4bf7de";
    assert_eq!(digest_of!(rustcrypto), libsodium);
    assert_eq!(digest_of!(dryoc), libsodium);
}
