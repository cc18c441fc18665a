//! Policies.

use tautline_core::host::AllowedTopics;
use tautline_policy::{Call, Policy, PolicyQuery};

/// The input is the text of a policy. A valid policy answers questions.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Policy::parse(text) {
        Err(fault) => assert!(fault.line <= text.lines().count() + 1 && !fault.what.is_empty()),
        Ok(policy) => {
            for call in [Call::Bind, Call::Connect, Call::Accept] {
                for endpoint in ["tcp://127.0.0.1:5555", "ipc:///run/x", "udp://239.0.0.1:1"] {
                    let question = PolicyQuery::new(call, "PUB", endpoint);
                    let decision = policy.decide(&question);
                    if let Some(wrap) = &decision.wrap {
                        assert!(policy.wrap(wrap).is_some(), "a rule names only wraps of the file");
                    }
                    if let Some(topics) = policy.topics(&question) {
                        let topics = AllowedTopics::new(topics.prefixes, &topics.rule);
                        assert!(topics.within(b"").all(|prefix| topics.allows(prefix)));
                    }
                }
            }
        }
    }
}

/// A file with every table, and a file with a fault.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        b"extends = \"strict\"\n[limits]\nconnections = 1\nmessage_bytes = 0x1000\n".to_vec(),
        b"[[rules]]\nname = \"x\"\ncall = [\"bind\", \"connect\"]\naction = \"wrap\"\nwrap = \"x\"\n\
          endpoint = \"tcp://*\"\ntype = \"PUB\"\nscope = \"public\"\naddress = \"10.0.0.0/8\"\n\
          [wraps.x]\nkey = \"/k\"\nclients = \"/c\"\nservers = { \"tcp://*\" = \"/s\" }\n"
            .to_vec(),
        b"[wraps.t]\nprotocol = \"tls\"\ncertificate = \"/c\"\nkey = \"/k\"\ntrust = \"system\"\n".to_vec(),
        b"[[topics]]\nuser_id = \"alice\"\ntype = \"PUB\"\nsubscribe = [\"a/\", \"b/\"]\n".to_vec(),
        b"[[rules]]\ncall = \"accept\"\nuser = 1000\nmechanism = \"CURVE\"\naction = \"refuse\"\n".to_vec(),
        b"[[rules]]\nactoin = \"drop\"\n".to_vec(),
    ]
}
