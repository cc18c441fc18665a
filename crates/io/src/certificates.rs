//! The certificates that the system trusts.

use crate::env;

/// Returns the certificates that the system trusts. Empty if the environment names other
/// certificates for a privileged program: then no server is trusted.
pub fn of_system() -> Vec<Vec<u8>> {
    let named = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().any(|name| std::env::var_os(name).is_some());
    if named && !env::is_trusted() {
        return Vec::new();
    }
    let found = rustls_native_certs::load_native_certs().certs;
    found.into_iter().map(|certificate| certificate.to_vec()).collect()
}
