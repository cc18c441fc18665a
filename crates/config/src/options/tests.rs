//! Compares the option table with observations of libzmq, and tests the meaning of single options
//! beyond their size and range.

use super::*;

mod observed;

use observed::{Initial, OBSERVED, PROBES, Probe};

fn types() -> impl Iterator<Item = SocketType> {
    (0..).map_while(SocketType::from_code)
}

fn fresh(socket_type: SocketType) -> Options {
    Options::new(socket_type, &ContextDefaults::default())
}

/// The bytes of a probe for an option. For a text option the numbers are bytes of the little-endian
/// machine on which libzmq was observed. There 255 does not begin with the 0 that ends a text.
fn bytes(probe: &Probe, form: Initial) -> Vec<u8> {
    match probe {
        Probe::I(value) if matches!(form, Initial::Text) => value.to_le_bytes().to_vec(),
        Probe::Q(value) if matches!(form, Initial::Text) => value.to_le_bytes().to_vec(),
        Probe::I(value) => value.to_ne_bytes().to_vec(),
        Probe::Q(value) => value.to_ne_bytes().to_vec(),
        Probe::B(value) => value.to_vec(),
    }
}

fn get(options: &Options, code: i32, size: usize) -> Result<Vec<u8>, Error> {
    let mut out = vec![0xaa; size];
    options.get(code, &mut out).map(|length| out[..length].to_vec())
}

fn int(options: &Options, code: i32) -> i32 {
    i32::from_ne_bytes(get(options, code, 4).unwrap().try_into().unwrap())
}

fn set_int(options: &mut Options, code: i32, value: i32) -> Result<(), Error> {
    options.set(code, &value.to_ne_bytes())
}

const MAX_SUBSCRIPTIONS_CODE: i32 = 0x5441_0010;
const LOANS_CODE: i32 = 0x5441_0011;

/// Options that read back a different value than was set, or that no probe fits. Each has its own
/// test.
const SPECIAL: &[i32] =
    &[22, 38, 68, 74, 76, 92, 93, 94, 95, 96, 0x5441_0003, MAX_SUBSCRIPTIONS_CODE, LOANS_CODE];

#[test]
fn loans_are_taken_or_not() {
    let mut options = fresh(SocketType::Pull);
    assert_eq!(int(&options, LOANS_CODE), 1);
    for value in [0, 1] {
        assert_eq!(set_int(&mut options, LOANS_CODE, value), Ok(()));
        assert_eq!(int(&options, LOANS_CODE), value);
    }
    for value in [2, -1] {
        assert_eq!(set_int(&mut options, LOANS_CODE, value), Err(Error::Invalid));
    }
}

#[test]
fn subscription_limit_is_positive_or_unlimited() {
    for socket_type in [SocketType::Pub, SocketType::XPub, SocketType::Radio] {
        let mut options = fresh(socket_type);
        let mut round = |value: i64| {
            let set = options.set(MAX_SUBSCRIPTIONS_CODE, &value.to_ne_bytes());
            set.map(|()| get(&options, MAX_SUBSCRIPTIONS_CODE, 8).unwrap())
        };
        for value in [-1, 1, 64 << 20, i64::MAX] {
            assert_eq!(round(value), Ok(value.to_ne_bytes().to_vec()));
        }
        for value in [0, -2, i64::MIN] {
            assert_eq!(round(value), Err(Error::Invalid));
        }
    }
    let value = 1_i64.to_ne_bytes();
    assert_eq!(fresh(SocketType::Sub).set(MAX_SUBSCRIPTIONS_CODE, &value), Err(Error::Invalid));
}

#[test]
fn every_row_is_observed_and_every_observed_option_has_a_row() {
    for row in table::rows() {
        let known = OBSERVED.iter().find(|observed| observed.0 == row.code).map(|observed| observed.1);
        assert!(known == Some(row.name) || SPECIAL.contains(&row.code), "{}", row.name);
    }
    for observed in OBSERVED {
        assert!(table::find(observed.0).is_some(), "{}", observed.1);
    }
    let codes: Vec<_> = table::rows().map(|row| row.code).collect();
    let mut sorted = codes.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(codes, sorted);
}

#[test]
fn values_and_socket_types_are_accepted_as_observed() {
    for observed in OBSERVED {
        for socket_type in types() {
            for (bit, probe) in PROBES.iter().enumerate() {
                let settable = observed.2 & (1 << socket_type as u32) != 0 && observed.3 & (1 << bit) != 0;
                let expected = if settable { Ok(()) } else { Err(Error::Invalid) };
                let outcome = fresh(socket_type).set(observed.0, &bytes(probe, observed.4));
                assert_eq!(outcome, expected, "{} probe {bit} on {socket_type:?}", observed.1);
            }
        }
    }
}

