//! Keys and passwords: their sources, and the socket options for them.
//!
//! Secrets come from a file or from the environment, never from the command line, because every
//! user of the machine can read the command line.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use tautline::curve::{KeyPair, PublicKey, SecretKey};
use tautline::zap::{AllowList, Authenticate, Request, Verdict};
use tautline_policy::file::append;
use tautline_proto::Secret;

use crate::config::{Config, Saved, expand};
use crate::failure::{Failure, Result};
use crate::tls::TlsArgs;

/// Environment variable with the password for PLAIN.
const PASSWORD: &str = "TAUT_PLAIN_PASSWORD";
/// Length of the longest file of keys, passwords or certificates in bytes.
const LONGEST: u64 = 1 << 20;

/// Encryption and passwords
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Security")]
pub struct SecurityArgs {
    /// Encrypt with CURVE, and accept only the server with this public key: 40 characters, a file,
    /// or @NAME
    // A key may begin with a hyphen.
    #[arg(long, value_name = "KEY|FILE|@NAME", allow_hyphen_values = true)]
    pub curve_server_key: Option<String>,
    /// File with our own key pair from `taut keygen`; by default, a client generates a new pair
    #[arg(long, value_name = "FILE")]
    pub curve_key_file: Option<PathBuf>,
    /// Encrypt with CURVE as the server: clients need the public key of --curve-key-file
    #[arg(long, conflicts_with = "curve_server_key", requires = "curve_key_file")]
    pub curve_server: bool,
    /// File with the clients that a CURVE server accepts: a public key and an optional name per
    /// line. By default, the server accepts every client that knows its key
    #[arg(long, value_name = "FILE", requires = "curve_server")]
    pub curve_allow: Option<PathBuf>,
    /// Log in with this user name (PLAIN, not encrypted); the password comes from
    /// --plain-password-file or the variable TAUT_PLAIN_PASSWORD
    #[arg(long, value_name = "USER", conflicts_with_all = ["curve_server_key", "curve_server"])]
    pub plain: Option<String>,
    /// File with the password in its first line
    #[arg(long, value_name = "FILE")]
    pub plain_password_file: Option<PathBuf>,
    /// Be the PLAIN server, with this file of users: user:password per line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plain", "curve_server_key", "curve_server"])]
    pub plain_users: Option<PathBuf>,
    /// Certificates.
    #[command(flatten)]
    pub tls: TlsArgs,
}

/// Encryption and passwords of the back of a proxy
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Security of the back")]
pub struct BackSecurityArgs {
    /// Same as --curve-server-key, for the back
    #[arg(long, value_name = "KEY|FILE|@NAME", allow_hyphen_values = true)]
    pub back_curve_server_key: Option<String>,
    /// Same as --curve-key-file, for the back
    #[arg(long, value_name = "FILE")]
    pub back_curve_key_file: Option<PathBuf>,
    /// Same as --curve-server, for the back
    #[arg(long, conflicts_with = "back_curve_server_key", requires = "back_curve_key_file")]
    pub back_curve_server: bool,
    /// Same as --curve-allow, for the back
    #[arg(long, value_name = "FILE", requires = "back_curve_server")]
    pub back_curve_allow: Option<PathBuf>,
    /// Same as --plain, for the back
    #[arg(long, value_name = "USER", conflicts_with_all = ["back_curve_server_key", "back_curve_server"])]
    pub back_plain: Option<String>,
    /// Same as --plain-password-file, for the back
    #[arg(long, value_name = "FILE")]
    pub back_plain_password_file: Option<PathBuf>,
    /// Same as --plain-users, for the back
    #[arg(long, value_name = "FILE", conflicts_with_all = ["back_plain", "back_curve_server_key", "back_curve_server"])]
    pub back_plain_users: Option<PathBuf>,
}

impl BackSecurityArgs {
    /// Returns the options under their names without `back-`.
    pub fn as_given(&self) -> SecurityArgs {
        let given = self.clone();
        SecurityArgs {
            curve_server_key: given.back_curve_server_key,
            curve_key_file: given.back_curve_key_file,
            curve_server: given.back_curve_server,
            curve_allow: given.back_curve_allow,
            plain: given.back_plain,
            plain_password_file: given.back_plain_password_file,
            plain_users: given.back_plain_users,
            tls: TlsArgs::default(),
        }
    }
}

/// Security mechanism of a socket.
#[derive(Default, Clone)]
pub enum Security {
    /// No security (NULL).
    #[default]
    Null,
    /// CURVE, as a client of the server with this key.
    CurveClient { server: PublicKey, own: KeyPair },
    /// CURVE, as the server.
    CurveServer { own: KeyPair, allow: Option<AllowList> },
    /// PLAIN, as a client.
    PlainClient { user: String, password: Secret<Vec<u8>> },
    /// PLAIN, as the server.
    PlainServer { users: AllowList },
}

