use super::*;
use simple_dns::rdata::{A, AAAA, SRV};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord};
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};

/// Answer of a test server to a question for this name, of this kind.
type Says = fn(&str, QTYPE) -> (RCODE, Vec<(u32, RData<'static>)>);

fn answer(question: &[u8], says: Says) -> Vec<u8> {
    let asked = Packet::parse(question).unwrap();
    let about = &asked.questions[0];
    let (code, records) = says(&about.qname.to_string(), about.qtype);
    let mut reply = Packet::new_reply(asked.id());
    *reply.rcode_mut() = code;
    reply.questions.push(about.clone());
    for (ttl, data) in records {
        reply.answers.push(ResourceRecord::new(about.qname.clone(), CLASS::IN, ttl, data));
    }
    reply.build_bytes_vec().unwrap()
}

/// Starts a server that precedes each answer with garbage. Answers that are too long for a datagram
/// go by TCP.
fn server(says: Says) -> SocketAddr {
    // Another program may use the port for TCP.
    let (socket, listener, at) = std::iter::repeat_with(|| UdpSocket::bind("127.0.0.1:0").unwrap())
        .find_map(|socket| {
            let at = socket.local_addr().unwrap();
            TcpListener::bind(at).ok().map(|listener| (socket, listener, at))
        })
        .unwrap();
    std::thread::spawn(move || {
        let mut question = [0; 512];
        while let Ok((length, asker)) = socket.recv_from(&mut question) {
            let mut whole = answer(&question[..length], says);
            let mut strange = whole.clone();
            strange[0] ^= 1;
            socket.send_to(b"?", asker).unwrap();
            socket.send_to(&strange, asker).unwrap();
            if whole.len() > 512 {
                whole = answer(&question[..length], |_, _| (RCODE::NoError, Vec::new()));
                whole[2] |= (PacketFlag::TRUNCATION.bits() >> 8) as u8;
                socket.send_to(&whole, asker).unwrap();
                let (mut stream, _) = listener.accept().unwrap();
                let mut length = [0; 2];
                stream.read_exact(&mut length).unwrap();
                let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
                stream.read_exact(&mut question).unwrap();
                let whole = answer(&question, says);
                stream.write_all(&(whole.len() as u16).to_be_bytes()).unwrap();
                stream.write_all(&whole).unwrap();
                continue;
            }
            socket.send_to(&whole, asker).unwrap();
        }
    });
    at
}

fn resolve(says: Says, port: Option<u16>) -> Result<Resolution, String> {
    let dns = Dns { suffix: "test".into(), servers: vec![server(says)], port, both_families: false };
    DnsResolver::new().resolve(&NamesConfig { dns: Some(dns), ..NamesConfig::default() }, "orders")
}

fn a(last: u8) -> RData<'static> {
    RData::A(A { address: Ipv4Addr::new(10, 0, 0, last).into() })
}

fn srv(priority: u16, port: u16, target: &'static str) -> RData<'static> {
    RData::SRV(SRV { priority, weight: 0, port, target: Name::new_unchecked(target) })
}

fn endpoints(answer: &Resolution) -> Vec<&str> {
    answer.entries.iter().flat_map(|entry| &entry.endpoints).map(String::as_str).collect()
}

#[test]
fn addresses_with_the_port_of_the_file() {
    let answer = resolve(
        |name, kind| match (name, kind) {
            ("orders.test", QTYPE::TYPE(TYPE::A)) => (RCODE::NoError, vec![(30, a(2)), (7, a(1))]),
            _ => (RCODE::NameError, Vec::new()),
        },
        Some(5555),
    )
    .unwrap();
    assert_eq!(endpoints(&answer), ["tcp://10.0.0.1:5555", "tcp://10.0.0.2:5555"]);
    assert_eq!(answer.fresh_for, Duration::from_secs(7));
}

#[test]
fn services_with_their_ports_and_the_first_priority() {
    let answer = resolve(
        |name, kind| match (name, kind) {
            ("_orders._tcp.test", QTYPE::TYPE(TYPE::SRV)) => (
                RCODE::NoError,
                vec![
                    (60, srv(1, 7001, "a.test")),
                    (60, srv(1, 7002, "six.test")),
                    (60, srv(2, 7003, "a.test")),
                ],
            ),
            ("a.test", QTYPE::TYPE(TYPE::A)) => (RCODE::NoError, vec![(0, a(1))]),
            ("six.test", QTYPE::TYPE(TYPE::AAAA)) => {
                (RCODE::NoError, vec![(9, RData::AAAA(AAAA { address: Ipv6Addr::LOCALHOST.into() }))])
            }
            _ => (RCODE::NoError, Vec::new()),
        },
        Some(1),
    )
    .unwrap();
    assert_eq!(endpoints(&answer), ["tcp://10.0.0.1:7001", "tcp://[::1]:7002"]);
    assert_eq!(answer.fresh_for, LEAST);
}

#[test]
fn an_answer_that_does_not_fit_comes_by_tcp() {
    let answer = resolve(
        |name, kind| match (name, kind) {
            ("orders.test", QTYPE::TYPE(TYPE::A)) => {
                (RCODE::NoError, (1..=100).map(|last| (60, a(last))).collect())
            }
            _ => (RCODE::NameError, Vec::new()),
        },
        Some(1),
    )
    .unwrap();
    assert_eq!(answer.entries.len(), 100);
}

#[test]
fn nothing_is_an_answer_and_trouble_is_none() {
    let nothing = resolve(|_, _| (RCODE::NameError, Vec::new()), Some(1)).unwrap();
    assert_eq!((nothing.entries, nothing.fresh_for), (Vec::new(), NOTHING));
    let trouble = resolve(|_, _| (RCODE::ServerFailure, Vec::new()), Some(1)).unwrap_err();
    assert!(trouble.ends_with("ServerFailure"), "{trouble}");
}

#[test]
fn answers_claiming_too_many_records_are_ignored() {
    let mut message = vec![0; 40];
    message[6..8].copy_from_slice(&[0xff, 0xff]);
    assert!(query::parse(&message).is_none());
    assert!(query::parse(&[0; 11]).is_none());
    // A name that points to itself.
    let mut circle = vec![0, 0, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12];
    circle.extend([0, 1, 0, 1]);
    assert!(query::parse(&circle).is_none());
}

#[test]
fn the_servers_of_the_system() {
    let of = |text| of_system(text).iter().map(SocketAddr::to_string).collect::<Vec<_>>();
    let text = "# c\n;nameserver 10.0.0.9\nsearch x\nnameserver 10.0.0.1 # mine\nNAMESERVER 10.0.0.8\n\
                nameserver  fe80::1%1\nnameserver\t::1\t\noptions ndots:5\nnameserver 10.0.0.4";
    assert_eq!(of(text), ["10.0.0.1:53", "[fe80::1%1]:53", "[::1]:53"]);
    assert_eq!(of("nameserver fe80::1%../x\nnameservers 10.0.0.1"), ["127.0.0.1:53"]);
    #[cfg(target_os = "linux")]
    assert_eq!(of("nameserver fe80::1%lo"), ["[fe80::1%1]:53"]);
}

#[test]
fn questions_about_one_name_are_bounded() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let most = 2 * MOST_SERVERS as u32 + 1;
    let answer = resolve(
        |_, kind| {
            ASKED.fetch_add(1, Ordering::SeqCst);
            let target = |number: usize| &*Box::leak(format!("t{number}.test").into_boxed_str());
            let targets = |count| (0..count).map(|number| (0, srv(0, 5555, target(number)))).collect();
            match kind {
                QTYPE::TYPE(TYPE::SRV) => (RCODE::NoError, targets(1200)),
                _ => (RCODE::NameError, Vec::new()),
            }
        },
        None,
    )
    .unwrap();
    assert_eq!(endpoints(&answer), [""; 0]);
    // The first query is sent by UDP and by TCP.
    let asked = ASKED.load(Ordering::SeqCst) - 1;
    assert!(asked <= most, "{asked}");
    assert!(answer.fresh_for >= EACH_QUESTION * asked, "{:?}", answer.fresh_for);
}

#[test]
fn a_target_with_two_ports_is_asked_for_once() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let answer = resolve(
        |_, kind| match kind {
            QTYPE::TYPE(TYPE::SRV) => {
                (RCODE::NoError, vec![(60, srv(0, 7001, "a.test")), (60, srv(0, 7002, "a.test"))])
            }
            QTYPE::TYPE(TYPE::A) => {
                ASKED.fetch_add(1, Ordering::SeqCst);
                (RCODE::NoError, vec![(60, a(1))])
            }
            _ => (RCODE::NameError, Vec::new()),
        },
        None,
    )
    .unwrap();
    assert_eq!(endpoints(&answer), ["tcp://10.0.0.1:7001", "tcp://10.0.0.1:7002"]);
    assert_eq!(ASKED.load(Ordering::SeqCst), 1);
}

