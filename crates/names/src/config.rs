//! The names file.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{FileError, NameEntry, Resolution, Resolver, is_allowed_endpoint, is_name};
use tautline_policy::file::read_text;
use tautline_policy::table::{Table, Value};

/// Port of DNS.
const DNS_PORT: u16 = 53;
/// Lease of an entry in NATS, if the file does not set one.
const LEASE: Duration = Duration::from_secs(10);
/// Lifetime of names from the file. A changed file is read again as a whole, so its names need no
/// refresh.
const NEVER: Duration = Duration::from_secs(1 << 30);

/// Content of a names file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamesConfig {
    /// Names with their endpoints.
    pub names: Vec<(String, Vec<String>)>,
    /// Folder in which the programs of this host publish their bound endpoints.
    pub folder: Option<Folder>,
    /// Names in DNS.
    pub dns: Option<Dns>,
    /// Bucket through which hosts exchange the bound endpoints of their programs. Used by `taut
    /// names`, not by the library.
    pub nats: Option<Nats>,
}

/// The folder of a host's programs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Folder {
    /// Path of the folder.
    pub path: PathBuf,
    /// Endpoint that a bind opens for other hosts, in addition to `ipc`.
    pub tcp: Option<String>,
    /// Host under which other hosts reach that endpoint, if it differs from the bound address.
    pub advertise: Option<String>,
}

/// Names in DNS.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dns {
    /// Domain that is appended to each name.
    pub suffix: String,
    /// Servers to ask, in order. If empty, the servers of `/etc/resolv.conf`.
    pub servers: Vec<SocketAddr>,
    /// Port of servers that have addresses but no SRV records.
    pub port: Option<u16>,
    /// True if both IPv4 and IPv6 addresses of a host are used. If false, IPv6 addresses are used
    /// only for hosts without IPv4 addresses.
    pub both_families: bool,
}

/// A key-value bucket of NATS.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nats {
    /// URLs of the NATS servers.
    pub servers: Vec<String>,
    /// Credentials file, if the servers require one.
    pub credentials: Option<PathBuf>,
    /// Certificates of trusted authorities, for TLS.
    pub ca: Option<PathBuf>,
    /// Name of the bucket.
    pub bucket: String,
    /// Time for which an entry stays valid after its last renewal.
    pub lease: Duration,
    /// Number of servers that store the bucket, if it must be created.
    pub replicas: usize,
}

impl NamesConfig {
    /// Reads a names file. `is_endpoint` returns true for a text that can be connected to.
    ///
    /// # Errors
    /// The first fault of the text, with its line.
    pub fn parse(text: &str, is_endpoint: &dyn Fn(&str) -> bool) -> Result<Self, FileError> {
        let mut table = Table::parse(text)?;
        table.expect_only("a names file", &["names", "folder", "dns", "nats"])?;
        let mut names = NamesConfig::default();
        if let Some(value) = table.take("names") {
            for (name, value) in value.table()?.all() {
                if !is_name(name.get_ref()) {
                    return Err(value
                        .fault("is not a valid name: use letters, digits, `-`, `_`, and dots between them"));
                }
                let endpoints = value.parse_list(|value| endpoint(value, is_endpoint))?;
                names.names.push((name.into_inner(), endpoints));
            }
        }
        names.folder = table.take("folder").map(|value| folder(value.table()?)).transpose()?;
        names.dns = table.take("dns").map(|value| dns(value.table()?)).transpose()?;
        names.nats = table.take("nats").map(|value| nats(value.table()?)).transpose()?;
        if names.nats.is_some() && names.folder.is_none() {
            return Err(table.fault("`nats` shares the entries of `folder`, which is missing"));
        }
        Ok(names)
    }

    /// Reads the file at a path.
    ///
    /// # Errors
    /// An error message with the path.
    pub fn read(path: &Path, is_endpoint: &dyn Fn(&str) -> bool) -> Result<Self, String> {
        let said = |what: &dyn std::fmt::Display| format!("names {}: {what}", path.display());
        let text = read_text(path).map_err(|error| said(&error))?;
        NamesConfig::parse(&text, is_endpoint).map_err(|fault| said(&fault))
    }
}

