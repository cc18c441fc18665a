//! zmq_socket_monitor(3) and zmq_socket_monitor_versioned(3): a socket's events as messages on an
//! inproc socket.

use super::{Flags, Socket};
use crate::endpoint::Endpoint;
use crate::error::{Error, check_shortage};
use crate::monitor::{Claim, Ends, EventDetails, EventSink, KnownPeer, Observer, event};
use crate::options::type_info::SocketTypeInfo;
use std::sync::Arc;
use std::time::Duration;
use tautline_proto::SocketType;

/// Events of version 1: two parts, number (16 bits) with value (32 bits), and the endpoint.
struct FirstVersion(Socket);

impl EventSink for FirstVersion {
    fn report_event(&mut self, event: u32, values: &[u64], ends: &Ends, _: &EventDetails<'_>) {
        let value = values.first().copied().unwrap_or(0);
        let mut head = [0; 6];
        head[..2].copy_from_slice(&(event as u16).to_ne_bytes());
        head[2..].copy_from_slice(&(value as u32).to_ne_bytes());
        send_event(&mut self.0, &[&head, ends.name().as_bytes()]);
    }

    fn release(&mut self) {
        release(&mut self.0);
    }
}

/// Events of version 2: number, count of values, the values (64 bits each), the local and the
/// remote endpoint.
struct SecondVersion(Socket);

impl EventSink for SecondVersion {
    fn report_event(&mut self, event: u32, values: &[u64], ends: &Ends, _: &EventDetails<'_>) {
        send_numbered_event(&mut self.0, event, values, &[ends.local().as_bytes(), ends.remote().as_bytes()]);
    }

    fn release(&mut self) {
        release(&mut self.0);
    }
}

/// Events of version 3, our own: as version 2, followed by routing id, address and user id of the
/// peer and the reason in words. If a handshake failed after the peer had shown credentials, three
/// more parts follow: the mechanism, the peer's key or user name, and the ZAP handler's reply about
/// it.
struct ThirdVersion(Socket);

impl EventSink for ThirdVersion {
    fn report_event(&mut self, event: u32, values: &[u64], ends: &Ends, about: &EventDetails<'_>) {
        let reason = about.reason(event, values.first().copied().unwrap_or(0));
        let KnownPeer { routing_id, host, user_id } = about.peer;
        let (local, remote) = (ends.local().as_bytes(), ends.remote().as_bytes());
        let mut texts = vec![local, remote, routing_id, host, user_id, reason.as_bytes()];
        if let Some(Claim { mechanism, name, reason }) = about.claim {
            texts.extend([mechanism.as_bytes(), name, reason]);
        }
        send_numbered_event(&mut self.0, event, values, &texts);
    }

    fn release(&mut self) {
        release(&mut self.0);
    }
}

fn send_numbered_event(socket: &mut Socket, event: u32, values: &[u64], texts: &[&[u8]]) {
    let numbers: Vec<[u8; 8]> = [u64::from(event), values.len() as u64]
        .iter()
        .chain(values)
        .map(|number| number.to_ne_bytes())
        .collect();
    let mut parts: Vec<&[u8]> = numbers.iter().map(<[u8; 8]>::as_slice).collect();
    parts.extend(texts);
    send_event(socket, &parts);
}

/// Sends an event. A slow monitor must not stop the connections that it watches, so events are
/// dropped at the high-water mark.
fn send_event(socket: &mut Socket, parts: &[&[u8]]) {
    for (index, part) in parts.iter().enumerate() {
        let more = if index + 1 < parts.len() { Flags::MORE.0 } else { 0 };
        if socket.send(part, Flags(Flags::DONTWAIT.0 | more)).is_err() {
            return;
        }
    }
}

/// Unbinds the monitor's endpoint. A connected reader stays connected. The monitor socket no longer
/// counts as a socket of the program. The monitor socket is closed when the lingering connections
/// have ended.
fn release(socket: &mut Socket) {
    let endpoint = socket.last_endpoint.clone();
    // In a context that is terminating the endpoint is gone already.
    let _ = socket.unbind(&endpoint);
    socket.context.remove_socket(socket.id);
}