#[test]
fn failed_target_lookup_keeps_the_other_targets() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static HAS_TROUBLE: AtomicBool = AtomicBool::new(true);
    let says: Says = |name, kind| match (name, kind) {
        ("_orders._tcp.test", QTYPE::TYPE(TYPE::SRV)) => {
            (RCODE::NoError, vec![(60, srv(0, 7001, "a.test")), (60, srv(0, 7002, "b.test"))])
        }
        ("a.test", QTYPE::TYPE(TYPE::A)) => (RCODE::NoError, vec![(60, a(1))]),
        ("b.test", QTYPE::TYPE(TYPE::A)) if !HAS_TROUBLE.load(Ordering::SeqCst) => {
            (RCODE::NoError, vec![(60, a(2))])
        }
        ("b.test", _) => (RCODE::ServerFailure, Vec::new()),
        _ => (RCODE::NoError, Vec::new()),
    };
    let dns = Dns { suffix: "test".into(), servers: vec![server(says)], port: None, both_families: false };
    let names = NamesConfig { dns: Some(dns), ..NamesConfig::default() };
    let by_dns = DnsResolver::new();
    let ask = |has_trouble| {
        HAS_TROUBLE.store(has_trouble, Ordering::SeqCst);
        by_dns.resolve(&names, "orders").unwrap()
    };
    let answer = ask(true);
    assert_eq!(endpoints(&answer), ["tcp://10.0.0.1:7001"]);
    assert_eq!(answer.fresh_for, NOTHING);
    let both = ["tcp://10.0.0.1:7001", "tcp://10.0.0.2:7002"];
    assert_eq!(endpoints(&ask(false)), both);
    // The target's earlier address still counts.
    assert_eq!(endpoints(&ask(true)), both);
}