fn endpoint(value: Value<'_>, is_endpoint: &dyn Fn(&str) -> bool) -> Result<String, FileError> {
    let wrong = value.fault("must list endpoints of streams to connect to, such as \"tcp://host:port\"");
    let source = value.fault("has a source address (`;`), which endpoints of a name must not have");
    let text = value.text()?;
    match () {
        () if text.contains(';') && !text.starts_with("ipc://") => Err(source),
        () if is_endpoint(&text) && is_allowed_endpoint(&text, true) => Ok(text),
        () => Err(wrong),
    }
}

fn folder(mut table: Table<'_>) -> Result<Folder, FileError> {
    table.expect_only("`folder`", &["path", "tcp", "advertise"])?;
    let path = table.take("path").ok_or_else(|| table.fault("`folder` has no `path`"))?;
    let path = from_root(path)?;
    let advertise = table.take("advertise").map(Value::text).transpose()?;
    let tcp = table.take("tcp").map(|value| tcp(value, advertise.is_some())).transpose()?;
    if advertise.is_some() && tcp.is_none() {
        return Err(table.fault("`advertise` needs `tcp`, which is missing"));
    }
    Ok(Folder { path, tcp, advertise })
}

/// An endpoint that other hosts cannot connect to needs `advertise`, another host name for them.
fn tcp(value: Value<'_>, is_advertised: bool) -> Result<String, FileError> {
    let wrong = value.fault("must be an endpoint to bind: \"tcp://10.0.0.5:*\"");
    let nowhere =
        value.fault("is the wildcard address, to which other hosts cannot connect: it needs `advertise`");
    let text = value.text()?;
    let Some((host, port)) = text.strip_prefix("tcp://").and_then(|address| address.rsplit_once(':')) else {
        return Err(wrong);
    };
    if host.is_empty() || port != "*" && port.parse::<u16>().is_err() {
        return Err(wrong);
    }
    if matches!(host, "*" | "0.0.0.0" | "[::]") && !is_advertised {
        return Err(nowhere);
    }
    Ok(text)
}

fn dns(mut table: Table<'_>) -> Result<Dns, FileError> {
    table.expect_only("`dns`", &["suffix", "servers", "port", "both_families"])?;
    let suffix = table.take("suffix").ok_or_else(|| table.fault("`dns` has no `suffix`"))?;
    let wrong = suffix.fault("must be a domain: \"svc.cluster.local\"");
    let suffix = suffix.text()?.trim_matches('.').to_owned();
    if !is_name(&suffix) {
        return Err(wrong);
    }
    let mut dns = Dns { suffix, servers: Vec::new(), port: None, both_families: false };
    if let Some(value) = table.take("servers") {
        dns.servers = value.parse_list(server)?;
    }
    if let Some(value) = table.take("port") {
        let wrong = value.fault("must be a port from 1 to 65535");
        let port = u16::try_from(value.number()?).ok().filter(|port| *port != 0);
        dns.port = Some(port.ok_or(wrong)?);
    }
    if let Some(value) = table.take("both_families") {
        dns.both_families = value.flag()?;
    }
    Ok(dns)
}

fn server(value: Value<'_>) -> Result<SocketAddr, FileError> {
    let wrong =
        value.fault("must be an address with an optional port: \"10.0.0.10\", \"[2001:db8::1]:5353\"");
    let text = value.text()?;
    let plain = text.parse::<IpAddr>().map(|address| SocketAddr::new(address, DNS_PORT));
    plain.or_else(|_| text.parse()).map_err(|_| wrong)
}

fn nats(mut table: Table<'_>) -> Result<Nats, FileError> {
    let known = ["servers", "credentials", "ca", "bucket", "lease", "replicas"];
    table.expect_only("`nats`", &known)?;
    let servers = table.take("servers").ok_or_else(|| table.fault("`nats` has no `servers`"))?;
    let mut nats = Nats {
        servers: servers.parse_list(Value::text)?,
        credentials: table.take("credentials").map(from_root).transpose()?,
        ca: table.take("ca").map(from_root).transpose()?,
        bucket: "tautline-names".to_owned(),
        lease: LEASE,
        replicas: 1,
    };
    if let Some(value) = table.take("bucket") {
        let wrong = value.fault("must consist of letters, digits, `-` and `_`");
        nats.bucket = value.text()?;
        if !is_name(&nats.bucket) || nats.bucket.contains('.') {
            return Err(wrong);
        }
    }
    if let Some(value) = table.take("lease") {
        let wrong = value.fault("must be a number of seconds from 1 to 86400");
        let seconds = value.number()?;
        nats.lease = Duration::from_secs(seconds);
        if !(1..=86_400).contains(&seconds) {
            return Err(wrong);
        }
    }
    if let Some(value) = table.take("replicas") {
        let wrong = value.fault("must be from 1 to 5");
        nats.replicas = usize::try_from(value.number()?).unwrap_or(0);
        if !(1..=5).contains(&nats.replicas) {
            return Err(wrong);
        }
    }
    Ok(nats)
}