// The numbers in `zmq.h`.
const PLAIN_SERVER: i32 = 44;
const PLAIN_USERNAME: i32 = 45;
const PLAIN_PASSWORD: i32 = 46;
const CURVE_SERVER: i32 = 47;
const CURVE_PUBLICKEY: i32 = 48;
const CURVE_SECRETKEY: i32 = 49;
const CURVE_SERVERKEY: i32 = 50;

impl Security {
    /// Reads the settings of the command line. Missing settings come from the saved context.
    pub fn new(args: &SecurityArgs, saved: Option<&Saved>, config: &Config) -> Result<Security> {
        let saved = saved.filter(|_| !args.curve_server && args.plain_users.is_none());
        let server_key = args.curve_server_key.clone().or_else(|| {
            saved.filter(|_| args.plain.is_none()).and_then(|saved| saved.curve_server_key.clone())
        });
        let key_file = args.curve_key_file.clone().or_else(|| saved?.curve_key_file.clone());
        let plain = args.plain.clone().or_else(|| saved?.plain.clone());
        if args.curve_server {
            let own = own_keys(&key_file.unwrap_or_default())?;
            let allow = args.curve_allow.as_deref().map(read_allowed).transpose()?;
            return Ok(Security::CurveServer { own, allow });
        }
        if let Some(text) = server_key {
            let own = match key_file {
                Some(file) => own_keys(&file)?,
                None => KeyPair::generate()?,
            };
            return Ok(Security::CurveClient { server: public_key(&text, config)?, own });
        }
        if let Some(file) = &args.plain_users {
            return Ok(Security::PlainServer { users: read_users(file)? });
        }
        if let Some(user) = plain {
            let file = args.plain_password_file.clone().or_else(|| saved?.plain_password_file.clone());
            return Ok(Security::PlainClient { user, password: password(file.as_deref())? });
        }
        if args.curve_key_file.is_some() {
            return Err(Failure::usage("--curve-key-file alone does not encrypt")
                .hint("a client also needs --curve-server-key, and a server --curve-server"));
        }
        if args.plain_password_file.is_some() {
            return Err(Failure::usage("--plain-password-file needs --plain USER"));
        }
        Ok(Security::Null)
    }

    /// Returns the name of the mechanism.
    pub fn mechanism(&self) -> &'static str {
        match self {
            Security::Null => "NULL",
            Security::CurveClient { .. } | Security::CurveServer { .. } => "CURVE",
            Security::PlainClient { .. } | Security::PlainServer { .. } => "PLAIN",
        }
    }

    /// Calls `set(option, value)` for each option of a socket.
    pub fn options(&self, mut set: impl FnMut(i32, &[u8]) -> tautline::Result<()>) -> tautline::Result<()> {
        match self {
            Security::Null => Ok(()),
            Security::CurveClient { server, own } => {
                set(CURVE_SERVERKEY, server.as_bytes())?;
                set(CURVE_PUBLICKEY, own.public.as_bytes())?;
                set(CURVE_SECRETKEY, own.secret.expose_bytes())
            }
            Security::CurveServer { own, .. } => {
                set(CURVE_SERVER, &1_i32.to_ne_bytes())?;
                set(CURVE_SECRETKEY, own.secret.expose_bytes())
            }
            Security::PlainClient { user, password } => {
                set(PLAIN_USERNAME, user.as_bytes())?;
                set(PLAIN_PASSWORD, password)
            }
            Security::PlainServer { .. } => set(PLAIN_SERVER, &1_i32.to_ne_bytes()),
        }
    }

    /// Starts the authentication of peers, once for each context.
    pub fn judge(&self, context: &tautline::Context) -> tautline::Result<()> {
        self.list().map_or(Ok(()), |list| context.authenticate(list.clone()))
    }

    /// True for the server side of a mechanism.
    pub fn is_server(&self) -> bool {
        matches!(self, Security::CurveServer { .. } | Security::PlainServer { .. })
    }

    fn list(&self) -> Option<&AllowList> {
        match self {
            Security::CurveServer { allow, .. } => allow.as_ref(),
            Security::PlainServer { users } => Some(users),
            _ => None,
        }
    }
}

/// Starts the authentication of peers for two sockets of a context, distinguished by their ZAP
/// domains. A server without a list accepts every client that knows its key.
pub fn judge_both(
    context: &tautline::Context,
    domains: [&'static str; 2],
    sockets: [&Security; 2],
) -> tautline::Result<()> {
    let lists = sockets.map(|security| security.list().cloned());
    if lists.iter().all(Option::is_none) {
        return Ok(());
    }
    context.authenticate(move |request: &Request| {
        let at = domains.iter().position(|domain| *domain == request.domain());
        match at.map(|at| &lists[at]) {
            Some(Some(list)) => list.clone().authenticate(request),
            Some(None) => Verdict::admit(""),
            None => Verdict::refuse("not a socket of the proxy"),
        }
    })
}

/// Reads a file. The memory is wiped after use.
pub fn read(path: &Path) -> Result<Secret<Vec<u8>>> {
    let path = expand(path);
    let mut bytes = Secret::new(Vec::new());
    append(&path, LONGEST, &mut bytes).map_err(|error| Failure::file(&path, &error))?;
    Ok(bytes)
}

/// Prints a warning if other users can read a secret file.
pub fn warn_if_open(path: &Path) {
    let path = expand(path);
    let open = fs::metadata(&path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o077 != 0);
    if open {
        notice!("taut: warning: other users can read {}: chmod 600 {0}", path.display());
    }
}

/// Returns the value of a `NAME = "VALUE"` line in a key file of `taut` or CZMQ.
fn entry<'a>(text: &'a str, names: [&str; 2]) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        names.contains(&name.trim()).then(|| value.trim().trim_matches('"'))
    })
}

