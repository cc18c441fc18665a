//! NATS servers, and the login of the bridge.

use std::io::Read;
use std::path::{Path, PathBuf};

use async_nats::ServerAddr;
use tautline_names::file::open;
use toml::Spanned;

use super::{Lines, file};
use crate::fault::BridgeError;

/// Byte order mark of UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// NATS servers, and the login of the bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nats {
    /// Line of the servers in the file.
    pub line: usize,
    /// Servers, as URLs.
    pub servers: Vec<String>,
    /// Line of the login in the file, or of the servers if there is no login.
    pub login_line: usize,
    /// Credentials for the login.
    pub login: Login,
    /// TLS certificates.
    pub tls: Tls,
}

impl Nats {
    /// True if both are equal, apart from their line numbers.
    pub fn has_same_settings(&self, other: &Nats) -> bool {
        (&self.servers, &self.login, &self.tls) == (&other.servers, &other.login, &other.tls)
    }
}

/// Login of the bridge. Secrets stay in their files, which the bridge reads at each
/// connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// No login.
    Anonymous,
    /// File with a JWT and its key, as `nsc` writes it.
    Credentials(PathBuf),
    /// File with the seed of an nkey.
    Nkey(PathBuf),
    /// File with a token.
    Token(PathBuf),
    /// User name, and a file with the password.
    Password(String, PathBuf),
}

/// Certificates, in PEM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// Authorities that signed the servers' certificates, in addition to the system's
    /// authorities.
    pub ca: Option<PathBuf>,
    /// Certificate of the bridge, and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Checks the table of the NATS servers in the configuration and converts it. Every file that it
/// names must be readable.
pub fn check(raw: file::Nats, lines: Lines<'_>) -> Result<Nats, BridgeError> {
    let (line, servers) = lines.take(raw.servers);
    let servers = servers.into_vec();
    if servers.is_empty() {
        return Err(BridgeError::new(line, "there is no server: add servers = [\"nats://127.0.0.1:4222\"]"));
    }
    for server in &servers {
        let address: ServerAddr = server
            .parse()
            .map_err(|error| BridgeError::new(line, format!("{server:?} is not a NATS server: {error}")))?;
        if address.username().is_some() || address.password().is_some() {
            return Err(BridgeError::new(
                line,
                "put names and passwords into `user` and `password_file`, not into the address",
            ));
        }
    }
    let mut logins = Vec::new();
    if let Some(path) = raw.credentials {
        let (line, path) = readable(path, lines)?;
        logins.push((line, Login::Credentials(path)));
    }
    if let Some(path) = raw.nkey_file {
        let (line, path) = readable(path, lines)?;
        logins.push((line, Login::Nkey(path)));
    }
    if let Some(path) = raw.token_file {
        let (line, path) = readable(path, lines)?;
        logins.push((line, Login::Token(path)));
    }
    match (raw.user, raw.password_file) {
        (Some(user), Some(path)) => {
            let (line, user) = lines.take(user);
            logins.push((line, Login::Password(user, readable(path, lines)?.1)));
        }
        (None, None) => {}
        (Some(user), None) => {
            return Err(BridgeError::new(lines.take(user).0, "`user` needs `password_file`"));
        }
        (None, Some(path)) => {
            return Err(BridgeError::new(lines.take(path).0, "`password_file` needs `user`"));
        }
    }
    if let Some((line, _)) = logins.get(1) {
        return Err(BridgeError::new(
            *line,
            "use only one of `credentials`, `nkey_file`, `token_file`, or `user`",
        ));
    }
    let (login_line, login) = logins.pop().unwrap_or((line, Login::Anonymous));
    let tls = raw.tls.map_or(Ok(Tls::default()), |raw| tls(raw, lines))?;
    Ok(Nats { line, servers, login_line, login, tls })
}

fn tls(raw: file::Tls, lines: Lines<'_>) -> Result<Tls, BridgeError> {
    let pem = |path: Spanned<PathBuf>| {
        let (line, path) = lines.take(path);
        check_pem(&path).map(|()| path).map_err(|fault| BridgeError::new(line, fault))
    };
    let ca = raw.ca.map(pem).transpose()?;
    let identity = match (raw.certificate, raw.key) {
        (Some(certificate), Some(key)) => Some((pem(certificate)?, pem(key)?)),
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => {
            return Err(BridgeError::new(lines.take(one).0, "`certificate` and `key` need each other"));
        }
    };
    Ok(Tls { ca, identity })
}

/// Checks that the NATS client can read a file of certificates or keys. The client skips the first
/// one behind a byte order mark without an error.
pub fn check_pem(path: &Path) -> Result<(), String> {
    let mut begin = Vec::new();
    let read = open(path).and_then(|file| file.take(BOM.len() as u64).read_to_end(&mut begin));
    let path = path.display();
    read.map_err(|error| format!("{path}: {error}"))?;
    match &begin[..] == BOM {
        true => Err(format!("{path}: the file begins with a byte order mark: save it as UTF-8 without one")),
        false => Ok(()),
    }
}

/// Checks that a file can be read.
fn readable(path: Spanned<PathBuf>, lines: Lines<'_>) -> Result<(usize, PathBuf), BridgeError> {
    let (line, path) = lines.take(path);
    match open(&path) {
        Ok(_) => Ok((line, path)),
        Err(error) => Err(BridgeError::new(line, format!("{}: {error}", path.display()))),
    }
}
