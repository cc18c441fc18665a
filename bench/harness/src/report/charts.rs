//! Charts of the report, each from the results to one SVG.

use super::micro;
use super::svg::{Anchor, Svg};
use crate::process::RATE;
use crate::results::{Figure, Results};
use crate::scenario::{Cell, pattern_title, size_title};
use crate::table::{ratio_text, three, value};

/// Width of a small chart. At about this size, a phone shows one per row and a wide screen three.
const CHART: f64 = 360.0;
/// Patterns whose cells are transports times sizes.
pub(super) const MATRIX: [&str; 3] = ["push_pull", "router_router", "pub_sub"];

/// One-way cells of one variant (API and processes), for the ratio chart and the absolute chart.
pub(super) fn one_way<'a>(results: &'a Results, variant: &Option<String>) -> Vec<&'a Cell> {
    results
        .distinct_cells()
        .into_iter()
        .filter(|cell| MATRIX.contains(&cell.pattern.as_str()) && cell.variant() == *variant)
        .collect()
}

/// Returns the failure of a figure, if any. The bar of a failure is not a speed.
fn flaw(figure: Option<&Figure>) -> Option<&'static str> {
    match figure {
        None => Some("not run"),
        Some(f) if f.unsupported.is_some() => Some("not there"),
        Some(f) if f.runs == 0 => Some("failed"),
        Some(f) if f.lost > 0 => Some("lost"),
        Some(f) if f.corrupted > 0 => Some("corrupted"),
        Some(f) if f.reordered > 0 => Some("reordered"),
        Some(f) if f.failed > 0 => Some("failed at times"),
        _ => None,
    }
}

/// Groups consecutive cells with the same key, with their first position and number.
fn groups<K: PartialEq>(cells: &[&Cell], key: impl Fn(&Cell) -> K) -> Vec<(usize, usize)> {
    let mut groups: Vec<(usize, usize)> = Vec::new();
    for (at, cell) in cells.iter().enumerate() {
        match groups.last_mut() {
            Some((first, count)) if key(cells[*first]) == key(cell) => *count += 1,
            _ => groups.push((at, 1)),
        }
    }
    groups
}

/// Throughput of `library` relative to the reference, a chart for each pattern: a bar for each cell, up from
/// 1x if it won, down if it lost.
pub(super) fn ratios(results: &Results, library: &str, cells: &[&Cell]) -> String {
    let all: Vec<f64> = cells
        .iter()
        .filter_map(|cell| results.ratio(cell, library, RATE))
        .flat_map(|r| r.pairs.clone())
        .collect();
    let (low, high) = crate::statistics::range(&all);
    // Room for a label beyond the lowest and the highest whisker.
    let bottom = (low.clamp(0.02, 0.71).log2() - 0.25).floor();
    let top = (high.clamp(1.5, 256.0).log2() + 0.35).ceil();
    let mut html = String::from("<div class=\"grid\">");
    for (first, count) in groups(cells, |cell| cell.pattern.clone()) {
        html += &ratios_of(results, library, &cells[first..first + count], (bottom, top));
    }
    html + "</div>"
}

