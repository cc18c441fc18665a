//! Tests policies with texts as users write them.

use std::net::IpAddr;

use tautline_policy::{Action, BUILT_IN, Call, GrantedTopics, Policy, PolicyDecision, PolicyQuery, TlsTrust};

fn policy(text: &str) -> Policy {
    Policy::parse(text).unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

fn fault(text: &str) -> String {
    Policy::parse(text).expect_err(text).to_string()
}

fn at(address: &str) -> Option<IpAddr> {
    Some(address.parse().unwrap())
}

fn bind(endpoint: &str, address: Option<IpAddr>) -> PolicyQuery<'_> {
    PolicyQuery { address, ..PolicyQuery::new(Call::Bind, "PUB", endpoint) }
}

fn action(policy: &Policy, question: &PolicyQuery<'_>) -> Action {
    policy.decide(question).action
}

#[test]
fn without_a_rule_all_is_allowed() {
    let verdict = policy("").decide(&bind("tcp://*:1", at("0.0.0.0")));
    assert_eq!(verdict, PolicyDecision::default());
    assert_eq!(verdict.action, Action::Allow);
}

#[test]
fn the_first_rule_that_fits_counts() {
    let policy = policy(
        r#"
        [[rules]]
        name = "metrics"
        call = "bind"
        endpoint = "tcp://*:9100"
        program = ["python3*", "node"]
        action = "allow"

        [[rules]]
        address = ["0.0.0.0", "10.0.0.0/8"]
        type = ["PUB", "XPUB"]
        action = "refuse"
        "#,
    );
    let mut question = bind("tcp://*:9100", at("0.0.0.0"));
    assert_eq!(policy.decide(&question).rule.as_deref(), Some("rule 2"));
    question.program = "python3.11";
    let verdict = policy.decide(&question);
    assert_eq!((verdict.action, verdict.rule.as_deref()), (Action::Allow, Some("metrics")));
    question.endpoint = "tcp://*:9101";
    assert_eq!(action(&policy, &question), Action::Refuse);
    question.socket_type = "SUB";
    assert_eq!(action(&policy, &question), Action::Allow);
    (question.socket_type, question.address) = ("XPUB", at("10.9.9.9"));
    assert_eq!(action(&policy, &question), Action::Refuse);
    question.address = None;
    assert_eq!(action(&policy, &question), Action::Allow, "it has no address");
}

#[test]
fn peers_are_told_apart_by_their_users() {
    let policy = policy(
        r#"
        [[rules]]
        call = "accept"
        endpoint = "ipc://*"
        user = [1000, 1001]
        action = "allow"
        [[rules]]
        call = "accept"
        user_id = "worker-*"
        action = "allow"
        [[rules]]
        call = "accept"
        action = "refuse"
        "#,
    );
    assert!(policy.depends_on_peers());
    let mut question = PolicyQuery::new(Call::Accept, "ROUTER", "ipc:///run/x");
    assert_eq!(action(&policy, &question), Action::Refuse);
    question.user = Some(1001);
    assert_eq!(action(&policy, &question), Action::Allow);
    (question.endpoint, question.user, question.user_id) = ("tcp://*:1", None, "worker-7");
    assert_eq!(action(&policy, &question), Action::Allow);
    assert_eq!(action(&policy, &bind("tcp://*:1", at("0.0.0.0"))), Action::Allow, "it is about peers");
}

