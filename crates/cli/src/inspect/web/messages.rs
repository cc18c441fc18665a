//! Serves the messages of a socket as server-sent events: `tap?of=PID&socket=ID`, with further
//! optional parameters of a tap.
//!
//! A message is JSON as in `taut tap --jsonl`. The event `missed` has the number of missed
//! messages. The event `end` has the reason.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tautline::Message;
use tautline_observe::tap::{GREETING, Request};

use crate::failure::{Failure, Result};
use crate::inspect::http::{Events, HttpReply};
use crate::inspect::tap::{Source, TapEvent, object};

/// Maximum number of served pages. The maximum number of clients is higher, which leaves room for
/// the main page.
const MOST: usize = 8;
/// Interval of the checks for a closed page while no messages arrive.
const PACE: Duration = Duration::from_secs(1);
/// Maximum number of bytes per part, unless the page requests fewer.
const BYTES: u64 = 400;

static SERVED: AtomicUsize = AtomicUsize::new(0);

/// Answers the request of the page.
pub fn of(question: &str) -> HttpReply {
    if SERVED.fetch_add(1, Ordering::SeqCst) >= MOST {
        SERVED.fetch_sub(1, Ordering::SeqCst);
        return HttpReply::too_many();
    }
    let served = Served;
    let source = open(question);
    HttpReply::events(move |page| {
        let _served = served;
        match source {
            Ok(mut source) => tell(&mut source, page),
            Err(failure) => event(page, "end", &failure.what),
        }
    })
}

/// Counts a served page until dropped.
struct Served;

impl Drop for Served {
    fn drop(&mut self) {
        SERVED.fetch_sub(1, Ordering::SeqCst);
    }
}

fn open(question: &str) -> Result<Source> {
    let nonsense = || Failure::usage("tap?of=PID&socket=ID");
    let (process, wanted) = question.split_once('&').ok_or_else(nonsense)?;
    let process =
        process.strip_prefix("of=").and_then(|process| process.parse().ok()).ok_or_else(nonsense)?;
    let text = format!("{GREETING}\n{}", wanted.replace('&', "\n"));
    let request = Request::from_text(&text).map_err(Failure::usage)?;
    Source::of(process, Request { bytes: request.bytes.min(BYTES), ..request })
}

fn tell(source: &mut Source, page: &Events) -> io::Result<()> {
    // Inform the page that the tap has begun.
    event(page, "begin", "")?;
    let mut number = 0;
    loop {
        match source.next(Some(Instant::now() + PACE)) {
            Ok(TapEvent::Copy(copy)) => {
                number += 1;
                let parts: Vec<Message> =
                    copy.parts.iter().map(|part| Message::from(&part.bytes[..])).collect();
                event(page, "message", &object(&copy, &parts, number).to_string())?;
            }
            Ok(TapEvent::Missed { count, .. }) => event(page, "missed", &count.to_string())?,
            Ok(TapEvent::Time) => page.send(":\n\n".to_owned())?,
            Ok(TapEvent::Ended) => return event(page, "end", "the program has ended"),
            Err(failure) => return event(page, "end", &failure.what),
        }
    }
}

/// Sends one event. Line breaks, which only a failure contains, become spaces.
fn event(page: &Events, name: &str, text: &str) -> io::Result<()> {
    page.send(format!("event: {name}\ndata: {}\n\n", text.replace('\n', " ")))
}
