//! Formats counts, times and bytes briefly for people.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the current time in microseconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// Formats a count with at most five characters: 999, 12.3k, 4.56M.
pub fn count(value: u64) -> String {
    number(value as f64)
}

/// Formats a rate like a count, with a decimal below ten.
pub fn rate(value: f64) -> String {
    if value > 0.0 && value < 10.0 { format!("{value:.1}") } else { number(value) }
}

fn number(value: f64) -> String {
    let (scaled, unit) = match value {
        value if value < 999.5 => return format!("{value:.0}"),
        value if value < 999.5e3 => (value / 1e3, "k"),
        value if value < 999.5e6 => (value / 1e6, "M"),
        value if value < 999.5e9 => (value / 1e9, "G"),
        value => (value / 1e12, "T"),
    };
    match scaled {
        scaled if scaled < 9.995 => format!("{scaled:.2}{unit}"),
        scaled if scaled < 99.95 => format!("{scaled:.1}{unit}"),
        scaled => format!("{scaled:.0}{unit}"),
    }
}

/// Formats bytes with decimal prefixes.
pub fn bytes(value: u64) -> String {
    format!("{}B", number(value as f64))
}

/// Formats the time between two moments with at most six characters: 0.3s, 12s, 3m05s, 2h10m,
/// 5d03h. A clock that was set back gives 0.
pub fn span(from: u64, to: u64) -> String {
    time(Duration::from_micros(to.saturating_sub(from)))
}

/// Formats a time in the same way.
pub fn time(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{:.1}s", (time.as_millis() / 100) as f64 / 10.0),
        seconds @ ..60 => format!("{seconds}s"),
        seconds @ ..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        seconds @ ..86400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        seconds => format!("{}d{:02}h", seconds / 86400, seconds / 3600 % 24),
    }
}

/// Formats the round trip of a heartbeat in microseconds, or `-` if there was none.
pub fn round_trip(micros: u64) -> String {
    match micros {
        0 => "-".to_owned(),
        micros @ ..1000 => format!("{micros}µs"),
        micros @ ..10_000 => format!("{:.1}ms", micros as f64 / 1e3),
        micros @ ..1_000_000 => format!("{}ms", micros / 1000),
        micros => format!("{:.1}s", micros as f64 / 1e6),
    }
}

/// Formats a count with its noun: `1 peer`, `2 peers`, `2 processes`.
pub fn many(count: usize, what: &str) -> String {
    let end = match count {
        1 => "",
        _ if what.ends_with('s') => "es",
        _ => "s",
    };
    format!("{count} {what}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stay_short() {
        for (value, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1.00k"),
            (9_999, "10.0k"),
            (99_999, "100k"),
            (999_999, "1.00M"),
            (12_345_678, "12.3M"),
            (u64::MAX, "18446744T"),
        ] {
            assert_eq!(count(value), text);
        }
        assert_eq!([rate(0.0), rate(0.25), rate(12.0), rate(1234.0)], ["0", "0.2", "12", "1.23k"]);
        assert_eq!([span(5, 0), span(0, 350_000), span(0, 185_000_000)], ["0.0s", "0.3s", "3m05s"]);
        assert_eq!(
            [time(Duration::from_secs(7_800)), time(Duration::from_secs(442_800))],
            ["2h10m", "5d03h"]
        );
        assert_eq!(
            [round_trip(0), round_trip(80), round_trip(4_300), round_trip(43_000)],
            ["-", "80µs", "4.3ms", "43ms"]
        );
        assert_eq!([many(1, "peer"), many(0, "peer")], ["1 peer", "0 peers"]);
        assert_eq!([many(1, "process"), many(2, "process")], ["1 process", "2 processes"]);
    }
}
