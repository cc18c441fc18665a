//! Policies, lists of clients and wraps, by files.

use super::*;
use std::fs;
use std::time::Duration;
use tautline_core::SocketType;
use tautline_core::host::PlannedCall;

/// A temporary file.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let name = format!("tautline-{name}-{}", tautline_io::thread::process_id());
        let file = File(std::env::temp_dir().join(name));
        file.write(text);
        file
    }

    fn write(&self, text: &str) {
        fs::write(&self.0, text).unwrap();
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Longer than the time between two checks.
const LATER: Duration = Duration::from_secs(1);

fn connection_limit(guard: &Guard) -> Option<u64> {
    match &mut lock(&guard.inner).policy {
        LoadedPolicy::File(policy) => policy.age(LATER),
        source => unreachable!("{source:?}"),
    }
    guard.policy().unwrap().limits().connections
}

#[test]
fn a_file_with_a_fault_leaves_the_policy_as_it_was() {
    let file = File::new("policy", "[limits]\nconnections = 1\n");
    let guard = Guard::open(file.0.to_str().unwrap()).unwrap();
    assert_eq!(connection_limit(&guard), Some(1));
    file.write("[limits]\nconnections = many\n");
    assert_eq!(connection_limit(&guard), Some(1));
    file.write("[limits]\nconnections = 1000\n");
    assert_eq!(connection_limit(&guard), Some(1000));
    drop(file);
    assert_eq!(connection_limit(&guard), Some(1000), "it is gone");
}

#[test]
#[cfg(unix)]
fn files_that_are_pipes_are_refused() {
    let pipe = File::new("pipe", "");
    fs::remove_file(&pipe.0).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&pipe.0).status().unwrap().success());
    assert!(Guard::open(pipe.0.to_str().unwrap()).unwrap_err().contains("regular file"));
    assert!(Trust::open(&pipe.0).unwrap_err().contains("regular file"));
    // The same holds if a pipe replaces a policy file.
    let file = File::new("policy-pipe", "[limits]\nconnections = 1\n");
    let guard = Guard::open(file.0.to_str().unwrap()).unwrap();
    fs::rename(&pipe.0, &file.0).unwrap();
    assert_eq!(connection_limit(&guard), Some(1));
}

fn z85(key: u8) -> String {
    String::from_utf8(tautline_proto::z85::encode_key(&[key; 32]).to_vec()).unwrap()
}

fn has(trust: &Trust, key: u8) -> bool {
    trust.age(LATER);
    trust.owner(&[key; 32]).is_some()
}

#[test]
fn malformed_lines_of_clients_admit_no_client() {
    let file = File::new("clients", &z85(1));
    let trust = Trust::open(&file.0).unwrap();
    assert!(has(&trust, 1) && !has(&trust, 2));
    file.write(&format!("nonsense\n{}\n{}\n", z85(2), z85(3)));
    assert!(!has(&trust, 1) && has(&trust, 2) && has(&trust, 3));
    assert_eq!(trust.owner(b"short"), None);
    assert!(trust.owner(&[2; 32]).is_some_and(|owner| owner.starts_with("tautline-clients")));
    file.write("nonsense");
    assert!(!has(&trust, 1) && !has(&trust, 2));
}

#[test]
fn files_beside_it_do_not_undo_the_removal_of_a_key() {
    let folder = std::env::temp_dir().join(format!("tautline-beside-{}", tautline_io::thread::process_id()));
    fs::create_dir(&folder).unwrap();
    for key in [1, 2] {
        fs::write(folder.join(format!("{key}.pub")), z85(key)).unwrap();
    }
    let trust = Trust::open(&folder).unwrap();
    assert!(has(&trust, 1) && has(&trust, 2));
    fs::write(folder.join("README"), "Public keys of our clients.").unwrap();
    fs::write(folder.join("new.pub"), "half a ke").unwrap();
    fs::rename(folder.join("1.pub"), folder.join("1.pub~")).unwrap();
    assert!(!has(&trust, 1) && has(&trust, 2));
    fs::remove_dir_all(&folder).unwrap();
    assert!(!has(&trust, 2), "the list is gone");
    assert!(Trust::open(&folder).is_err());
}

#[cfg(unix)]
#[test]
fn newcomers_are_refused_if_the_list_of_clients_cannot_be_read() {
    let file = File::new("unreadable", "");
    fs::remove_file(&file.0).unwrap();
    fs::create_dir(&file.0).unwrap();
    let list = file.0.join("clients");
    fs::write(&list, z85(1)).unwrap();
    let trust = Trust::open(&list).unwrap();
    assert!(has(&trust, 1) && trust.is_current());
    // The list's parent is no longer a folder, so the state of the list is unknown.
    fs::remove_dir_all(&file.0).unwrap();
    file.write("");
    assert!(has(&trust, 1) && trust.is_current(), "it may pass");
    trust.age(trust::PATIENCE);
    assert!(has(&trust, 1) && !trust.is_current());
    fs::remove_file(&file.0).unwrap();
    fs::create_dir(&file.0).unwrap();
    fs::write(&list, z85(2)).unwrap();
    assert!(has(&trust, 2) && !has(&trust, 1) && trust.is_current());
    fs::remove_dir_all(&file.0).unwrap();
}