/// Draws the chart of one pattern. `bottom` and `top` are the powers of two at its ends.
fn ratios_of(results: &Results, library: &str, cells: &[&Cell], (bottom, top): (f64, f64)) -> String {
    let (left, above, height) = (34.0, 26.0, 210.0);
    let mut svg = Svg::new(CHART, above + height + 42.0);
    let y = |ratio: f64| above + height * (top - ratio.max(1e-3).log2().clamp(bottom, top)) / (top - bottom);
    for power in bottom as i32..=top as i32 {
        let tick = 2f64.powi(power);
        svg.line(if power == 0 { "one" } else { "gridline" }, (left, y(tick)), (CHART, y(tick)));
        let label = if tick < 1.0 { format!("{tick}x") } else { format!("{tick:.0}x") };
        svg.text("tick", Anchor::End, (left - 5.0, y(tick) + 4.0), &label);
    }
    let title = cells.first().map_or("", |cell| pattern_title(&cell.pattern));
    svg.text("head", Anchor::Start, (left, 14.0), title);
    let transports = groups(cells, |cell| cell.transport.clone());
    let step = (CHART - left - 8.0 * transports.len() as f64) / cells.len().max(1) as f64;
    let bar = (step * 0.82).min(40.0);
    let mut x = left;
    for (start, length) in transports {
        x += 4.0;
        for cell in &cells[start..start + length] {
            let middle = x + step / 2.0;
            let size = size_title(cell.size).replace(" KiB", "K").replace(" MiB", "M").replace(" B", "");
            svg.text("tick", Anchor::Middle, (middle, above + height + 14.0), &size);
            let figure = results.figure(cell, library, RATE);
            let reference = results.figure(cell, &results.libraries[0].name, RATE);
            let trouble = flaw(figure).or_else(|| flaw(reference));
            if let Some(ratio) = results.ratio(cell, library, RATE) {
                let class = match (trouble, ratio.won()) {
                    (Some(_), _) => "bad",
                    (None, true) => "p1",
                    (None, false) => "under",
                };
                let (from, to) = (y(ratio.ratio).min(y(1.0)), y(ratio.ratio).max(y(1.0)));
                let (least, most) = crate::statistics::range(&ratio.pairs);
                let hint = format!(
                    "{}: {}x, pairs {} to {}{}",
                    cell.title(),
                    ratio_text(ratio.ratio),
                    three(least),
                    three(most),
                    trouble.map_or(String::new(), |t| format!(", {t}"))
                );
                svg.bar(class, (middle - bar / 2.0, from), (bar, to - from), &hint);
                svg.line("whisker", (middle, y(least)), (middle, y(most)));
                // A label at the tip would overlap the whisker.
                let tip = if ratio.ratio >= 1.0 { y(most.max(ratio.ratio)) - 4.0 } else { y(least) + 11.0 };
                svg.text("value", Anchor::Middle, (middle, tip), &three_short(ratio.ratio));
            }
            if let Some(trouble) = trouble {
                svg.text("flaw", Anchor::Middle, (middle, above + height - 4.0), trouble);
            }
            x += step;
        }
        let middle = x - step * length as f64 / 2.0;
        svg.text("label", Anchor::Middle, (middle, above + height + 31.0), &cells[start].transport);
        x += 4.0;
    }
    svg.finish(&format!("times as many messages per second as the reference, {title}"))
}

/// Two digits are enough above a bar.
fn three_short(ratio: f64) -> String {
    if ratio >= 10.0 { format!("{ratio:.0}") } else { format!("{ratio:.1}") }
}

/// Returns the lowest and the highest of some values, if they are known.
type Ends = Option<(f64, f64)>;

/// Content of a small chart for a figure.
pub(super) struct Quantity {
    /// Middle, and both ends.
    pub(super) of: fn(&Figure) -> (f64, Ends),
    /// Formats a value in a few characters.
    pub(super) short: fn(f64) -> String,
    /// Formats a value with its unit.
    pub(super) long: fn(f64) -> String,
}

/// Messages per second.
pub(super) const RATES: Quantity = Quantity {
    of: |figure| (figure.summary.median, Some((figure.summary.min, figure.summary.max))),
    short: short_rate,
    long: crate::table::rate,
};

/// Processor time for each message.
pub(super) const PROCESSOR: Quantity = Quantity {
    of: |figure| (figure.cpu_seconds_per_million_messages, None),
    short: |seconds| if seconds >= 9.95 { format!("{seconds:.0}") } else { format!("{seconds:.2}") },
    long: |seconds| format!("{} \u{b5}s a message", three(seconds)),
};

