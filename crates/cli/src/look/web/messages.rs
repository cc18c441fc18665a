//! The messages of a socket for the page, as server-sent events: `tap?of=PID&socket=ID`, and what
//! else a request for a tap may have.
//!
//! A message is JSON as `taut tap --jsonl` prints it. Other events are `missed`, with how many
//! messages were, and `end`, with why.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tautline::Message;
use tautline_observe::tap::{GREETING, Request};

use crate::failure::{Failure, Result};
use crate::look::http::{Answer, Events};
use crate::look::tap::{Next, Source, object};

/// As many pages are served at once: fewer than there are clients, so that pages go on.
const MOST: usize = 8;
/// So often a page that has gone is noticed where no messages go.
const PACE: Duration = Duration::from_secs(1);
/// As much is shown of a part, unless less is asked for.
const BYTES: u64 = 400;

static SERVED: AtomicUsize = AtomicUsize::new(0);

/// What the page has asked for.
pub fn of(question: &str) -> Answer {
    if SERVED.fetch_add(1, Ordering::SeqCst) >= MOST {
        SERVED.fetch_sub(1, Ordering::SeqCst);
        return Answer::too_many();
    }
    let served = Served;
    let source = open(question);
    Answer::events(move |page| {
        let _served = served;
        match source {
            Ok(mut source) => tell(&mut source, page),
            Err(failure) => event(page, "end", &failure.what),
        }
    })
}

/// Counted as long as it is there.
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
    // The page learns that the tap has begun.
    event(page, "begin", "")?;
    let mut number = 0;
    loop {
        match source.next(Some(Instant::now() + PACE)) {
            Ok(Next::Copy(copy)) => {
                number += 1;
                let parts: Vec<Message> =
                    copy.parts.iter().map(|part| Message::from(&part.bytes[..])).collect();
                event(page, "message", &object(&copy, &parts, number).to_string())?;
            }
            Ok(Next::Missed(count)) => event(page, "missed", &count.to_string())?,
            Ok(Next::Time) => page.send(":\n\n".to_owned())?,
            Ok(Next::Ended) => return event(page, "end", "the program has ended"),
            Err(failure) => return event(page, "end", &failure.what),
        }
    }
}

/// One event. The text has no ends of lines but those of a failure.
fn event(page: &Events, name: &str, text: &str) -> io::Result<()> {
    page.send(format!("event: {name}\ndata: {}\n\n", text.replace('\n', " ")))
}