fn own_keys(path: &Path) -> Result<KeyPair> {
    let bytes = read(path)?;
    warn_if_open(path);
    let text = String::from_utf8_lossy(&bytes);
    let Some(secret) = entry(&text, ["secret", "secret-key"]) else {
        return Err(Failure::failed(format!("{}: the file contains no secret key", path.display()))
            .hint("`taut keygen --out FILE` writes such a file"));
    };
    let secret: SecretKey =
        secret.parse().map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
    Ok(KeyPair::from(secret))
}

/// Returns a public key, given as text, by file or by name.
fn public_key(text: &str, config: &Config) -> Result<PublicKey> {
    let text = match text.strip_prefix('@').filter(|name| config.keys.contains_key(*name) || name.len() != 39)
    {
        Some(name) => config.key(name)?,
        None => text,
    };
    if let Ok(key) = text.parse() {
        return Ok(key);
    }
    let path = expand(Path::new(text));
    if !path.exists() {
        let wrong = text.parse::<PublicKey>().err().map(|error| error.to_string()).unwrap_or_default();
        return Err(Failure::usage(format!(
            "--curve-server-key {text:?} is not a key ({wrong}) or an existing file"
        ))
        .hint("`taut keygen` prints the public key of a pair"));
    }
    let bytes = read(&path)?;
    let content = String::from_utf8_lossy(&bytes);
    let key = entry(&content, ["public", "public-key"]).unwrap_or(content.trim());
    key.parse().map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

/// Returns the numbered lines of a file without comments.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &str)> {
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    lines.filter_map(|(at, line)| {
        let line = std::str::from_utf8(line).ok()?.trim_end_matches('\r');
        (!line.trim().is_empty() && !line.starts_with("# ")).then_some((at + 1, line))
    })
}

fn read_allowed(path: &Path) -> Result<AllowList> {
    let list = AllowList::new();
    for (number, line) in lines(&read(path)?) {
        let (key, name) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let key: PublicKey = key
            .parse()
            .map_err(|error| Failure::failed(format!("{}, line {number}: {error}", path.display())))?;
        list.add_key(key, name.trim());
    }
    Ok(list)
}

fn read_users(path: &Path) -> Result<AllowList> {
    let list = AllowList::new();
    let bytes = read(path)?;
    warn_if_open(path);
    for (number, line) in lines(&bytes) {
        // Do not print the line: it may be a password.
        let (user, password) = line.split_once(':').ok_or_else(|| {
            Failure::failed(format!("{}, line {number}: not user:password", path.display()))
        })?;
        list.add_password(user, password);
    }
    Ok(list)
}

fn password(file: Option<&Path>) -> Result<Secret<Vec<u8>>> {
    if let Some(path) = file {
        let bytes = read(path)?;
        warn_if_open(path);
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        return Ok(Secret::new(line.strip_suffix(b"\r").unwrap_or(line).to_vec()));
    }
    match std::env::var(PASSWORD) {
        Ok(text) => Ok(Secret::new(text.into_bytes())),
        Err(_) => Err(Failure::usage("--plain needs a password")
            .hint(format!("use --plain-password-file FILE, or the variable {PASSWORD}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_tools_are_read() {
        let ours = "# CURVE key pair\npublic = \"abc=\"\nsecret = \"def\"\n";
        let czmq = "metadata\ncurve\n    public-key = \"abc=\"\n    secret-key = \"def\"\n";
        for text in [ours, czmq] {
            assert_eq!(entry(text, ["public", "public-key"]), Some("abc="));
            assert_eq!(entry(text, ["secret", "secret-key"]), Some("def"));
        }
    }

    #[test]
    fn a_key_is_itself_or_has_a_name() {
        let mut config = Config::default();
        let key = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";
        config.keys.insert("home".to_owned(), key.to_owned());
        assert_eq!(public_key(key, &config).unwrap().to_string(), key);
        assert_eq!(public_key("@home", &config).unwrap().to_string(), key);
        assert!(public_key("@other", &config).unwrap_err().what.contains("no key other"));
        let failure = public_key("short", &config).unwrap_err();
        assert!(failure.what.contains("40 characters, not 5"), "{failure}");
    }
}