/// Draws a quantity of every library, one small chart for each pattern and transport, logarithmic.
pub(super) fn absolute(results: &Results, cells: &[&Cell], quantity: &Quantity) -> String {
    let values: Vec<f64> = cells
        .iter()
        .flat_map(|cell| results.libraries.iter().filter_map(|l| results.figure(cell, &l.name, RATE)))
        .filter(|f| f.runs > 0)
        .map(|f| (quantity.of)(f).0)
        .collect();
    let (low, high) = crate::statistics::range(&values);
    let (bottom, top) = ((low.max(1e-6) / 1.3).log10().floor(), (high.max(1e-5) * 2.0).log10());
    let mut html = String::from("<div class=\"grid\">");
    for (first, count) in groups(cells, |cell| (cell.pattern.clone(), cell.transport.clone())) {
        let (above, height, left) = (26.0, 130.0, 38.0);
        let mut svg = Svg::new(CHART, above + height + 22.0);
        let y =
            |value: f64| above + height * (top - value.max(1e-9).log10().clamp(bottom, top)) / (top - bottom);
        for decade in bottom as i32..=top.floor() as i32 {
            let tick = 10f64.powi(decade);
            svg.line("gridline", (left, y(tick)), (CHART, y(tick)));
            svg.text("tick", Anchor::End, (left - 5.0, y(tick) + 4.0), &(quantity.short)(tick));
        }
        let title = format!("{} {}", pattern_title(&cells[first].pattern), cells[first].transport);
        svg.text("head", Anchor::Start, (left, 14.0), &title);
        let step = (CHART - left) / count as f64;
        let bar = (step * 0.86 / results.libraries.len() as f64).min(36.0);
        for (at, cell) in cells[first..first + count].iter().enumerate() {
            let middle = left + step * (at as f64 + 0.5);
            svg.text("tick", Anchor::Middle, (middle, above + height + 15.0), &size_title(cell.size));
            for (number, library) in results.libraries.iter().enumerate() {
                let x = middle + bar * (number as f64 - results.libraries.len() as f64 / 2.0);
                let figure = results.figure(cell, &library.name, RATE);
                let trouble = flaw(figure);
                if let Some(figure) = figure.filter(|f| f.runs > 0) {
                    let (value, ends) = (quantity.of)(figure);
                    let class =
                        if trouble.is_some() { "bad".to_owned() } else { format!("p{}", number.min(5)) };
                    let hint = spread_hint(&library.title, cell, quantity.long, value, ends);
                    svg.bar(&class, (x + 1.0, y(value)), (bar - 2.0, above + height - y(value)), &hint);
                    let centre = x + bar / 2.0;
                    let mut tip = y(value);
                    if let Some((least, most)) = ends {
                        svg.line("whisker", (centre, y(least)), (centre, y(most)));
                        tip = y(most);
                    }
                    svg.text("small", Anchor::Middle, (centre, tip - 3.0), &(quantity.short)(value));
                }
                if let Some(trouble) = trouble {
                    // Red text on a red bar would be unreadable.
                    let class = if figure.is_some_and(|f| f.runs > 0) { "inside" } else { "flaw" };
                    svg.text(class, Anchor::Middle, (x + bar / 2.0, above + height - 4.0), trouble);
                }
            }
        }
        html += &svg.finish(&title);
    }
    html + "</div>"
}

fn spread_hint(title: &str, cell: &Cell, long: impl Fn(f64) -> String, middle: f64, ends: Ends) -> String {
    let ends =
        ends.map_or(String::new(), |(least, most)| format!(" (from {} to {})", long(least), long(most)));
    format!("{title}, {}: {}{ends}", cell.title(), long(middle))
}

/// Formats a count: `3.2M`, `44K`.
fn short_rate(rate: f64) -> String {
    let two = |v: f64| if v >= 9.95 { format!("{v:.0}") } else { format!("{v:.1}").replace(".0", "") };
    match rate {
        r if r >= 1e6 => two(r / 1e6) + "M",
        r if r >= 1e3 => two(r / 1e3) + "K",
        r => format!("{r:.0}"),
    }
}

