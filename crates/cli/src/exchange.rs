//! Main loop of the commands that send and receive. It waits for one socket, one source and one
//! sink at once.

mod ending;
mod job;
mod plan;

pub use job::{Answer, Job, split_words};
pub use plan::run;

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use tautline::kind::SocketType;
use tautline::topics::Pattern;
use tautline::{Error, Message, PollItem};

use crate::failure::{Code, Failure, Result};
use crate::format::Received;
use crate::signals::Signals;
use crate::sink::Sink;
use crate::socket::{self, AnySocket, TransferError};
use crate::socket_events::SocketEvents;
use crate::source::{NextMessage, Parts, Source};
use crate::through;

/// Maximum number of messages that one pass handles before the loop checks other events.
const BATCH: usize = 256;
/// Lag behind the rate above which a source stops catching up.
const BEHIND: Duration = Duration::from_millis(100);

/// Direction of the next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextStep {
    /// The socket may send or receive at any time.
    Free,
    /// REQ before its request, or REP after it received a request.
    Send,
    /// REQ after its request, or REP before it receives a request.
    Receive,
}

/// Time limit of `--for`.
#[derive(Debug, Clone, Copy)]
struct Lasting {
    time: Duration,
    until: Instant,
}

/// State of a running job.
struct Exchange<'a> {
    kind: SocketType,
    socket: &'a mut dyn AnySocket,
    patterns: &'a [Pattern],
    /// True if the job goes on after its last message.
    runs_after_source: bool,
    source: Option<Source>,
    answer: Option<Answer>,
    sink: &'a mut Sink,
    observed: &'a SocketEvents,
    turn: NextStep,
    /// Message to send next.
    next: Option<Parts>,
    /// Time at which the source may supply the next message.
    due: Instant,
    interval: Option<Duration>,
    count: Option<u64>,
    timeout: Option<Duration>,
    lasting: Option<Lasting>,
    /// Number of subscriptions still to wait for.
    wait: u64,
    one_way: bool,
    quiet: bool,
    sent: u64,
    received: u64,
    asked: Instant,
    round_trips: Vec<Duration>,
    /// Time of the last message sent or received, or of the last moment when none was possible.
    progress: Instant,
    commands_failed: bool,
}