#[test]
fn ready_made_policies_keep_what_they_promise() {
    for (name, text) in BUILT_IN {
        policy(text);
        policy(&format!("extends = \"{name}\""));
    }
    let [audit, loopback, strict] = BUILT_IN.map(|(name, _)| Policy::built_in(name).unwrap());
    let open = bind("tcp://*:5555", at("0.0.0.0"));
    let secure = PolicyQuery { secure: true, mechanism: "CURVE", ..open.clone() };
    let near = bind("tcp://127.0.0.1:5555", at("127.0.0.1"));
    let shared = bind("ipc:///tmp/x", None);
    let private = PolicyQuery { private: true, ..shared.clone() };
    let inproc = bind("inproc://x", None);
    let vsock = bind("vsock://*:5555", None);
    let multicast = bind("udp://239.1.1.1:5555", at("239.1.1.1"));
    let abstract_name = bind("ipc://@x", None);
    // Peers of our user, of root, and of another user.
    let ours =
        PolicyQuery { private: true, user: Some(7), ..PolicyQuery::new(Call::Accept, "SUB", "ipc://@x") };
    let roots = PolicyQuery { private: false, user: Some(0), ..ours.clone() };
    let others = PolicyQuery { private: false, user: Some(8), ..ours.clone() };
    let connect = PolicyQuery::new(Call::Connect, "SUB", "tcp://example.org:5555");
    for (question, expected) in [
        (&open, [Action::Warn, Action::Refuse, Action::Refuse]),
        (&secure, [Action::Allow, Action::Allow, Action::Allow]),
        (&near, [Action::Allow, Action::Allow, Action::Refuse]),
        (&shared, [Action::Warn, Action::Allow, Action::Allow]),
        (&private, [Action::Allow, Action::Allow, Action::Allow]),
        (&inproc, [Action::Allow, Action::Allow, Action::Allow]),
        (&connect, [Action::Allow, Action::Allow, Action::Refuse]),
        (&vsock, [Action::Warn, Action::Refuse, Action::Refuse]),
        (&multicast, [Action::Warn, Action::Refuse, Action::Refuse]),
        (&abstract_name, [Action::Allow, Action::Allow, Action::Allow]),
        (&ours, [Action::Allow, Action::Allow, Action::Allow]),
        (&roots, [Action::Allow, Action::Allow, Action::Refuse]),
        (&others, [Action::Warn, Action::Refuse, Action::Refuse]),
    ] {
        assert_eq!(
            [&audit, &loopback, &strict].map(|policy| action(policy, question)),
            expected,
            "{question:?}"
        );
    }
    assert_eq!(loopback.decide(&shared).mode, Some(0o600), "others can not reach it");
    assert_eq!(loopback.decide(&open).rule.as_deref(), Some("loopback:open-bind"));
}

#[test]
fn own_rules_come_before_those_that_are_extended() {
    let policy = policy(
        "extends = \"strict\"\n[[rules]]\nname = \"metrics\"\nendpoint = \"tcp://*:9100\"\naction = \"allow\"\n",
    );
    assert_eq!(action(&policy, &bind("tcp://*:9100", at("0.0.0.0"))), Action::Allow);
    assert_eq!(action(&policy, &bind("tcp://*:9101", at("0.0.0.0"))), Action::Refuse);
}

#[test]
fn wraps_name_keys_by_endpoint() {
    let key = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
    let text = format!(
        r#"
        [wraps.inside]
        key = "/etc/tautline/host.key"
        clients = "/etc/tautline/clients"
        servers = {{ "tcp://orders:*" = "{key}", "tcp://10.*" = "/etc/tautline/servers/ten.pub" }}
        [[rules]]
        call = ["bind", "connect"]
        endpoint = "tcp://*"
        action = "wrap"
        wrap = "inside"
        "#
    );
    let policy = policy(&text);
    let verdict = policy.decide(&bind("tcp://*:1", at("0.0.0.0")));
    assert_eq!((verdict.action, verdict.wrap.as_deref()), (Action::Wrap, Some("inside")));
    let wrap = policy.wrap("inside").unwrap();
    assert_eq!(wrap.servers().count(), 2);
    assert!(format!("{:?}", wrap.server("tcp://orders:5555")).contains("Text"));
    assert!(format!("{:?}", wrap.server("tcp://10.1.1.1:5555")).contains("ten.pub"));
    assert_eq!(wrap.server("tcp://elsewhere:1"), None);
    assert!(policy.wrap("outside").is_none());
}

