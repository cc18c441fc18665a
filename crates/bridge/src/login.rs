//! Credentials that the bridge presents to NATS. The bridge reads them from their file at each
//! connection, so that a rotated password, token or key takes effect at the next connection.

use std::path::Path;

use async_nats::{Auth, AuthError};
use nkeys::KeyPair;
use tautline_names::file::read_text;

use crate::config::Login;

impl Login {
    /// Returns the credentials for a server that has sent this nonce.
    ///
    /// # Errors
    /// Returns the file and the fault, without any secret.
    pub fn auth(&self, nonce: &[u8]) -> Result<Auth, AuthError> {
        let mut auth = Auth::new();
        match self {
            Login::Anonymous => {}
            Login::Credentials(path) => {
                let text = read(path)?;
                let mut blocks = text.split("-----BEGIN ").skip(1).filter_map(|block| block.lines().nth(1));
                let (Some(jwt), Some(seed)) = (blocks.next(), blocks.next()) else {
                    return Err(fault(path, "the file must contain a JWT and its key"));
                };
                auth.signature = Some(sign(path, seed.trim(), nonce)?.1);
                auth.jwt = Some(jwt.trim().to_owned());
            }
            Login::Nkey(path) => {
                let (key, signature) = sign(path, &first_line(path)?, nonce)?;
                (auth.nkey, auth.signature) = (Some(key), Some(signature));
            }
            Login::Token(path) => auth.token = Some(first_line(path)?),
            Login::Password(user, path) => {
                (auth.username, auth.password) = (Some(user.clone()), Some(first_line(path)?));
            }
        }
        Ok(auth)
    }
}

/// Returns the public key of a seed, and its signature of the nonce.
fn sign(path: &Path, seed: &str, nonce: &[u8]) -> Result<(String, Vec<u8>), AuthError> {
    let pair = KeyPair::from_seed(seed).map_err(|error| fault(path, error))?;
    let signature = pair.sign(nonce).map_err(|error| fault(path, error))?;
    Ok((pair.public_key(), signature))
}

fn first_line(path: &Path) -> Result<String, AuthError> {
    Ok(read(path)?.lines().next().unwrap_or_default().to_owned())
}

fn read(path: &Path) -> Result<String, AuthError> {
    read_text(path).map_err(|error| fault(path, error))
}

fn fault(path: &Path, what: impl std::fmt::Display) -> AuthError {
    AuthError::new(format!("{}: {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tautline_testkit::endpoint::TempDir;

    use super::*;

    #[test]
    fn login_is_read_again_for_each_connection() {
        let folder = TempDir::new();
        let path = folder.path().join("secret");
        let write = |text: &str| fs::write(&path, text).unwrap();
        let password = Login::Password("joe".to_owned(), path.clone());
        let token = Login::Token(path.clone());
        for secret in ["one", "two"] {
            write(&format!("{secret}\nmore\n"));
            let shown = password.auth(b"").unwrap();
            assert_eq!((shown.username.as_deref(), shown.password.as_deref()), (Some("joe"), Some(secret)));
            assert_eq!(token.auth(b"").unwrap().token.as_deref(), Some(secret));
        }
        for pair in [KeyPair::new_user(), KeyPair::new_user()] {
            let seed = pair.seed().unwrap();
            write(&format!("{seed}\n"));
            let shown = Login::Nkey(path.clone()).auth(b"nonce").unwrap();
            assert_eq!(shown.nkey, Some(pair.public_key()));
            pair.verify(b"nonce", &shown.signature.unwrap()).unwrap();
            write(&format!(
                "-----BEGIN NATS USER JWT-----\njwt\n------END NATS USER JWT------\n\n* secret *\n\n\
                 -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
            ));
            let shown = Login::Credentials(path.clone()).auth(b"nonce").unwrap();
            assert_eq!(shown.jwt.as_deref(), Some("jwt"));
            pair.verify(b"nonce", &shown.signature.unwrap()).unwrap();
        }
        fs::remove_file(&path).unwrap();
        let error = password.auth(b"").err().unwrap().to_string();
        assert!(error.contains("secret: No such file"), "{error}");
    }
}