impl Exchange<'_> {
    /// Runs until the job is done.
    fn work(&mut self, signals: &mut Signals) -> Result<()> {
        if self.wait > 0 && !self.quiet && io::stderr().is_terminal() {
            notice!("taut: waiting for a subscriber");
        }
        loop {
            if let Some(code) = signals.stop() {
                // For an endless job, a signal is the normal end. A finite job was interrupted.
                let endless = self.count.is_none() && !self.source_is_finite();
                return if endless { Ok(()) } else { Err(Failure::new(code, "")) };
            }
            let now = Instant::now();
            let mut moved = false;
            for _ in 0..BATCH {
                self.fetch(now)?;
                if !self.send()? {
                    break;
                }
                moved = true;
                if self.turn != NextStep::Free {
                    break;
                }
            }
            // A command of `--through` may run long, so check the other events after each one.
            let runs_commands = matches!(self.answer, Some(Answer::Through(_)));
            for _ in 0..BATCH {
                if !self.receive()? {
                    break;
                }
                moved = true;
                if self.turn != NextStep::Free || self.next.is_some() || runs_commands {
                    break;
                }
            }
            if moved {
                self.progress = now;
            }
            if self.is_done() {
                return Ok(());
            }
            let after = if runs_commands { Instant::now() } else { now };
            if let Some(lasting) = self.lasting.filter(|lasting| after >= lasting.until) {
                return if self.has_unsent_work() { Err(self.unfinished(lasting.time)) } else { Ok(()) };
            }
            let due = self.sink.due(now).is_some_and(|time| time.is_zero());
            if moved && !due {
                continue;
            }
            self.sink.flush()?;
            if moved {
                continue;
            }
            self.check_timeout(now)?;
            self.pause(signals, now)?;
        }
    }

    /// True if the end of `--for` cuts off messages that the user has given: messages of a list, or
    /// a message that was read and could not be sent. A repeated list has no end, so nothing of it
    /// is cut off.
    fn has_unsent_work(&self) -> bool {
        let repeats = matches!(self.source, Some(Source::Given { endless: true, .. }));
        !repeats && self.source_is_finite()
    }

    fn source_is_finite(&self) -> bool {
        let waits = self.next.is_some() && self.turn != NextStep::Receive;
        waits || self.source.as_ref().is_some_and(Source::is_finite)
    }

    /// True if the loop should ask the source for a message. Typed answers are read at once, so
    /// that the loop notices the end of the input.
    fn wants_message(&self, now: Instant) -> bool {
        let typed = matches!(self.source, Some(Source::Files(_)));
        let early = self.kind == SocketType::Rep && typed;
        self.next.is_none() && now >= self.due && (early || self.may_send())
    }

    /// True if the socket could send a message now.
    fn may_send(&self) -> bool {
        let counted = self.count.is_some_and(|count| self.sent >= count);
        self.turn != NextStep::Receive && self.wait == 0 && (!counted || self.kind == SocketType::Rep)
    }

    fn may_receive(&self) -> bool {
        let enough = self.count.is_some_and(|count| self.received >= count);
        let answering = self.answer.is_some() && self.next.is_some();
        self.receives()
            && self.turn != NextStep::Send
            && !answering
            && (!enough || self.publishes() || self.kind == SocketType::Req)
    }

    fn receives(&self) -> bool {
        socket::receives(self.kind) && !self.one_way
    }

    /// True if the socket publishes. A publisher ends with its source, even if more subscriptions
    /// arrive.
    fn publishes(&self) -> bool {
        self.kind == SocketType::XPub
    }

    fn is_done(&self) -> bool {
        let all_sent = self.next.is_none()
            && (self.source.is_none() || self.count.is_some_and(|count| self.sent >= count));
        let enough = self.count.is_some_and(|count| self.received >= count);
        match self.kind {
            _ if self.runs_after_source => false,
            SocketType::Req => self.turn == NextStep::Send && all_sent,
            SocketType::Rep => {
                let no_more_answers = self.answer.is_none() && self.source.is_none() && self.next.is_none();
                no_more_answers || (enough && self.turn == NextStep::Receive)
            }
            SocketType::XPub => all_sent,
            _ if !self.receives() => all_sent,
            kind if !socket::sends(kind) => enough,
            _ => enough && (all_sent || self.answer.is_some() && self.next.is_none()),
        }
    }

    /// Takes the next message from the source, if it is due.
    fn fetch(&mut self, now: Instant) -> Result<()> {
        if !self.wants_message(now) {
            return Ok(());
        }
        let Some(source) = &mut self.source else { return Ok(()) };
        match source.next(self.sent + 1)? {
            NextMessage::Message(parts) => self.next = Some(parts),
            NextMessage::Wait => {}
            NextMessage::Until(due) => self.due = due,
            NextMessage::End => self.source = None,
        }
        Ok(())
    }

    /// Sends the next message. Returns true if it was sent.
    fn send(&mut self) -> Result<bool> {
        if !self.may_send() {
            return Ok(false);
        }
        let Some(parts) = &self.next else { return Ok(false) };
        match self.socket.try_send(parts) {
            Ok(()) => {}
            Err(TransferError::Later) => return Ok(false),
            Err(TransferError::Unfit(why)) => return Err(Failure::failed(why)),
            Err(TransferError::Socket(Error::Unroutable)) if self.timeout.is_some() => return Ok(false),
            Err(TransferError::Socket(Error::Unroutable)) => {
                let id = crate::format::escaped(parts.first().map_or(&[], |id| id));
                return Err(Failure::failed(format!("no peer has the routing id {id}"))
                    .hint("the first part of a message is the id; use --timeout to wait for the peer"));
            }
            Err(TransferError::Socket(error)) => return Err(error.into()),
        }
        let now = Instant::now();
        self.next = None;
        self.sent += 1;
        self.asked = now;
        if let Some(interval) = self.interval {
            let due = self.due + interval;
            self.due = if due + BEHIND < now { now } else { due };
        }
        if self.turn != NextStep::Free {
            self.turn = NextStep::Receive;
        }
        Ok(true)
    }

    /// Receives a message, if one is available.
    fn receive(&mut self) -> Result<bool> {
        if !self.may_receive() {
            return Ok(false);
        }
        let parts = match self.socket.try_recv() {
            Ok(parts) => parts,
            Err(TransferError::Later) => return Ok(false),
            Err(TransferError::Unfit(why)) => return Err(Failure::failed(why)),
            Err(TransferError::Socket(error)) => return Err(error.into()),
        };
        let topic: &[u8] = parts.first().map_or(&[], |part| part);
        if !self.patterns.is_empty() && !self.patterns.iter().any(|pattern| pattern.matches(topic)) {
            return Ok(true);
        }
        if self.publishes() {
            self.wait = self
                .wait
                .saturating_sub(u64::from(parts.first().is_some_and(|part| part.first() == Some(&1))));
        }
        self.received += 1;
        let round_trip = (self.kind == SocketType::Req).then(|| self.asked.elapsed());
        if self.turn != NextStep::Free {
            self.turn = NextStep::Send;
        }
        self.show(parts, round_trip)?;
        if let Some(time) = round_trip {
            self.round_trips.push(time);
            if !self.quiet {
                // Flush, so that the notice appears after the answer.
                self.sink.flush()?;
                notice!("round trip {}", crate::bench::time(time));
            }
        }
        Ok(true)
    }

    /// Prints a message and prepares its answer.
    fn show(&mut self, parts: Vec<Message>, round_trip: Option<Duration>) -> Result<()> {
        let number = self.received;
        let shown = |parts: &[Message], sink: &mut Sink| sink.put(&Received { parts, number, round_trip });
        // An empty message of STREAM reports a new or a closed connection. It is not a request: an
        // empty answer would close the connection.
        let is_news = self.kind == SocketType::Stream && parts.last().is_some_and(|body| body.is_empty());
        match &self.answer {
            None => shown(&parts, self.sink),
            _ if is_news => shown(&parts, self.sink),
            Some(Answer::Echo) => {
                shown(&parts, self.sink)?;
                self.next = Some(parts.into_iter().map(Vec::from).collect());
                Ok(())
            }
            Some(Answer::Through(command)) => {
                let (made, success) = through::run(command, &parts)?;
                if !success {
                    self.commands_failed = true;
                    notice!("taut: --through {command}: the command failed");
                }
                if socket::answers(self.kind) {
                    shown(&parts, self.sink)?;
                    self.next = Some(made);
                    return Ok(());
                }
                let made: Vec<Message> = made.into_iter().map(Message::from).collect();
                shown(&made, self.sink)
            }
        }
    }

    /// True if the loop waits for a message or for room to send.
    fn is_waiting(&self, now: Instant) -> bool {
        let expects = self.may_receive() && !self.publishes();
        let stuck = self.next.is_some() || self.wait > 0;
        expects || (stuck && now >= self.due)
    }

    fn check_timeout(&mut self, now: Instant) -> Result<()> {
        if !self.is_waiting(now) {
            self.progress = now;
        }
        let Some(timeout) = self.timeout.filter(|timeout| now >= self.progress + *timeout) else {
            return Ok(());
        };
        Err(self.unfinished(timeout))
    }

    /// Returns the failure for a job that has not done its work in this time.
    fn unfinished(&self, time: Duration) -> Failure {
        let what = if self.wait > 0 {
            "no subscriber connected for"
        } else if self.next.is_some() {
            "no message could be sent for"
        } else if self.kind == SocketType::Req {
            "no reply arrived for"
        } else if self.source_is_finite() {
            "not all messages were sent within"
        } else {
            "no message arrived for"
        };
        let mut text = format!("{what} {}", humantime::format_duration(time));
        if let Some(count) = self.count {
            let so_far = if self.receives() && !self.publishes() { self.received } else { self.sent };
            text += &format!(" ({so_far} of {count} done)");
        }
        Failure::new(Code::Timeout, text).hint(self.observed.reason())
    }

    /// Waits until there is work.
    fn pause(&mut self, signals: &mut Signals, now: Instant) -> Result<()> {
        let waiting = self.is_waiting(now);
        let (read, write) = (self.may_receive(), self.next.is_some() && self.may_send() && now >= self.due);
        let wants_source = self.wants_message(now);
        let times = [
            (self.due > now).then(|| self.due - now),
            self.timeout
                .filter(|_| waiting)
                .map(|timeout| (self.progress + timeout).saturating_duration_since(now)),
            self.lasting.map(|lasting| lasting.until.saturating_duration_since(now)),
            self.sink.due(now),
            // A ROUTER gets no event when it learns its peer, so poll.
            (write && socket::needs_address(self.kind)).then_some(Duration::from_millis(10)),
        ];
        let descriptor = self.source.as_ref().filter(|_| wants_source).and_then(Source::descriptor);
        let mut items = vec![PollItem::descriptor(signals.descriptor())];
        let source_at = descriptor.map(|descriptor| {
            items.push(PollItem::descriptor(descriptor));
            items.len() - 1
        });
        let sink_at = self.sink.closed_descriptor().map(|descriptor| {
            items.push(PollItem::descriptor(descriptor));
            items.len() - 1
        });
        let write = write && !socket::needs_address(self.kind);
        items.extend(self.socket.item(read, write));
        match tautline::poll(&mut items, times.into_iter().flatten().min()) {
            Ok(_) => {}
            Err(Error::Interrupted) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let ready = |at: Option<usize>, items: &[PollItem<'_>]| {
            at.is_some_and(|at| items[at].is_readable() || items[at].has_error())
        };
        let (source_ready, gone) = (ready(source_at, &items), ready(sink_at, &items));
        drop(items);
        if gone {
            return Err(Failure::closed_output());
        }
        match &mut self.source {
            Some(source) if source_ready => source.read(),
            _ => Ok(()),
        }
    }
}