#[test]
fn rules_judge_the_destination_of_an_endpoint() {
    let policy = policy(
        r#"
        [[rules]]
        call = "connect"
        endpoint = "tcp://10.0.0.9:*"
        action = "allow"
        [[rules]]
        call = "connect"
        action = "refuse"
        "#,
    );
    let of = |endpoint| action(&policy, &PolicyQuery::new(Call::Connect, "PUSH", endpoint));
    assert_eq!(of("tcp://10.0.0.9:1"), Action::Allow);
    assert_eq!(of("tcp://8.8.8.8:1;10.0.0.9:1"), Action::Allow);
    assert_eq!(of("tcp://10.0.0.9:1;8.8.8.8:5555"), Action::Refuse);
}

#[test]
fn topics_are_granted_together() {
    let policy = policy(
        r#"
        [[topics]]
        name = "prices"
        endpoint = "tcp://*:5556"
        user_id = ["alice", "trader-*"]
        subscribe = ["prices/", "status"]
        [[topics]]
        endpoint = "tcp://*:5556"
        subscribe = "public/"
        publish = "notes/"
        [[topics]]
        type = "SUB"
        user = 1000
        program = "reader"
        publish = []
        "#,
    );
    assert!(policy.has_topics());
    let granted = |topics: &[&str], rule: &str| {
        let prefixes = topics.iter().map(|topic| topic.as_bytes().to_vec()).collect();
        Some(GrantedTopics { prefixes, rule: rule.to_owned() })
    };
    let mut peer = PolicyQuery::new(Call::Accept, "PUB", "tcp://*:5556");
    assert_eq!(policy.topics(&peer), granted(&["public/"], "prices"), "it is nobody");
    peer.user_id = "trader-7";
    assert_eq!(policy.topics(&peer), granted(&["prices/", "status", "public/"], "prices"));
    peer.socket_type = "XSUB";
    assert_eq!(policy.topics(&peer), granted(&["notes/"], "topics 2"));
    peer.socket_type = "ROUTER";
    assert_eq!(policy.topics(&peer), None, "it has no topics");
    let mut other = PolicyQuery::new(Call::Accept, "SUB", "ipc:///run/x");
    assert_eq!(policy.topics(&other), None, "nothing is about it");
    other.program = "reader";
    assert_eq!(policy.topics(&other), granted(&[], "topics 3"), "nobody of that number has come");
}

#[test]
fn a_server_is_known_by_its_file() {
    let policy = policy("[wraps.x]\nservers = { \"tcp://a:*\" = \"/keys/orders.v2.pub\" }\n");
    let wrap = policy.wrap("x").unwrap();
    assert_eq!(
        (wrap.server_id("tcp://a:1"), wrap.server_id("tcp://b:1")),
        ("orders.v2".into(), String::new())
    );
}

#[test]
fn documented_policies_have_no_fault() {
    let page = [
        include_str!("../../../docs/operate/policy.md"),
        include_str!("../../../docs/operate/policy-users.md"),
        include_str!("../../../docs/reference/policy-file.md"),
    ]
    .concat();
    let blocks: Vec<_> =
        page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 3);
    for text in blocks {
        policy(text);
    }
    let limits = page.split("| `").filter_map(|rest| rest.split('`').next());
    for limit in [
        "connections",
        "connections_per_address",
        "handshakes",
        "handshakes_per_second",
        "handshake_bytes",
        "message_bytes",
        "subscription_bytes_per_peer",
        "unread_bytes_per_peer",
    ] {
        assert!(limits.clone().any(|name| name == limit), "{limit}");
        policy(&format!("[limits]\n{limit} = 1\n"));
    }
}

#[test]
fn wraps_name_certificates() {
    let policy = policy(
        r#"
        [wraps.inside]
        protocol = "tls"
        certificate = "/etc/tautline/host.pem"
        key = "/etc/tautline/host-key.pem"
        trust = "/etc/tautline/ca.pem"
        clients = "/etc/tautline/clients"
        servers = { "tcp://10.*" = "orders.example.org" }
        [wraps.outside]
        protocol = "tls"
        trust = "system"
        [wraps.curve]
        protocol = "curve"
        key = "/etc/tautline/host.key"
        "#,
    );
    let wrap = policy.wrap("inside").unwrap().tls.as_ref().unwrap();
    assert_eq!(wrap.server("tcp://10.1.1.1:5555"), Some("orders.example.org"));
    assert_eq!(wrap.server("tcp://orders:5555"), None);
    let paths: Vec<_> = wrap.paths().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(
        paths,
        [
            "/etc/tautline/host.pem",
            "/etc/tautline/host-key.pem",
            "/etc/tautline/ca.pem",
            "/etc/tautline/clients"
        ]
    );
    let outside = policy.wrap("outside").unwrap().tls.as_ref().unwrap();
    assert_eq!((&outside.trust, outside.paths().count()), (&Some(TlsTrust::System), 0));
    assert_eq!(policy.wrap("curve").unwrap().tls, None);
}