/// Draws a heading and a bar for each library, for each cell and metric. `mark` is a line across all of them.
pub(super) fn rows(results: &Results, rows: &[(&Cell, &str, String)], mark: Option<(f64, &str)>) -> String {
    const WIDTH: f64 = 480.0;
    let (left, right, bar, head, gap) = (2.0, 128.0, 15.0, 17.0, 8.0);
    let row = head + bar * results.libraries.len() as f64 + gap;
    let above = if mark.is_some() { 20.0 } else { 4.0 };
    let figure = |cell: &Cell, metric: &str, library: &str| results.figure(cell, library, metric);
    let longest = rows
        .iter()
        .flat_map(|(cell, metric, _)| results.libraries.iter().filter_map(|l| figure(cell, metric, &l.name)))
        .map(|f| f.summary.median)
        .fold(1e-9, f64::max);
    let x = |v: f64| left + (WIDTH - left - right) * (v / longest).min(1.0);
    let end = above + row * rows.len() as f64;
    let mut svg = Svg::new(WIDTH, end + 18.0);
    if let Some((_, metric, _)) = rows.first() {
        for share in [0.0, 0.5, 1.0] {
            let tick = longest * share;
            svg.line("gridline", (x(tick), above), (x(tick), end));
            let anchor = if share == 0.0 { Anchor::Start } else { Anchor::Middle };
            svg.text("tick", anchor, (x(tick), end + 13.0), &micro(&value(metric, tick)));
        }
    }
    for (at, (cell, metric, label)) in rows.iter().enumerate() {
        let y = above + row * at as f64;
        svg.text("label", Anchor::Start, (left, y + 12.5), label);
        for (number, library) in results.libraries.iter().enumerate() {
            let y = y + head + bar * number as f64;
            let figure = figure(cell, metric, &library.name);
            let trouble = flaw(figure);
            let mut end = left;
            let mut said = String::new();
            if let Some(figure) = figure.filter(|f| f.runs > 0) {
                let summary = &figure.summary;
                let class = if trouble.is_some() { "bad".to_owned() } else { format!("p{}", number.min(5)) };
                let ends = Some((summary.min, summary.max));
                let hint =
                    spread_hint(&library.title, cell, |v| micro(&value(metric, v)), summary.median, ends);
                svg.bar(&class, (left, y), (x(summary.median) - left, bar - 2.0), &hint);
                let centre = y + bar / 2.0 - 1.0;
                svg.line("whisker", (x(summary.min), centre), (x(summary.max), centre));
                end = x(summary.median.max(summary.max));
                said = micro(&value(metric, summary.median));
                if let Some(ratio) = results.ratio(cell, &library.name, metric) {
                    said += &format!(" ({}x better)", ratio_text(ratio.ratio));
                }
            }
            match trouble {
                Some(trouble) => svg.text(
                    "flaw",
                    Anchor::Start,
                    (end + 5.0, y + bar - 4.5),
                    format!("{said} {trouble}").trim(),
                ),
                None => svg.text("value", Anchor::Start, (end + 5.0, y + bar - 4.5), &said),
            }
        }
    }
    if let Some((at, what)) = mark {
        svg.line("mark", (x(at), 16.0), (x(at), end));
        svg.text("marked", Anchor::Start, (x(at), 11.0), what);
    }
    format!("<div class=\"rows\">{}</div>", svg.finish("bars"))
}

/// Draws the machine's speed over the time of the run: raw TCP, and the cache line.
pub(super) fn calibration(results: &Results) -> String {
    let samples = &results.calibration.samples;
    let last = samples.last().map_or(1.0, |s| s.at_seconds.max(1.0));
    let tcp: Vec<_> = samples.iter().map(|s| (s.at_seconds, s.tcp_mb_s)).collect();
    let line: Vec<_> = samples.iter().map(|s| (s.at_seconds, s.line_ns)).collect();
    let ping: Vec<_> = samples.iter().map(|s| (s.at_seconds, s.ping_pong_us)).collect();
    let mut html = String::from("<div class=\"grid\">");
    for (title, unit, points) in [
        ("Raw loopback TCP, 64 KiB writes", "MB/s", tcp),
        ("Spinning raw TCP round trip", "\u{b5}s", ping),
        ("A cache line across two threads, one way", "ns", line),
    ] {
        let (above, height, left) = (26.0, 80.0, 44.0);
        let mut svg = Svg::new(CHART, above + height + 18.0);
        // One sample that another program disturbed must not flatten the others.
        let mut values: Vec<f64> = points.iter().map(|p| p.1).collect();
        values.sort_by(f64::total_cmp);
        let usual = values.get(values.len() * 9 / 10).copied().unwrap_or(1.0);
        let top = (usual * 1.5).max(1e-9);
        let y = |v: f64| above + height * (1.0 - (v / top).min(1.0));
        svg.text("head", Anchor::Start, (0.0, 14.0), title);
        for tick in [0.0, usual] {
            svg.line("gridline", (left, y(tick)), (CHART, y(tick)));
            svg.text("tick", Anchor::End, (left - 5.0, y(tick) + 4.0), &format!("{tick:.0}"));
        }
        let points: Vec<_> =
            points.iter().map(|(at, v)| (left + (CHART - left) * at / last, y(*v))).collect();
        svg.path("trace", &points);
        svg.text("tick", Anchor::End, (CHART, above + height + 14.0), &format!("{unit} over {last:.0} s"));
        html += &svg.finish(title);
    }
    html + "</div>"
}