#[test]
fn set_values_read_back_and_refused_values_change_nothing() {
    for observed in OBSERVED.iter().filter(|observed| !SPECIAL.contains(&observed.0)) {
        for (bit, probe) in PROBES.iter().enumerate() {
            let (value, code) = (bytes(probe, observed.4), observed.0);
            let mut options = fresh(SocketType::Router);
            let before = format!("{options:?}");
            if options.set(code, &value).is_err() {
                assert_eq!(format!("{options:?}"), before, "{}", observed.1);
                continue;
            }
            let expected = match observed.4 {
                Initial::Text => [value.as_slice(), &[0]].concat(),
                Initial::Unreadable | Initial::Key => continue,
                _ => value,
            };
            assert_eq!(get(&options, code, expected.len()), Ok(expected), "{} probe {bit}", observed.1);
        }
    }
}

#[test]
fn defaults_and_sizes_of_reading_are_as_observed() {
    for observed in OBSERVED {
        let options = fresh(SocketType::Dealer);
        let sizes = |expected: &dyn Fn(usize) -> Option<Vec<u8>>| {
            for size in [0, 1, 3, 4, 5, 7, 8, 9, 31, 32, 33, 40, 41, 42, 256] {
                let answer = get(&options, observed.0, size);
                assert_eq!(answer.ok(), expected(size), "{} read with {size} bytes", observed.1);
            }
        };
        match observed.4 {
            Initial::Int(value) => sizes(&|size| (size == 4).then(|| value.to_ne_bytes().to_vec())),
            Initial::Long(value) => sizes(&|size| (size == 8).then(|| value.to_ne_bytes().to_vec())),
            Initial::Text => sizes(&|size| (size >= 1).then(|| vec![0])),
            Initial::Empty => sizes(&|_| Some(vec![])),
            Initial::Key => sizes(&|size| match size {
                32 => Some(vec![0; 32]),
                41 => Some([&[b'0'; 40][..], &[0]].concat()),
                _ => None,
            }),
            Initial::Unreadable => sizes(&|_| None),
        }
    }
}

#[test]
fn unknown_options_and_those_of_the_socket_are_invalid() {
    for code in
        [i32::MIN, -1, 0, 1, 6, 7, 13, 14, 15, 16, 32, 70, 81, 85, 88, 116, 117, 124, 125, 127, 128, i32::MAX]
    {
        let mut options = fresh(SocketType::Sub);
        assert_eq!(set_int(&mut options, code, 1), Err(Error::Invalid), "{code}");
        assert_eq!(get(&options, code, 4), Err(Error::Invalid), "{code}");
        assert_eq!(options.set_null(code), Err(Error::Invalid), "{code}");
    }
}

#[test]
fn linger_starts_as_type_and_context_say() {
    for socket_type in types() {
        let at_once = matches!(socket_type, SocketType::Sub | SocketType::XSub | SocketType::Dish);
        assert_eq!(int(&fresh(socket_type), 17), if at_once { 0 } else { -1 }, "{socket_type:?}");
        let context = ContextDefaults { ipv6: true, blocky: false };
        let options = Options::new(socket_type, &context);
        assert_eq!((int(&options, 17), int(&options, 42), int(&options, 31)), (0, 1, 0));
    }
}

#[test]
fn a_short_value_clears_the_rest_of_the_buffer() {
    let mut options = fresh(SocketType::Dealer);
    options.set(5, b"hello").unwrap();
    let mut out = [0xaa; 8];
    assert_eq!(options.get(5, &mut out), Ok(5));
    assert_eq!(&out, b"hello\0\0\0");
    assert_eq!(options.get(5, &mut out[..4]), Err(Error::Invalid));
}

#[test]
fn flags_that_take_any_number_read_back_as_0_or_1() {
    for code in [74, 93, 94, 96] {
        let mut options = fresh(SocketType::Pub);
        for (value, expected) in [(-5, 1), (0, 0), (7, 1)] {
            set_int(&mut options, code, value).unwrap();
            assert_eq!(int(&options, code), expected);
        }
    }
}

