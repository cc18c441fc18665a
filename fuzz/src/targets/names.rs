//! Names files.

use tautline_names::{NamesConfig, RESOLVERS, is_name};

/// The input is the text of a file.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match NamesConfig::parse(text, &|endpoint| endpoint.starts_with("tcp://")) {
        Err(fault) => assert!(fault.line <= text.lines().count() + 1 && !fault.what.is_empty()),
        Ok(names) => {
            for (name, endpoints) in &names.names {
                assert!(is_name(name) && !endpoints.is_empty());
                // The file itself is the first resolver.
                let entries = RESOLVERS[0].resolve(&names, name).unwrap().entries;
                assert!(
                    entries.iter().flat_map(|entry| &entry.endpoints).all(|one| one.starts_with("tcp://"))
                );
            }
        }
    }
}

/// A file with every table, and a file with a fault.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        b"[names]\norders = [\"tcp://a:1\", \"tcp://b:2\"]\nprices = \"tcp://c:3\"\n".to_vec(),
        b"[folder]\npath = \"/run/names\"\ntcp = \"tcp://*:*\"\nadvertise = \"here.example\"\n".to_vec(),
        b"[dns]\nsuffix = \"svc.local\"\nservers = [\"10.0.0.1\", \"[::1]:5353\"]\nport = 5555\n".to_vec(),
        b"[folder]\npath = \"/x\"\n[nats]\nservers = \"nats://n:4222\"\nlease = 3\nreplicas = 3\n".to_vec(),
        b"[names]\norders = \"udp://a:1\"\n".to_vec(),
    ]
}
