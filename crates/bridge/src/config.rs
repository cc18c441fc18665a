//! Configuration file of a bridge: the NATS servers and the routes.
//! `docs/reference/bridge-file.md` describes it.

mod file;
mod nats;
mod route;

use std::collections::HashSet;
use std::path::Path;

pub use nats::{Login, Nats, Tls, check_pem};
pub use route::{Job, Link, Route, SocketType, Start};

use crate::fault::BridgeError;
use tautline_names::file::read_text;

/// A checked configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub(crate) nats: Nats,
    pub(crate) streams: Vec<Stream>,
    pub(crate) routes: Vec<Route>,
}

/// A stream that the bridge creates if it does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// Line in the file.
    pub line: usize,
    /// Name of the stream.
    pub name: String,
    /// Subjects that the stream stores.
    pub subjects: Vec<String>,
    /// Number of servers that store the stream.
    pub replicas: usize,
    /// Age limit of its messages. Zero: no limit.
    pub max_age: std::time::Duration,
    /// Size limit in bytes. 0: no limit.
    pub max_bytes: u64,
    /// Time for which the stream remembers the ids of stored messages.
    pub duplicates: std::time::Duration,
    /// True if the stream removes acknowledged messages.
    pub work_queue: bool,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// Returns the line and the reason.
    pub fn load(path: &Path) -> Result<Config, BridgeError> {
        let text = read_text(path).map_err(|error| BridgeError::new(0, error.to_string()))?;
        Config::parse(&text)
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// Returns the line and the reason.
    pub fn parse(text: &str) -> Result<Config, BridgeError> {
        let lines = Lines(text);
        let file: file::File = toml::from_str(text).map_err(|error| {
            // Do not show the text of the line: it may hold a secret.
            BridgeError::new(lines.of(error.span()), error.message().replace('\n', " "))
        })?;
        let nats = nats::check(file.nats.into_inner(), lines)?;
        let mut names = HashSet::new();
        let mut streams = Vec::new();
        for stream in file.streams {
            let stream = stream_of(stream.into_inner(), lines)?;
            if !names.insert(stream.name.clone()) {
                return Err(BridgeError::new(
                    stream.line,
                    format!("the stream {} is defined twice", stream.name),
                ));
            }
            streams.push(stream);
        }
        let mut names = HashSet::new();
        let mut routes = Vec::new();
        for route in file.routes {
            let route = route::check(route, lines)?;
            if !names.insert(route.name.clone()) {
                return Err(BridgeError::new(
                    route.line,
                    format!("the route {} is defined twice", route.name),
                ));
            }
            routes.push(route);
        }
        if routes.is_empty() {
            return Err(BridgeError::new(0, "there is no route: add a table [[routes]]"));
        }
        Ok(Config { nats, streams, routes })
    }

    /// Returns the number of routes.
    pub fn routes(&self) -> usize {
        self.routes.len()
    }
}

/// Text of the file, used to find the lines of its values.
#[derive(Clone, Copy)]
struct Lines<'a>(&'a str);

impl Lines<'_> {
    fn of(self, span: Option<std::ops::Range<usize>>) -> usize {
        let start = span.map_or(0, |span| span.start);
        self.0.get(..start).unwrap_or(self.0).matches('\n').count() + 1
    }

    /// Returns the line of a value, and the value.
    fn take<T>(self, value: toml::Spanned<T>) -> (usize, T) {
        (self.of(Some(value.span())), value.into_inner())
    }
}

/// Checks the name of a stream, a consumer or a route. NATS, file names and metrics accept
/// these characters.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

fn name(value: toml::Spanned<String>, lines: Lines<'_>) -> Result<(usize, String), BridgeError> {
    let (line, name) = lines.take(value);
    if !is_name(&name) {
        return Err(BridgeError::new(
            line,
            format!("{name:?} is not a valid name: use at most 64 letters, digits, `-` and `_`"),
        ));
    }
    Ok((line, name))
}

fn duration(
    value: Option<toml::Spanned<String>>,
    lines: Lines<'_>,
) -> Result<Option<std::time::Duration>, BridgeError> {
    let Some(value) = value else { return Ok(None) };
    let (line, text) = lines.take(value);
    humantime::parse_duration(&text).map(Some).map_err(|_| {
        BridgeError::new(
            line,
            format!("{text:?} is not a duration: use a form such as \"2m\", \"30s\", \"250ms\""),
        )
    })
}

fn stream_of(stream: file::Stream, lines: Lines<'_>) -> Result<Stream, BridgeError> {
    let (line, name) = name(stream.name, lines)?;
    let mut subjects = Vec::new();
    for subject in stream.subjects {
        let (line, subject) = lines.take(subject);
        crate::topic::Mapping::new(&subject, b"", b'.', false)
            .map_err(|what| BridgeError::new(line, what))?;
        subjects.push(subject);
    }
    if subjects.is_empty() {
        return Err(BridgeError::new(line, format!("the stream {name} has no subjects")));
    }
    let replicas = match stream.replicas {
        None => 1,
        Some(value) => match lines.take(value) {
            (_, replicas @ 1..=5) => replicas,
            (line, _) => return Err(BridgeError::new(line, "`replicas` must be from 1 to 5")),
        },
    };
    let duplicates = duration(stream.duplicate_window, lines)?;
    Ok(Stream {
        line,
        name,
        subjects,
        replicas,
        max_age: duration(stream.max_age, lines)?.unwrap_or_default(),
        max_bytes: stream.max_bytes.unwrap_or(0),
        duplicates: duplicates.unwrap_or(std::time::Duration::from_secs(120)),
        work_queue: stream.work_queue.unwrap_or(false),
    })
}

#[cfg(test)]
mod tests;
