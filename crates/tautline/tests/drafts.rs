//! The kinds that are drafts in libzmq.

use std::time::Duration;

use tautline::{
    Channel, Client, Context, Dgram, Dish, Error, Gather, Message, Multipart, Peer, Radio, Scatter, Server,
};
use tautline_testkit::with_watchdog;

const LIMIT: Duration = Duration::from_secs(60);
const ENDPOINTS: [&str; 3] = ["tcp://127.0.0.1:*", "ipc://*", "inproc://draft"];

#[test]
fn servers_answer_by_the_id_of_a_message() {
    with_watchdog(LIMIT, "servers_answer", || {
        for endpoint in ENDPOINTS {
            let context = Context::new();
            let mut server = Server::new(&context).unwrap();
            let endpoint = server.bind(endpoint).unwrap();
            let mut clients = [(); 2].map(|()| Client::builder(&context).connect(&endpoint).unwrap());
            clients[0].send("zero").unwrap();
            clients[1].send("one").unwrap();
            for _ in 0..2 {
                let question = server.recv().unwrap();
                let peer = question.peer_id().unwrap();
                server.send(Message::from("first").for_peer(peer)).unwrap();
                server.send(question).unwrap();
            }
            for (client, expected) in clients.iter_mut().zip(["zero", "one"]) {
                assert_eq!(
                    (client.recv().unwrap(), client.recv().unwrap()),
                    ("first".into(), expected.into())
                );
            }
            assert_eq!(server.send("to whom?").unwrap_err(), Error::Unroutable);
        }
    });
}

#[test]
fn peers_address_each_other() {
    with_watchdog(LIMIT, "peers_address", || {
        let context = Context::new();
        let mut one = Peer::builder(&context).bind("inproc://peer").unwrap();
        let mut other = Peer::new(&context).unwrap();
        let peer = other.connect_peer("inproc://peer").unwrap();
        other.send(Message::from("hello").for_peer(peer)).unwrap();
        let hello = one.recv().unwrap();
        one.send(Message::from("back").for_peer(hello.peer_id().unwrap())).unwrap();
        let back = other.recv().unwrap();
        assert_eq!((back.peer_id(), &back[..]), (Some(peer), &b"back"[..]));
    });
}

#[test]
fn dishes_hear_the_groups_they_have_joined() {
    with_watchdog(LIMIT, "dishes_hear", || {
        let context = Context::new();
        let mut radio = Radio::builder(&context).bind("inproc://radio").unwrap();
        let mut dish = Dish::builder(&context).connect("inproc://radio").unwrap();
        dish.join("a").unwrap();
        assert_eq!(dish.join("a").unwrap_err().to_string(), r#"the group "a" is already joined"#);
        for group in ["b", "a"] {
            radio.send(Message::from("x").for_group(group).unwrap()).unwrap();
        }
        assert_eq!(dish.recv().unwrap().group(), b"a");
        dish.leave("a").unwrap();
        assert_eq!(dish.leave("a").unwrap_err().to_string(), r#"the group "a" is not joined"#);
        assert!(matches!(dish.join("x".repeat(256)), Err(Error::Invalid(_))));
        assert!(matches!(Message::new().for_group("x".repeat(256)), Err(Error::Invalid(_))));
        assert!(matches!(Message::new().for_group("a\0"), Err(Error::Invalid(_))));
    });
}

#[test]
fn work_is_scattered_and_gathered_and_channels_join_two() {
    with_watchdog(LIMIT, "work_is_scattered", || {
        smol::block_on(async {
            for endpoint in ENDPOINTS {
                let context = Context::new();
                let mut gather = Gather::new(&context).unwrap();
                let endpoint = gather.bind(endpoint).unwrap();
                let mut scatter = Scatter::builder(&context).connect(&endpoint).unwrap().into_async();
                let mut gather = gather.into_async();
                scatter.send("work").await.unwrap();
                assert_eq!(gather.recv().await.unwrap(), "work");
            }
            let context = Context::new();
            let mut here = Channel::builder(&context).bind("inproc://channel").unwrap().into_async();
            let mut there = Channel::builder(&context).connect("inproc://channel").unwrap().into_async();
            here.send("there").await.unwrap();
            assert_eq!(there.recv().await.unwrap(), "there");
            there.send("here").await.unwrap();
            assert_eq!(here.recv().await.unwrap(), "here");
        });
    });
}

#[test]
fn datagrams_go_both_ways() {
    with_watchdog(LIMIT, "datagrams_go", || {
        let context = Context::new();
        let mut one = Dgram::builder(&context).bind("udp://127.0.0.1:*").unwrap();
        let mut other = Dgram::builder(&context).bind("udp://127.0.0.1:*").unwrap();
        let address = one.last_endpoint().unwrap().replace("udp://", "");
        other.send_multipart([&address, "ping"]).unwrap();
        let [from, ping]: [Message; 2] = one.recv_multipart().unwrap().try_into().unwrap();
        assert_eq!(ping, "ping");
        one.send_multipart(Multipart::from([from, Message::from("pong")])).unwrap();
        assert_eq!(other.recv_multipart().unwrap()[1], "pong");
    });
}