impl Socket {
    /// Reports the events of the mask `events` from now on, on a socket of type `socket_type` bound
    /// to `endpoint`, which must be inproc. `None` ends the monitor. Version 1 has two parts for
    /// each event, version 2 adds both ends of a connection, version 3 also the peer and the
    /// reason.
    ///
    /// # Errors
    /// [`Error::Invalid`] also for an unknown version, for events that version 1 does not have, and
    /// for all types but PAIR, PUB and PUSH; [`Error::ProtocolNotSupported`] if `endpoint` is not
    /// inproc, [`Error::AddressInUse`], [`Error::Terminated`].
    pub fn monitor(
        &mut self,
        endpoint: Option<&str>,
        events: u64,
        version: i32,
        socket_type: SocketType,
    ) -> Result<(), Error> {
        self.check_alive()?;
        let Some(endpoint) = endpoint else {
            self.events.listen(0, None);
            return Ok(());
        };
        if !matches!(version, 1..=3) || (version == 1 && events >> 16 != 0) {
            return Err(Error::Invalid);
        }
        if !matches!(Endpoint::parse(endpoint)?, Endpoint::Inproc(_)) {
            return Err(Error::ProtocolNotSupported);
        }
        if !SocketTypeInfo::of(socket_type).can_carry_events {
            return Err(Error::Invalid);
        }
        let socket = self.event_socket(endpoint, socket_type)?;
        let sink: Box<dyn EventSink> = match version {
            1 => Box::new(FirstVersion(socket)),
            2 => Box::new(SecondVersion(socket)),
            _ => Box::new(ThirdVersion(socket)),
        };
        let own = if version == 3 { 0 } else { event::OWN };
        self.events.listen(events as u32 & !own, Some(sink));
        Ok(())
    }

    /// Reports all events except that of [`monitor_queues`](Self::monitor_queues) from now on, in
    /// the format of version 3 of [`monitor`](Self::monitor), on a PAIR socket that is bound to
    /// `endpoint`.
    ///
    /// # Errors
    /// [`Error::ProtocolNotSupported`] if `endpoint` is not inproc, [`Error::AddressInUse`],
    /// [`Error::Terminated`].
    pub fn monitor_in_detail(&mut self, endpoint: &str) -> Result<(), Error> {
        self.check_alive()?;
        if !matches!(Endpoint::parse(endpoint)?, Endpoint::Inproc(_)) {
            return Err(Error::ProtocolNotSupported);
        }
        let socket = self.event_socket(endpoint, SocketType::Pair)?;
        self.events.listen(!event::PIPES_STATS, Some(Box::new(ThirdVersion(socket))));
        Ok(())
    }

    /// Ends the former monitor, and creates the socket of the next one.
    fn event_socket(&mut self, endpoint: &str, socket_type: SocketType) -> Result<Socket, Error> {
        check_shortage()?;
        self.events.listen(0, None);
        let mut socket = self.context.socket(socket_type)?;
        socket.pipes.options_mut().linger = Some(Duration::ZERO);
        if let Some(report) = &socket.report {
            report.set_monitor_endpoint(endpoint);
        }
        socket.bind(endpoint)?;
        Ok(socket)
    }

    /// Reports events to `observer` from now on, in addition to any monitor.
    pub fn observe(&self, observer: Arc<Observer>) {
        self.events.observe(observer);
    }

    /// Emits an event for each peer with the numbers of queued messages in both directions,
    /// zmq_socket_monitor_pipes_stats(3).
    ///
    /// # Errors
    /// [`Error::Invalid`] if this event is not listened to, [`Error::Again`] without peers,
    /// [`Error::Terminated`].
    pub fn monitor_queues(&mut self) -> Result<(), Error> {
        self.check_alive()?;
        if !self.events.wants(event::PIPES_STATS) {
            return Err(Error::Invalid);
        }
        let all = self.pipes.all();
        if all.is_empty() {
            return Err(Error::Again);
        }
        for id in all {
            let Some(pipe) = self.pipes.get(id) else { continue };
            let (outgoing, incoming) = pipe.uncredited();
            let ends = pipe.peer.info().map(|peer| peer.ends.clone()).unwrap_or_default();
            self.events.emit_all(event::PIPES_STATS, &[outgoing, incoming], &ends);
        }
        Ok(())
    }
}
