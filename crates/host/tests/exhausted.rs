//! A policy also takes effect in a process without free descriptors. Strangers can cause this state by connecting.
//!
//! This file has a single test, because all tests of a process share the descriptors.

#![cfg(all(target_os = "linux", not(loom)))]

mod common;

use common::policy::{Folder, context_with_policy, monitor, socket, text, wait_for_event, with_key};
use common::{bind, recv, test};
use std::fs;
use std::fs::File;

use rustix::process::{Resource, getrlimit, setrlimit};
use tautline_core::{Flags, Socket, SocketType, public_key};

const DISCONNECTED: u16 = 0x200;
const HANDSHAKE_FAILED_AUTH: u16 = 0x4000;
const HANDSHAKE_SUCCEEDED: u16 = 0x1000;
const ACCEPT_FAILED: u16 = 0x40;

/// Opens files until all descriptors are in use.
fn exhaust() -> Vec<File> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(256);
    setrlimit(Resource::Nofile, limit).unwrap();
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

/// Waits for the first of these events.
fn first_of(events: &mut Socket, wanted: &[u16]) -> u16 {
    loop {
        let event = recv(events);
        let _ = recv(events);
        let number = u16::from_ne_bytes([event[0], event[1]]);
        if wanted.contains(&number) {
            return number;
        }
    }
}

#[test]
fn removed_key_and_new_policy_count_without_descriptors() {
    test("removed_key_and_new_policy_count_without_descriptors", |context| {
        let folder = Folder::new("exhausted");
        let (key, _) = folder.key("server.key", 1);
        let list = folder.file("clients", &text(&public_key(&[2; 32])));
        let wrap = format!(
            "[wraps.in]\nkey = \"{key}\"\nclients = \"{list}\"\n[[rules]]\ncall = \"bind\"\naction = \"wrap\"\n\
             wrap = \"in\"\n"
        );
        let policy = folder.file("policy.toml", &wrap);
        folder.file("empty-list", "# nobody\n");
        folder.file("new-list", &text(&public_key(&[3; 32])));
        folder.file("new.toml", &format!("{wrap}[[rules]]\ncall = \"accept\"\naction = \"refuse\"\n"));
        let ours = context_with_policy(&policy);
        let mut server = socket(&ours, SocketType::Pull);
        let mut events = monitor(&ours, &mut server);
        let endpoint = bind(&mut server, "tcp://127.0.0.1:*");
        let client = |key| {
            let mut client = socket(context, SocketType::Push);
            with_key(&mut client, key);
            client.connect(&endpoint).unwrap();
            client
        };
        let mut first = client(2);
        first.send(b"first", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"first");
        // Remove the key.
        let hogs = exhaust();
        fs::rename(folder.0.join("empty-list"), &list).unwrap();
        wait_for_event(&mut events, DISCONNECTED);
        drop(hogs);
        wait_for_event(&mut events, HANDSHAKE_FAILED_AUTH);
        drop(first);
        // A new policy refuses every peer.
        fs::rename(folder.0.join("new-list"), &list).unwrap();
        // The library may have read the list a moment before.
        let mut second = loop {
            let second = client(3);
            if first_of(&mut events, &[HANDSHAKE_SUCCEEDED, HANDSHAKE_FAILED_AUTH]) == HANDSHAKE_SUCCEEDED {
                break second;
            }
        };
        second.send(b"second", Flags::NONE).unwrap();
        assert_eq!(recv(&mut server), b"second");
        let hogs = exhaust();
        fs::rename(folder.0.join("new.toml"), &policy).unwrap();
        wait_for_event(&mut events, DISCONNECTED);
        drop(hogs);
        wait_for_event(&mut events, ACCEPT_FAILED);
        drop((server, events, second));
        ours.terminate().unwrap();
    });
}
