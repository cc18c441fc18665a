//! Certificates and keys in PEM.
//!
//! A block counts wherever its first line stands: behind a byte order mark, after spaces, or
//! directly behind another block. So no certificate is skipped silently.

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use webpki::anchor_from_trusted_cert;

use super::config::BadCredentials;
use super::user::{SEQUENCE, take};
use crate::secret::Secret;

/// Beginnings of the first and of the last line of a block.
const BOUNDARIES: [&[u8]; 2] = [b"-----BEGIN ", b"-----END "];
/// Blocks that contain certificates in another form.
const OTHER_FORMS: [&[u8]; 4] = [
    b"-----BEGIN TRUSTED CERTIFICATE-----",
    b"-----BEGIN X509 CERTIFICATE-----",
    b"-----BEGIN PKCS7-----",
    b"-----BEGIN CMS-----",
];
/// Part of the label or of the header of an encrypted key.
const ENCRYPTED: &[u8] = b"ENCRYPTED";
/// The object identifier of RSA keys, 1.2.840.113549.1.1.1.
const RSA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// Tags of DER.
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;

/// Returns the certificates in `pem`, at least one.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, BadCredentials> {
    let text = separate_blocks(pem);
    if OTHER_FORMS.iter().any(|form| contains(&text, form)) {
        return Err(BadCredentials::CertificateForm);
    }
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Err(_) => Err(BadCredentials::Certificate),
        Ok(found) if found.is_empty() => Err(BadCredentials::NoCertificate),
        Ok(found) => Ok(found),
    }
}

/// Returns the certificates in `pem`, at least one, if peers can be verified with each of them.
pub(super) fn trusted(
    pem: &[u8],
    provider: &CryptoProvider,
) -> Result<Vec<CertificateDer<'static>>, BadCredentials> {
    let found = certificates(pem).map_err(BadCredentials::of_trusted)?;
    for certificate in &found {
        let anchor = anchor_from_trusted_cert(certificate).map_err(|_| BadCredentials::Trust)?;
        if !is_supported(&anchor.subject_public_key_info, provider) {
            return Err(BadCredentials::TrustKind);
        }
    }
    Ok(found)
}

/// Returns the keys in `pem`, at least one.
pub(super) fn keys(pem: &[u8]) -> Result<Vec<PrivateKeyDer<'static>>, BadCredentials> {
    let text = separate_blocks(pem);
    let found: Result<Vec<_>, _> = PrivateKeyDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ if contains(&text, ENCRYPTED) => Err(BadCredentials::EncryptedKey),
        Ok(_) => Err(BadCredentials::NoKey),
        Err(_) => Err(BadCredentials::Key),
    }
}

/// Returns the text with each boundary at the beginning of a line.
fn separate_blocks(pem: &[u8]) -> Secret<Vec<u8>> {
    let is_boundary = |at: &usize| BOUNDARIES.iter().any(|boundary| pem[*at..].starts_with(boundary));
    let boundaries: Vec<usize> = (0..pem.len()).filter(is_boundary).collect();
    // Reserve the memory at once, so that no copy of a key is left in memory.
    let mut text = Secret::new(Vec::with_capacity(pem.len() + boundaries.len()));
    let mut from = 0;
    for at in boundaries {
        text.extend_from_slice(&pem[from..at]);
        text.push(b'\n');
        from = at;
    }
    text.extend_from_slice(&pem[from..]);
    text
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// True if signatures of this key can be verified. `info` is the content of a
/// SubjectPublicKeyInfo.
fn is_supported(mut info: &[u8], provider: &CryptoProvider) -> bool {
    let Some(algorithm) = take(&mut info, SEQUENCE) else { return false };
    let known = provider.signature_verification_algorithms.all;
    let is_known = known.iter().any(|known| known.public_key_alg_id().as_ref() == algorithm);
    is_known && (!algorithm.starts_with(RSA) || has_supported_length(info))
}

/// True if an RSA key has 2048 to 8192 bits.
fn has_supported_length(key: &[u8]) -> bool {
    let Some(modulus) = modulus_of(key) else { return false };
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let first = modulus.get(zeros).copied().unwrap_or(0);
    let bits = (modulus.len() - zeros) * 8;
    (2048..=8192).contains(&bits.saturating_sub(first.leading_zeros() as usize))
}

/// Returns the modulus of an RSA key, as an unsigned number.
fn modulus_of(mut key: &[u8]) -> Option<&[u8]> {
    let mut bits = take(&mut key, BIT_STRING)?.strip_prefix(&[0])?;
    take(&mut take(&mut bits, SEQUENCE)?, INTEGER)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bit string of an RSA key with this modulus.
    fn key(modulus: &[u8]) -> Vec<u8> {
        let length = modulus.len() as u16;
        let wrap = |tag: u8, length: u16| [&[tag, 0x82], &length.to_be_bytes()[..]].concat();
        [
            &wrap(BIT_STRING, length + 9)[..],
            &[0],
            &wrap(SEQUENCE, length + 4),
            &wrap(INTEGER, length),
            modulus,
        ]
        .concat()
    }

    #[test]
    fn length_of_an_rsa_key_is_that_of_its_modulus() {
        for (modulus, is_supported) in [
            ([&[0x80][..], &[0; 255]].concat(), true),
            ([&[0, 0x80][..], &[0; 255]].concat(), true),
            ([&[0x7f][..], &[0xff; 255]].concat(), false),
            ([&[0x80][..], &[0; 1023]].concat(), true),
            ([&[1][..], &[0; 1024]].concat(), false),
            (vec![0; 256], false),
            (Vec::new(), false),
        ] {
            assert_eq!(has_supported_length(&key(&modulus)), is_supported, "{modulus:x?}");
        }
    }
}