#[test]
fn times_become_durations() {
    let mut options = fresh(SocketType::Dealer);
    for code in [17, 18, 27, 28] {
        set_int(&mut options, code, 1500).unwrap();
    }
    for code in [21, 66, 75, 77, 79, 80] {
        set_int(&mut options, code, 0).unwrap();
    }
    let span = Some(Duration::from_millis(1500));
    assert_eq!(
        [options.linger, options.reconnect_interval, options.receive_timeout, options.send_timeout],
        [span; 4]
    );
    assert_eq!((options.reconnect_interval_max, options.handshake_interval), (None, None));
    assert_eq!((options.heartbeat_interval, options.heartbeat_timeout), (None, Some(Duration::ZERO)));
    set_int(&mut options, 18, -1).unwrap();
    assert_eq!(options.reconnect_interval, None);
}

#[test]
fn heartbeat_ttl_is_cut_to_deciseconds() {
    let mut options = fresh(SocketType::Dealer);
    for (value, expected) in [(6_553_599, 6_553_500), (250, 200), (99, 0), (100, 100), (-99, 0)] {
        set_int(&mut options, 76, value).unwrap();
        assert_eq!(int(&options, 76), expected, "{value}");
    }
    for value in [6_553_600, -100] {
        assert_eq!(set_int(&mut options, 76, value), Err(Error::Invalid));
    }
}

#[test]
fn a_negative_message_size_is_no_limit() {
    let mut options = fresh(SocketType::Pull);
    options.set(22, &5i64.to_ne_bytes()).unwrap();
    assert_eq!(options.max_msg_size, Some(5));
    options.set(22, &(-2i64).to_ne_bytes()).unwrap();
    assert_eq!((options.max_msg_size, get(&options, 22, 8)), (None, Ok((-1i64).to_ne_bytes().to_vec())));
}

#[test]
fn names_for_the_system_end_at_a_nul() {
    let mut options = fresh(SocketType::Dealer);
    options.set(92, b"eth0\0").unwrap();
    options.set(68, b"proxy:1080").unwrap();
    assert_eq!(
        (options.bind_to_device.as_deref(), get(&options, 92, 5)),
        (Some("eth0"), Ok(b"eth0\0".to_vec()))
    );
    assert_eq!(options.set(92, &[b'z'; 17]), Err(Error::Invalid));
    assert_eq!(options.set(68, b"\xff"), Err(Error::Invalid));
    assert_eq!(get(&options, 68, 10), Err(Error::Invalid));
    assert_eq!(get(&options, 68, 11), Ok(b"proxy:1080\0".to_vec()));
    for code in [68, 92] {
        options.set_null(code).unwrap();
        assert_eq!(get(&options, code, 1), Ok(vec![0]));
    }
}

#[test]
fn null_takes_back_and_empty_does_not() {
    let mut options = fresh(SocketType::XPub);
    options.set(45, b"user").unwrap();
    assert_eq!(options.set(45, b""), Err(Error::Invalid));
    assert_eq!(int(&options, 43), 1);
    options.set_null(45).unwrap();
    assert_eq!(int(&options, 43), 0);
    options.set(72, b"welcome").unwrap();
    options.set_null(72).unwrap();
    assert!(options.xpub_welcome_msg.is_empty());
    for code in [5, 48, 55, 61] {
        assert_eq!(options.set_null(code), Err(Error::Invalid));
    }
    assert_eq!(fresh(SocketType::Dealer).set_null(72), Err(Error::Invalid));
}

#[test]
fn filters_collect() {
    let mut options = fresh(SocketType::Pull);
    assert_eq!(options.set(38, b"::1"), Err(Error::Invalid), "IPv6 is off");
    options.set(38, b"127.0.0.0/8").unwrap();
    options.set(38, b"10.0.0.1").unwrap();
    assert_eq!(options.tcp_accept_filters.len(), 2);
    assert!(options.tcp_accept_filters[0].matches("127.9.9.9".parse().unwrap()));
    for code in [58, 59, 60] {
        set_int(&mut options, code, 7).unwrap();
        set_int(&mut options, code, -1).unwrap();
    }
    assert_eq!(
        (&options.ipc_filter_pids[..], &options.ipc_filter_uids[..]),
        (&[7, -1][..], &[7, u32::MAX][..])
    );
    for code in [38, 58, 59, 60] {
        options.set_null(code).unwrap();
    }
    assert!(options.tcp_accept_filters.is_empty() && options.ipc_filter_gids.is_empty());
}

