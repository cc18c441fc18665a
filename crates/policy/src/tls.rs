//! TLS that the library adds to a connection.

use std::path::{Path, PathBuf};

use crate::FileError;
use crate::parse::file;
use crate::pattern::Pattern;
use crate::table::Table;

/// The files of TLS, all in PEM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TlsWrap {
    /// Certificate of this host, followed by the certificates that lead from it to one that the
    /// peers trust.
    pub certificate: Option<PathBuf>,
    /// Secret key of the certificate. Key and certificate are set together.
    pub key: Option<PathBuf>,
    /// Certificates that are accepted for servers.
    pub trust: Option<TlsTrust>,
    /// Clients must present a certificate that leads to one of these: a file, or a folder of files.
    /// If `None`, any client may connect.
    pub clients: Option<PathBuf>,
    /// Names that servers must prove, by the endpoint that a socket connects to.
    servers: Vec<(Pattern, String)>,
}

/// Source of trusted certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsTrust {
    /// Certificates that the system trusts.
    System,
    /// Certificates in a file, or in all files of a folder.
    File(PathBuf),
}

impl TlsWrap {
    /// Returns the name that the server at this endpoint must prove, if it differs from its host
    /// name.
    pub fn server(&self, endpoint: &str) -> Option<&str> {
        self.servers
            .iter()
            .find(|(pattern, _)| pattern.matches_endpoint(endpoint))
            .map(|(_, name)| name.as_str())
    }

    /// Returns all files and folders.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let trust = match &self.trust {
            Some(TlsTrust::File(path)) => Some(path),
            _ => None,
        };
        [self.certificate.as_ref(), self.key.as_ref(), trust, self.clients.as_ref()]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
    }
}

/// Reads a wrap of this name.
pub(crate) fn wrap(name: &str, mut table: Table<'_>) -> Result<TlsWrap, FileError> {
    table.expect_only("a wrap in TLS", &["protocol", "certificate", "key", "trust", "clients", "servers"])?;
    let mut wrap = TlsWrap {
        certificate: table.take("certificate").map(file).transpose()?,
        key: table.take("key").map(file).transpose()?,
        clients: table.take("clients").map(file).transpose()?,
        ..TlsWrap::default()
    };
    if let Some(value) = table.take("trust") {
        let wrong = value.fault("must be \"system\" or an absolute path");
        wrap.trust = Some(match value.text()?.as_str() {
            "system" => TlsTrust::System,
            text if Path::new(text).has_root() => TlsTrust::File(text.into()),
            _ => return Err(wrong),
        });
    }
    if let Some(value) = table.take("servers") {
        for (endpoint, value) in value.table()?.all() {
            let empty = value.fault("must be the name in the server's certificate");
            let server = value.text()?;
            if server.is_empty() {
                return Err(empty);
            }
            wrap.servers.push((Pattern::new(endpoint.get_ref()), server));
        }
    }
    let missing = match (&wrap.certificate, &wrap.key, &wrap.trust, &wrap.clients) {
        (Some(_), None, ..) => Some("has a `certificate` but no `key`"),
        (None, Some(_), ..) => Some("has a `key` but no `certificate`"),
        (None, None, None, _) => {
            Some("needs `certificate` and `key` (for servers) or `trust` (for clients), or all three")
        }
        (None, .., Some(_)) => {
            Some("has `clients`, which only servers use, but no `certificate`, which servers need")
        }
        _ => None,
    };
    if let Some(missing) = missing {
        return Err(table.fault(format!("`{name}` {missing}")));
    }
    Ok(wrap)
}
