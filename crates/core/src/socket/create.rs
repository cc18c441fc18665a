//! Creation of a socket: a place in its context, the pattern of its type, and a site on its I/O
//! thread.

use super::Socket;
use crate::conn::ConnectionKind;
use crate::context::{Context, SocketResources};
use crate::driver::Site;
use crate::error::{Error, check_shortage};
use crate::idle::Pause;
use crate::monitor::EventDispatcher;
use crate::options::type_info::SocketTypeInfo;
use crate::pattern::{self, PatternEntry, Routed};
use crate::pipe::{SocketPipes, SocketProbe};
use tautline_proto::SocketType;
use tautline_queue::sync::Arc;

impl Context {
    /// Makes a socket, zmq_socket(3).
    ///
    /// # Errors
    /// [`Error::Invalid`] for a type that this build does not have, [`Error::TooManyFiles`] at
    /// ZMQ_MAX_SOCKETS or without descriptors, [`Error::NoMemory`], [`Error::Terminated`].
    pub fn socket(&self, socket_type: SocketType) -> Result<Socket, Error> {
        let entry = pattern::entry(socket_type).ok_or(Error::Invalid)?;
        check_shortage()?;
        let SocketResources { id, inbox, driver, defaults, desk, ticket, lingering } =
            self.reserve_socket()?;
        let tap = Arc::new(EventDispatcher::default());
        let mut pipes = SocketPipes::new(self.options(socket_type, defaults));
        let report = self.report().map(|report| {
            let probe = SocketProbe::new(&pipes.shared, &inbox);
            report.socket(socket_type, &pipes.options, probe)
        });
        if let Some(report) = &report {
            tap.report_to(report.clone());
        }
        let site = driver.map(|driver| {
            let inbox = inbox.clone();
            Arc::new(Site::new(kind(entry), inbox, driver, tap.clone(), report.clone(), desk, lingering))
        });
        if let Some(site) = &site {
            site.set_announces_peers(pipes.options.reports_every_peer());
        }
        pipes.io = site.clone().map(|site| site as _);
        Ok(Socket {
            inbox,
            pattern: Routed::new((entry.create)()),
            pipes,
            receive_more: false,
            sent: 0,
            received: 0,
            pause: Pause::new(),
            found: super::signals::Found::default(),
            ending: Vec::new(),
            site,
            set: None,
            context: self.clone(),
            socket_type,
            endpoints: Vec::new(),
            last_endpoint: Arc::default(),
            events: tap,
            over: None,
            reconnects: 0,
            report,
            tapped: false,
            id,
            _ticket: ticket,
        })
    }
}

fn kind(entry: &PatternEntry) -> ConnectionKind {
    ConnectionKind {
        socket_type: entry.socket_type,
        takes_subscriptions: entry.takes_subscriptions,
        takes_replies: entry.takes_replies,
        raw: SocketTypeInfo::of(entry.socket_type).raw,
        forgets_on_reconnect: entry.forgets_on_reconnect,
        receives: entry.receives,
    }
}