#[test]
fn failed_lookup_of_one_family_keeps_the_other() {
    use std::sync::atomic::{AtomicU16, Ordering};
    // Kind of the query that the server refuses. 0: none.
    static REFUSED: AtomicU16 = AtomicU16::new(0);
    let says: Says = |_, kind| match kind {
        QTYPE::TYPE(kind) if u16::from(kind) == REFUSED.load(Ordering::SeqCst) => {
            (RCODE::Refused, Vec::new())
        }
        QTYPE::TYPE(TYPE::A) => (RCODE::NoError, vec![(60, a(1))]),
        QTYPE::TYPE(TYPE::AAAA) => {
            (RCODE::NoError, vec![(60, RData::AAAA(AAAA { address: Ipv6Addr::LOCALHOST.into() }))])
        }
        _ => (RCODE::NoError, Vec::new()),
    };
    let dns = Dns { suffix: "test".into(), servers: vec![server(says)], port: Some(5), both_families: true };
    let names = NamesConfig { dns: Some(dns), ..NamesConfig::default() };
    let by_dns = DnsResolver::new();
    let ask = |refused: u16| {
        REFUSED.store(refused, Ordering::SeqCst);
        by_dns.resolve(&names, "orders").unwrap()
    };
    let first = ask(TYPE::AAAA.into());
    assert_eq!(endpoints(&first), ["tcp://10.0.0.1:5"]);
    assert_eq!(first.fresh_for, NOTHING);
    let both = ["tcp://10.0.0.1:5", "tcp://[::1]:5"];
    assert_eq!(endpoints(&ask(0)), both);
    assert_eq!(endpoints(&ask(TYPE::AAAA.into())), both);
    assert_eq!(endpoints(&ask(TYPE::A.into())), both);
}

#[test]
fn a_service_that_is_not_there_is_not_looked_for_elsewhere() {
    for says in [
        (|name, kind| match (name, kind) {
            ("_orders._tcp.test", QTYPE::TYPE(TYPE::SRV)) => (RCODE::NoError, vec![(60, srv(0, 0, "."))]),
            _ => (RCODE::NoError, vec![(60, a(1))]),
        }) as Says,
        |name, kind| match (name, kind) {
            ("_orders._tcp.test", QTYPE::TYPE(TYPE::SRV)) => {
                (RCODE::NoError, vec![(60, srv(0, 0, "a.test"))])
            }
            _ => (RCODE::NoError, vec![(60, a(1))]),
        },
    ] {
        assert_eq!(endpoints(&resolve(says, Some(5555)).unwrap()), [""; 0]);
    }
}
