//! *As it comes*, from SUB or PULL to core NATS. A message is published once, and dropped while
//! NATS is disconnected.

use tautline::Multipart;

use super::{AT_ONCE, Outgoing, RouteContext};
use crate::stop::Stop;
use crate::zmq::Socket;

pub async fn run(mut socket: Socket, course: &RouteContext, mut stop: Stop) -> Socket {
    loop {
        let message = tokio::select! {
            biased;
            () = stop.wait_requested() => break,
            message = socket.recv() => message,
        };
        match message {
            Ok(message) => pass(course, message).await,
            Err(error) if course.handle_recv_error(&error) => continue,
            Err(_) => break,
        }
        for _ in 1..AT_ONCE {
            let Ok(message) = socket.try_recv() else { break };
            pass(course, message).await;
        }
    }
    // Flush the publications in the client's buffer.
    course.nats.flush().await;
    socket
}

async fn pass(course: &RouteContext, message: Multipart) {
    course.counters.received.add();
    match Outgoing::new(&course.route.mapping, message) {
        Ok(message) => publish(course, message).await,
        Err(what) => course.refuse(what),
    }
}

async fn publish(course: &RouteContext, message: Outgoing) {
    if !course.nats.is_connected() {
        course.counters.dropped.add();
        return course.report_problem("there is no connection to NATS: messages are dropped");
    }
    let Outgoing { subject, headers, payload } = message;
    let client = &course.nats.client;
    let published = if headers.is_empty() {
        client.publish(subject, payload).await
    } else {
        client.publish_with_headers(subject, headers, payload).await
    };
    match published {
        Ok(()) => {
            course.counters.done.add();
            course.report_recovery();
        }
        Err(error) => course.refuse(error),
    }
}