/// Reads an absolute path. Programs have different working directories, so a relative path is a
/// fault.
fn from_root(value: Value<'_>) -> Result<PathBuf, FileError> {
    let wrong = value.fault("must be an absolute path, because programs have different working directories");
    let path = PathBuf::from(value.text()?);
    if path.has_root() { Ok(path) } else { Err(wrong) }
}

/// Resolves names that are listed in the file itself.
pub(crate) struct FileResolver;

impl Resolver for FileResolver {
    fn title(&self) -> &'static str {
        "the names file"
    }

    fn is_of_this_host(&self) -> bool {
        true
    }

    fn look_up(&self, names: &NamesConfig, name: &str) -> Result<Resolution, String> {
        let found = names.names.iter().find(|(known, _)| known == name);
        let endpoints = found.map(|(_, endpoints)| endpoints.as_slice()).unwrap_or_default();
        let entry = |endpoint: &String| NameEntry { id: None, endpoints: vec![endpoint.clone()] };
        Ok(Resolution::new(endpoints.iter().map(entry).collect(), NEVER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<NamesConfig, FileError> {
        NamesConfig::parse(text, &|endpoint| endpoint.starts_with("tcp://"))
    }

    #[test]
    fn a_whole_file() {
        let names = parse(
            "[names]\norders = [\"tcp://a:1\", \"tcp://b:2\"]\nprices = \"tcp://c:3\"\n\
             [folder]\npath = \"/run/names\"\ntcp = \"tcp://*:*\"\nadvertise = \"here.example\"\n\
             [dns]\nsuffix = \"svc.local.\"\nservers = [\"10.0.0.1\", \"[::1]:5353\"]\nport = 5555\n\
             [nats]\nservers = \"nats://n:4222\"\nlease = 3\nreplicas = 3",
        )
        .unwrap();
        assert_eq!(names.names[0], ("orders".into(), vec!["tcp://a:1".into(), "tcp://b:2".into()]));
        assert_eq!(names.names[1].1, ["tcp://c:3"]);
        let dns = names.dns.unwrap();
        assert_eq!((dns.suffix.as_str(), dns.port), ("svc.local", Some(5555)));
        assert_eq!(dns.servers, ["10.0.0.1:53".parse().unwrap(), "[::1]:5353".parse().unwrap()]);
        let nats = names.nats.unwrap();
        assert_eq!(
            (nats.lease, nats.replicas, nats.bucket.as_str()),
            (Duration::from_secs(3), 3, "tautline-names")
        );
    }

    #[test]
    fn config_errors_name_their_line() {
        for (line, text) in [
            (2, "[names]\norders = \"udp://a:1\""),
            (2, "[names]\norders = [\"tcp://a:1\", \"tcp://10.0.0.1:0;b:2\"]"),
            (2, "[names]\norders = []"),
            (2, "[names]\n\"a b\" = \"tcp://a:1\""),
            (3, "[folder]\npath = \"/x\"\ntcp = \"tcp://*:5555\""),
            (3, "[folder]\npath = \"/x\"\ntcp = \"tcp://host\""),
            (2, "[folder]\npath = \"x\""),
            (1, "[folder]\ntcp = \"tcp://a:1\""),
            // The misspelled key, not the missing one.
            (2, "[folder]\npaht = \"/x\""),
            (2, "[dns]\nsufix = \"a\""),
            (2, "[nats]\nserver = \"nats://n\""),
            (1, "[folder]\npath = \"/x\"\nadvertise = \"here\""),
            (2, "[dns]\nsuffix = \"a b\""),
            (3, "[dns]\nsuffix = \"a\"\nservers = [\"localhost\"]"),
            (3, "[dns]\nsuffix = \"a\"\nport = 0"),
            (3, "[dns]\nsuffix = \"a\"\nports = 1"),
            (1, "[nats]\nservers = \"nats://n\""),
            (5, "[folder]\npath = \"/x\"\n[nats]\nservers = \"n\"\nlease = 0"),
            (1, "orders = \"tcp://a:1\""),
            (1, "names ="),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text}: {:?}", parse(text));
        }
    }
}
