//! `taut ps`: lists the observed processes.

use std::sync::LazyLock;

use super::table::{Column, Side, Table};
use super::units::{count, many, now, span};
use super::{ProcessSnapshot, SocketSelection, json, report_none, users};
use crate::args::Ps;
use crate::failure::Result;
use crate::format::escaped;

/// Index of the column of the user.
const USER: usize = 1;
const HEADS: &[Column] = &[
    Column("PID", Side::Right),
    Column("USER", Side::Left),
    Column("PROGRAM", Side::Left),
    Column("VERSION", Side::Left),
    Column("SINCE", Side::Right),
    Column("AGE", Side::Right),
    Column("SOCKETS", Side::Right),
    Column("PEERS", Side::Right),
    Column("OUT", Side::Right),
    Column("IN", Side::Right),
    Column("QUEUED", Side::Right),
    Column("DROPPED", Side::Right),
    Column("", Side::Left),
];

/// Columns if all processes belong to the user of this tool.
static OF_ONE_USER: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let wanted = HEADS.iter().enumerate().filter(|(index, _)| *index != USER);
    wanted.map(|(_, Column(name, side))| Column(name, *side)).collect()
});

/// Prints the list. Removes the files of processes that ended long ago.
pub fn run(args: &Ps) -> Result<()> {
    tautline_observe::remove_outdated();
    let (seen, faults) = super::all(SocketSelection::new(args.all));
    super::report_unreadable(&faults);
    if args.json {
        let lines: String = seen.iter().map(|seen| format!("{}\n", json::summary(seen))).collect();
        return crate::print(&lines);
    }
    if seen.is_empty() {
        if faults.is_empty() {
            report_none();
        }
        return Ok(());
    }
    let (now, with_user) = (now(), users::are_several(&seen));
    let mut table = Table::new(if with_user { HEADS } else { &OF_ONE_USER });
    for seen in &seen {
        let mut row: Vec<String> = row(seen, now).into();
        if !with_user {
            row.remove(USER);
        }
        table.add_row(row);
    }
    crate::print(&table.text(""))
}

fn row(seen: &ProcessSnapshot, now: u64) -> [String; 13] {
    let ProcessSnapshot { found, user, reading, .. } = seen;
    let sum = |value: fn(&tautline_observe::Socket) -> u64| count(reading.sockets.iter().map(value).sum());
    [
        reading.name(),
        escaped(user.as_bytes()),
        escaped(reading.process.program.as_bytes()),
        escaped(reading.process.version.as_bytes()),
        span(reading.process.since, if found.is_running { now } else { reading.process.written }),
        span(reading.process.written, now),
        reading.sockets.len().to_string(),
        reading.peers.len().to_string(),
        sum(|socket| socket.messages_out),
        sum(|socket| socket.messages_in),
        sum(|socket| socket.queued_out + socket.queued_in),
        sum(|socket| socket.dropped + socket.unroutable + socket.lost),
        match (seen.end(now), reading.routes.len()) {
            (Some(end), _) => end,
            (None, 0) => String::new(),
            (None, routes) => many(routes, "route"),
        },
    ]
}
