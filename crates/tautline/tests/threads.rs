//! Types that can move to another thread, and types that threads can share.

use tautline::curve::{KeyPair, PublicKey, SecretKey};
use tautline::monitor::{Event, Monitor, Statistics};
use tautline::zap::{AllowList, Request, Verdict};
use tautline::{
    Builder, Context, Error, Frame, Message, Multipart, PollItem, ReceiveHalf, RoutingId, SendHalf, Socket,
    aio, kind,
};

fn send<T: Send>() {}
fn sync<T: Sync>() {}

#[test]
fn send_and_sync_are_where_they_belong() {
    // Values, and types that are made to be shared.
    send::<(Context, Message, Multipart, Frame<'_>, RoutingId, Error)>();
    sync::<(Context, Message, Multipart, Frame<'_>, RoutingId, Error)>();
    send::<(KeyPair, PublicKey, SecretKey, AllowList, Request, Verdict, Event, Statistics)>();
    sync::<(KeyPair, PublicKey, SecretKey, AllowList, Request, Verdict, Event, Statistics)>();
    // Types that one thread uses at a time.
    send::<(Socket<kind::Router>, Builder<kind::Router>, Monitor, PollItem<'_>)>();
    send::<(SendHalf<kind::Router>, ReceiveHalf<kind::Router>)>();
    send::<(
        aio::Socket<kind::Router>,
        aio::SendHalf<kind::Router>,
        aio::ReceiveHalf<kind::Router>,
        aio::Monitor,
    )>();
}