#[test]
fn metadata_keeps_the_first_value_of_a_name() {
    let mut options = fresh(SocketType::Pull);
    for bad in
        [&b"X-a:"[..], b"X-:b", b"a:b", b"X-a", b":b", b"x-a:b", b"Xa:b", b"Identity:a", b"", b"X-a:\0"]
    {
        assert_eq!(options.set(95, bad), Err(Error::Invalid), "{bad:?}");
    }
    let named = |length: usize| [b"X-", &vec![b'n'; length - 2][..], b":v"].concat();
    assert_eq!(options.set(95, &named(256)), Err(Error::Invalid));
    for good in [&b"X-a:b:c"[..], b"X-a:d", b"X-e: f\0", b"X-g:\xff", &named(255)] {
        options.set(95, good).unwrap();
    }
    assert_eq!(options.metadata.len(), 4);
    assert_eq!(options.metadata[0], ("X-a".to_owned(), b"b:c".to_vec()));
    assert_eq!(options.metadata[1], ("X-e".to_owned(), b" f".to_vec()));
}

#[test]
fn verbose_and_verboser_answer_the_same_question() {
    let mut options = fresh(SocketType::XPub);
    for (code, value, expected) in
        [(40, 1, (true, false)), (78, 1, (true, true)), (40, 1, (true, false)), (78, 0, (false, false))]
    {
        set_int(&mut options, code, value).unwrap();
        assert_eq!((options.xpub_verbose, options.xpub_verboser), expected);
    }
    set_int(&mut options, 98, 1).unwrap();
    assert!(options.xpub_manual && options.xpub_manual_last_value);
}

/// Options to set in turn, and the expected result of [`mechanism`].
type Story<'a> = (&'a [(i32, &'a [u8])], (i32, i32, i32, i32));

/// Sets options in turn and returns ZMQ_MECHANISM, ZMQ_PLAIN_SERVER, ZMQ_CURVE_SERVER and
/// ZMQ_GSSAPI_SERVER.
fn mechanism(steps: &[(i32, &[u8])]) -> (i32, i32, i32, i32) {
    let mut options = fresh(SocketType::Dealer);
    for (code, value) in steps {
        options.set(*code, value).unwrap();
    }
    (int(&options, 43), int(&options, 44), int(&options, 47), int(&options, 62))
}

#[test]
fn the_last_security_option_decides_the_mechanism() {
    let (off, on) = (&0i32.to_ne_bytes()[..], &1i32.to_ne_bytes()[..]);
    let key = &[b'k'; 32][..];
    let cases: &[Story] = &[
        (&[(44, on)], (1, 1, 0, 0)),
        (&[(44, on), (44, off)], (0, 0, 0, 0)),
        (&[(46, b"p")], (1, 0, 0, 0)),
        (&[(44, on), (45, b"u")], (1, 0, 0, 0)),
        (&[(45, b"u"), (44, on)], (1, 1, 0, 0)),
        (&[(45, b"u"), (47, off)], (0, 0, 0, 0)),
        (&[(48, key)], (2, 0, 0, 0)),
        (&[(47, on), (48, key), (49, key)], (2, 0, 1, 0)),
        (&[(47, on), (50, key)], (2, 0, 0, 0)),
        (&[(50, key), (47, off)], (0, 0, 0, 0)),
        (&[(44, on), (47, on)], (2, 0, 1, 0)),
        (&[(47, on), (44, off)], (0, 0, 0, 0)),
        (&[(62, on)], (3, 0, 0, 1)),
        (&[(62, off)], (3, 0, 0, 0)),
        (&[(62, on), (63, b"me")], (3, 0, 0, 1)),
        (&[(62, on), (64, b"it")], (3, 0, 0, 0)),
        (&[(65, on), (90, on)], (0, 0, 0, 0)),
    ];
    for (steps, expected) in cases {
        assert_eq!(mechanism(steps), *expected, "{steps:?}");
    }
}

#[test]
fn curve_keys_are_bytes_or_z85() {
    let text = b"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
    let with_nul = [&text[..], &[0]].concat();
    let mut options = fresh(SocketType::Dealer);
    options.set(48, text).unwrap();
    options.set(50, &with_nul).unwrap();
    assert_eq!(options.curve_public_key, options.curve_server_key);
    assert_eq!(options.curve_public_key[..4], [0x54, 0xfc, 0xba, 0x24]);
    assert_eq!(get(&options, 48, 41), Ok(with_nul));
    options.set(49, &get(&options, 48, 32).unwrap()).unwrap();
    assert_eq!(**options.curve_secret_key, options.curve_public_key);
    for bad in [&b"#".repeat(40)[..], &b"%nSc1".repeat(8), &b"\"".repeat(40), &[&text[..], b"x"].concat()] {
        assert_eq!(options.set(48, bad), Err(Error::Invalid));
    }
    options.set(48, &b"%nSc0".repeat(8)).unwrap();
    assert_eq!(options.curve_public_key, [0xff; 32]);
}
