use super::*;
use std::future::Future;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

/// Runs a test with a clock that advances when all tasks wait.
fn test<F: Future>(name: &str, body: impl FnOnce() -> F) {
    tautline_testkit::with_watchdog(Duration::from_secs(120), name, || {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(body());
    });
}

fn hall<A>(answer: A, places: usize) -> Arc<ServerState<A>> {
    Arc::new(ServerState { answer, places: Arc::new(Semaphore::new(places)), is_local: true })
}

/// Returns a client and the server task of its connection. `room` is the buffer size between
/// them.
fn client(room: usize, answer: fn(&HttpRequest) -> HttpReply) -> (DuplexStream, tokio::task::JoinHandle<()>) {
    let (client, server) = duplex(room);
    (client, tokio::spawn(talk(server, hall(answer, CLIENTS), Arc::default())))
}

async fn rest(client: &mut DuplexStream) -> String {
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    text
}

#[test]
fn a_client_that_says_nothing_is_left() {
    test("says_nothing", || async {
        let (mut client, talk) = client(4096, |_| HttpReply::nothing());
        let start = tokio::time::Instant::now();
        talk.await.unwrap();
        assert!((TIME..2 * TIME).contains(&start.elapsed()));
        assert_eq!(rest(&mut client).await, "");
    });
}

#[test]
fn a_request_that_comes_byte_by_byte_has_no_longer() {
    test("byte_by_byte", || async {
        let (mut client, talk) = client(4096, |_| HttpReply::nothing());
        let start = tokio::time::Instant::now();
        while !talk.is_finished() {
            let _ = client.write_all(b"x").await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert!((TIME..2 * TIME).contains(&start.elapsed()));
    });
}

#[test]
fn a_client_that_does_not_read_its_answer_is_left() {
    test("does_not_read", || async {
        let (mut client, talk) = client(4096, |_| HttpReply::new("text/plain", "x".repeat(100_000)));
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let start = tokio::time::Instant::now();
        talk.await.unwrap();
        assert!((TIME..2 * TIME).contains(&start.elapsed()));
    });
}

#[test]
fn a_head_that_is_too_long_is_refused() {
    test("too_long", || async {
        let (mut client, talk) = client(4096, |_| HttpReply::nothing());
        let mut sent = 0;
        while client.write_all(&[b'x'; 1024]).await.is_ok() {
            sent += 1024;
        }
        talk.await.unwrap();
        assert!((HEAD..2 * HEAD + 4096).contains(&sent), "{sent}");
        assert!(rest(&mut client).await.starts_with("HTTP/1.1 4"));
    });
}

#[test]
fn client_that_shuts_down_its_writes_gets_an_answer() {
    test("has_said_all", || async {
        let (mut client, talk) = client(4096, |request| HttpReply::new("text/plain", request.path.clone()));
        client.write_all(b"GET /a?b=c HTTP/1.1\r\n\r\n").await.unwrap();
        client.shutdown().await.unwrap();
        talk.await.unwrap();
        let answer = rest(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"), "{answer}");
        assert!(answer.contains("\r\nContent-Length: 6\r\n") && answer.ends_with("\r\n\r\n/a?b=c"));
        assert!(answer.contains("\r\nConnection: close\r\n"));
    });
}

#[test]
fn head_is_answered_without_a_body() {
    test("head", || async {
        let (mut client, talk) = client(4096, |request| HttpReply::new("text/plain", request.path.clone()));
        client.write_all(b"HEAD /a?b=c HTTP/1.1\r\n\r\n").await.unwrap();
        talk.await.unwrap();
        let answer = rest(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"), "{answer}");
        assert!(answer.contains("\r\nContent-Length: 6\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
    });
}

#[test]
fn a_name_that_leads_here_has_no_answer() {
    test("rebound", || async {
        for (host, status) in [
            ("127.0.0.1:9464", "200"),
            ("[::1]:9464", "200"),
            ("localhost", "200"),
            ("evil.example:9464", "421"),
            ("127.0.0.1.evil.example", "421"),
            ("", "421"),
        ] {
            let (mut client, talk) =
                client(4096, |request| HttpReply::new("text/plain", request.path.clone()));
            client.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await.unwrap();
            talk.await.unwrap();
            assert!(rest(&mut client).await.starts_with(&format!("HTTP/1.1 {status} ")), "{host}");
        }
    });
}

#[test]
fn requests_that_are_not_whole_keep_no_others_out() {
    tautline_testkit::with_watchdog(Duration::from_secs(120), "not_whole", || {
        use std::io::{Read, Write};
        let server = Server::bind("0").unwrap();
        let at = server.at;
        std::thread::spawn(move || server.serve(|_| HttpReply::new("text/plain", "here".to_owned())));
        let half: Vec<_> = (0..2 * WAITING)
            .map(|_| {
                let mut client = std::net::TcpStream::connect(at).unwrap();
                client.write_all(b"GET / HTTP/1.1\r\n").unwrap();
                client
            })
            .collect();
        let mut client = std::net::TcpStream::connect(at).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with("here"), "{text}");
        drop(half);
    });
}

#[test]
fn too_many_are_told_so() {
    test("too_many", || async {
        let (mut client, server) = duplex(4096);
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        talk(server, hall(|_: &HttpRequest| HttpReply::nothing(), 0), Arc::default()).await;
        assert!(rest(&mut client).await.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
    });
}

#[test]
fn events_end_when_their_client_is_gone() {
    test("gone", || async {
        let (told, mut ends) = mpsc::channel(1);
        let (mut client, server) = duplex(4096);
        let answer = move |_: &HttpRequest| {
            let told = told.clone();
            HttpReply::events(move |client| {
                let error = loop {
                    if let Err(error) = client.send("data: x\n\n".to_owned()) {
                        break error;
                    }
                };
                let _ = told.blocking_send(error.kind());
                Err(error)
            })
        };
        let talk = tokio::spawn(talk(server, hall(answer, CLIENTS), Arc::default()));
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let mut begun = [0; 2000];
        client.read_exact(&mut begun).await.unwrap();
        assert!(String::from_utf8_lossy(&begun).contains("data: x\n\n"));
        drop(client);
        talk.await.unwrap();
        assert_eq!(ends.recv().await, Some(io::ErrorKind::BrokenPipe));
    });
}