/// A temporary folder.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("tautline-{name}-{}", tautline_io::thread::process_id());
        let folder = Folder(std::env::temp_dir().join(name));
        let _ = fs::remove_dir_all(&folder.0);
        fs::create_dir(&folder.0).unwrap();
        folder
    }

    fn file(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Sets the options of a socket that asks for one of five kinds of security.
fn ask_for_security(call: &mut PlannedCall<'_>, security: usize) {
    let on = 1_i32.to_ne_bytes();
    match security {
        0 => Ok(()),
        1 => call.set_option(45, b"joe"),
        2 => call.set_option(44, &on),
        3 => call.set_option(50, &[7; 32]),
        _ => call.set_option(47, &on),
    }
    .unwrap();
}

/// A policy that wraps all binds and connects in `protocol`, with all required files. All other
/// rules are those of `strict`.
fn strict_and(folder: &Folder, protocol: &str) -> Policy {
    let z85 = |key| String::from_utf8(tautline_proto::z85::encode_key(&key).to_vec()).unwrap();
    let public = z85(tautline_proto::public_key(&tautline_proto::Secret::new([1; 32])));
    folder.file("key", &format!("public = \"{public}\"\nsecret = \"{}\"\n", z85([1; 32])));
    #[cfg(feature = "tls")]
    for (name, text) in [
        ("server.pem", tautline_testkit::certificates::SERVER),
        ("server-key.pem", tautline_testkit::certificates::SERVER_KEY),
        ("ca.pem", tautline_testkit::certificates::CA),
    ] {
        folder.file(name, text);
    }
    let wrap = match protocol {
        "tls" => "protocol = \"tls\"\ncertificate = \"DIR/server.pem\"\nkey = \"DIR/server-key.pem\"\ntrust = \"DIR/ca.pem\"\nservers = { \"*\" = \"localhost\" }\n".to_owned(),
        _ => format!("key = \"DIR/key\"\nservers = {{ \"*\" = \"{public}\" }}\n"),
    };
    let wrap = wrap.replace("DIR", folder.0.to_str().unwrap());
    let rule = "[[rules]]\ncall = [\"bind\", \"connect\"]\naction = \"wrap\"\nwrap = \"x\"\n";
    Policy::parse(&format!("extends = \"strict\"\n[wraps.x]\n{wrap}{rule}")).unwrap()
}

/// For each mechanism, wrap, transport and kind of socket: all outgoing data is encrypted, or the
/// call is refused.
#[test]
fn wrap_seals_or_refuses() {
    let folder = Folder::new("seals");
    let endpoints = [
        "tcp://127.0.0.1:5555",
        "ipc:///tmp/x",
        "ipc://@x",
        "vsock://2:5555",
        "ws://127.0.0.1:5555",
        "udp://127.0.0.1:5555",
        #[cfg(feature = "tls")]
        "tls+tcp://127.0.0.1:5555",
        #[cfg(feature = "tls")]
        "wss://127.0.0.1:5555",
    ];
    let (mut sealed, mut refused) = (0, 0);
    for protocol in ["curve", "tls"] {
        let policy = strict_and(&folder, protocol);
        for (endpoint, security) in
            endpoints.into_iter().flat_map(|endpoint| (0..5).map(move |n| (endpoint, n)))
        {
            for (socket_type, call) in [SocketType::Dealer, SocketType::Stream, SocketType::Dgram]
                .into_iter()
                .flat_map(|socket_type| [Call::Bind, Call::Connect].map(|call| (socket_type, call)))
            {
                let mut planned = PlannedCall::new(call == Call::Bind, endpoint, socket_type).unwrap();
                ask_for_security(&mut planned, security);
                let (_, allowed) = judge(&policy, "x", &planned.request(), socket_type.name());
                let Ok(allowed) = allowed else {
                    refused += 1;
                    continue;
                };
                let is_tls = allowed.permission.is_wrapped_in_tls()
                    || endpoint.starts_with("tls")
                    || endpoint.starts_with("wss");
                let is_curve = allowed.permission.mechanism() == "CURVE"
                    && socket_type != SocketType::Stream
                    && !endpoint.starts_with("udp");
                let case = format!("{call:?} {endpoint} {socket_type:?} in {protocol}, {security}");
                assert!(is_tls || is_curve, "{case} goes out in the clear");
                // CURVE does not carry a user name and a password.
                assert!(is_tls || !matches!(security, 1 | 2), "{case}");
                sealed += 1;
            }
        }
    }
    assert!(sealed > 20 && refused > 100, "{sealed} sealed, {refused} refused");
}

#[test]
fn wrap_that_cannot_be_put_on_is_foreseen() {
    let folder = Folder::new("foreseen");
    let policy = strict_and(&folder, "curve");
    let foreseen = |endpoint, mechanism| {
        let (call, socket_type, program) = (Call::Connect, Some(SocketType::Push), "x");
        foresee(&policy, &Foreseen { call, endpoint, socket_type, program, mechanism })
    };
    assert_eq!(foreseen("tcp://127.0.0.1:1", "NULL").unwrap().fault, None);
    assert!(foreseen("tcp://127.0.0.1:1", "PLAIN").unwrap().fault.unwrap().contains("PLAIN"));
    assert!(foreseen("tcp://127.0.0.1:1", "CURVE").unwrap().is_secure);
    assert_eq!(foreseen("tcp://*:1", "NULL").unwrap_err(), Error::Invalid);
    let other = Policy::parse(
        "[wraps.x]\nservers = { \"tcp://a:*\" = \"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7\" }\n[[rules]]\n\
         call = \"connect\"\naction = \"wrap\"\nwrap = \"x\"\n",
    );
    let (call, endpoint, program, mechanism) = (Call::Connect, "tcp://b:1", "x", "NULL");
    let asked = Foreseen { call, endpoint, socket_type: None, program, mechanism };
    assert!(foresee(&other.unwrap(), &asked).unwrap().fault.unwrap().contains("no key for this endpoint"));
}