#[test]
fn limits_are_numbers() {
    let policy = policy("[limits]\nconnections = 10_000\nmessage_bytes = 0x100000\n");
    let limits = policy.limits();
    assert_eq!((limits.connections, limits.message_bytes), (Some(10_000), Some(1 << 20)));
    assert_eq!(limits.handshakes_per_second, None);
}

#[test]
fn faults_name_their_line() {
    for (text, line, what) in [
        ("x = ", 1, ""),
        ("\n\nextend = \"audit\"", 3, "unknown key `extend`"),
        ("extends = \"lax\"", 1, "must be one of: audit, loopback, strict"),
        ("extends = 3", 1, "must be a text"),
        ("[[rules]]\nname = \"a\"\n", 1, "`a` has no `action`"),
        ("[[rules]]\naction = \"drop\"", 2, "must be one of: allow, warn, refuse, wrap"),
        ("[[rules]]\naction = \"warn\"\ncall = []", 3, "must not be empty"),
        (
            "[[rules]]\naction = \"warn\"\ncall = [\"bind\",\n\"listen\"]",
            4,
            "must be one of: bind, connect, accept",
        ),
        ("[[rules]]\naction = \"warn\"\naddress = \"10.0.0.1/8\"", 3, "must be an address"),
        (
            "[[rules]]\naction = \"allow\"\nendpoint = \"tcp://10.0.0.*\"",
            3,
            "`endpoint` has a `*` in an address",
        ),
        ("[[rules]]\naction = \"allow\"\nendpoint = [\"*\",\n\"tcp://[fd00:*\"]", 4, "use `address`"),
        ("[[topics]]\nsubscribe = \"a\"\nendpoint = \"tcp://10.*:5556\"", 3, "use `address`"),
        ("[[rules]]\naction = \"warn\"\nendpoint = \"tcp://*;*\"", 3, "has a source address"),
        ("[[rules]]\naction = \"warn\"\ntype = \"pub\"", 3, "must be one of: PAIR, PUB"),
        ("[[rules]]\naction = \"warn\"\nsecure = \"no\"", 3, "must be true or false"),
        ("[[rules]]\naction = \"wrap\"", 1, "need each other"),
        ("[[rules]]\naction = \"wrap\"\nwrap = \"x\"", 3, "does not name a table of `wraps`"),
        ("[[rules]]\naction = \"refuse\"\nuser = 3", 1, "the rule needs call = \"accept\""),
        ("[[rules]]\naction = \"allow\"\nmode = \"0600\"", 1, "the rule needs call = \"bind\""),
        ("[[rules]]\naction = \"allow\"\ncall = \"bind\"\nmode = \"0999\"", 4, "as chmod(1) takes them"),
        ("[[rules]]\naction = \"allow\"\ncall = \"bind\"\nmode = \"7777\"", 4, "as chmod(1) takes them"),
        ("[[rules]]\naction = \"allow\"\ncolour = 3", 3, "unknown key `colour`"),
        ("rules = 3", 1, "must be a table"),
        ("[limits]\nconnections = -1", 2, "must be an integer from 0"),
        ("[limits]\nconnections = 0", 2, "must be at least 1: omit it for no limit"),
        ("[limits]\nconnections = 1\nmessage_bytes = 0", 3, "must be at least 1: omit it for no limit"),
        ("[limits]\nconnexions = 1", 2, "unknown key `connexions`"),
        ("[wraps.x]\n", 1, "needs `key` (for servers)"),
        ("[wraps.x]\nkey = \"host.key\"", 2, "must be an absolute path"),
        ("[wraps.x]\nservers = { \"tcp://*\" = \"short\" }", 2, "must be a public key of 40 characters"),
        ("wraps = 1", 1, "must be a table"),
        ("[[topics]]\nuser_id = \"a\"", 1, "needs `subscribe` (for peers of PUB and XPUB) or `publish`"),
        ("[[topics]]\ntype = \"SUB\"\nsubscribe = \"a\"", 1, "peers of these socket types do not subscribe"),
        ("[[topics]]\ntype = \"ROUTER\"", 2, "must be one of: PUB, XPUB, SUB, XSUB"),
        ("[[topics]]\nsubscribe = [\"a\",\n3]", 3, "must be a text"),
        ("[[topics]]\nsubscribes = \"a\"", 2, "unknown key `subscribes`"),
        ("[[rules]]\nactoin = \"allow\"", 2, "unknown key `actoin`: a rule has"),
        ("[wraps.x]\nkeys = \"/k\"", 2, "unknown key `keys`: a wrap has"),
        ("[wraps.x]\nprotocol = \"tls\"\ncert = \"/c\"", 3, "unknown key `cert`: a wrap in TLS has"),
        ("[[topics]]\nsubscribe = \"a\"\naction = \"allow\"", 3, "unknown key `action`"),
        ("x = \"a\n", 1, ""),
        ("extends = audit", 1, ""),
        ("extends = \"audit\"\nextends = \"audit\"", 2, ""),
        ("[limits]\n[limits]", 2, ""),
        ("[limits]\nconnections = 99999999999999999999", 2, ""),
        ("[limits]\nconnections = 1.5", 2, "must be an integer from 0"),
        ("[[rules]]\naction = \"allow\"\ncall = [\"bind\"", 3, ""),
        ("[wraps.x]\nprotocol = \"ssl\"", 2, "must be one of: curve, tls"),
        ("[wraps.x]\nprotocol = \"tls\"", 1, "needs `certificate` and `key` (for servers)"),
        ("[wraps.x]\nprotocol = \"tls\"\ncertificate = \"/c\"", 1, "no `key`"),
        ("[wraps.x]\nprotocol = \"tls\"\nkey = \"/k\"", 1, "no `certificate`"),
        ("[wraps.x]\nprotocol = \"tls\"\ntrust = \"ca.pem\"", 3, "must be \"system\" or an absolute path"),
        (
            "[wraps.x]\nprotocol = \"tls\"\ntrust = \"system\"\nclients = \"/c\"",
            1,
            "has `clients`, which only servers use",
        ),
        (
            "[wraps.x]\nprotocol = \"tls\"\ntrust = \"system\"\nservers = { \"tcp://*\" = \"\" }",
            4,
            "must be the name in the server's certificate",
        ),
        (
            "[wraps.x]\nprotocol = \"tls\"\ntrust = \"system\"\nmode = \"0600\"",
            4,
            "unknown key `mode`: a wrap in TLS has",
        ),
    ] {
        let found = fault(text);
        let expected = format!("line {line}: ");
        assert!(
            found.starts_with(&expected) && found.contains(what),
            "{text}\n{found}, wanted {expected}{what}"
        );
    }
}

#[test]
fn no_text_is_too_strange() {
    let whole = "extends = \"strict\"\n[limits]\nconnections = 1\n[wraps.x]\nkey = \"/k\"\n[[rules]]\naction = \
                 \"wrap\"\ncall = \"bind\"\nwrap = \"x\"\n";
    policy(whole);
    for end in 0..whole.len() {
        let _ = Policy::parse(&whole[..end]);
        let _ = Policy::parse(&whole.replace(&whole[end..=end], "\u{0}"));
        let _ = Policy::parse(&format!("{}[[{}", &whole[..end], &whole[end..]));
    }
    let deep = format!("x = {}", "[".repeat(100_000));
    assert!(fault(&deep).starts_with("line 1: "));
}
