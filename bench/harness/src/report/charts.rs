//! The report's charts, each from the results to one SVG.

use super::svg::{Anchor, Svg};
use crate::results::{Figure, Results, Summary};
use crate::scenario::{Cell, pattern_title, size_title};
use crate::table::{ratio_text, three, value};

const WIDTH: f64 = 1040.0;
pub(super) const RATE: &str = "messages_per_second";
/// The patterns whose cells are transports times sizes.
pub(super) const MATRIX: [&str; 3] = ["push_pull", "router_router", "pub_sub"];

/// The one-way cells of one variant (API and processes), which the ratio and the absolute chart show.
pub(super) fn one_way<'a>(results: &'a Results, variant: &Option<String>) -> Vec<&'a Cell> {
    results
        .distinct_cells()
        .into_iter()
        .filter(|cell| MATRIX.contains(&cell.pattern.as_str()) && cell.variant() == *variant)
        .collect()
}

/// What went wrong in a figure, if anything: such a bar is not a speed.
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

/// Consecutive cells with the same key, with their first position and number.
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

/// Throughput of `library` by the reference's: a bar per cell, up from 1x where won, down where lost.
pub(super) fn ratios(results: &Results, library: &str, cells: &[&Cell]) -> String {
    let all: Vec<f64> = cells
        .iter()
        .filter_map(|cell| results.ratio(cell, library, RATE))
        .flat_map(|r| r.pairs.clone())
        .collect();
    let (low, high) = crate::statistics::range(&all);
    // Room for a label beyond the lowest and the highest whisker.
    let bottom = (low.clamp(0.02, 0.71).log2() - 0.25).floor();
    let top = (high.clamp(1.5, 256.0).log2() + 0.25).ceil();
    let (left, right, above, height) = (46.0, 8.0, 30.0, 240.0);
    let mut svg = Svg::new(WIDTH, above + height + 46.0);
    let y = |ratio: f64| above + height * (top - ratio.max(1e-3).log2().clamp(bottom, top)) / (top - bottom);

    for power in bottom as i32..=top as i32 {
        let tick = 2f64.powi(power);
        svg.line(if power == 0 { "one" } else { "grid" }, (left, y(tick)), (WIDTH - right, y(tick)));
        let label = if tick < 1.0 { format!("{tick}x") } else { format!("{tick:.0}x") };
        svg.text("tick", Anchor::End, (left - 6.0, y(tick) + 4.0), &label);
    }
    let patterns = groups(cells, |cell| cell.pattern.clone());
    let transports = groups(cells, |cell| (cell.pattern.clone(), cell.transport.clone()));
    let gaps = 8.0 * transports.len() as f64 + 10.0 * patterns.len() as f64;
    let step = ((WIDTH - left - right - gaps) / cells.len().max(1) as f64).min(60.0);
    let bar = step * 0.82;
    let mut x = left;
    for (first, count) in patterns {
        let began = x + 5.0;
        x += 5.0;
        for &(start, length) in transports.iter().filter(|(s, _)| (first..first + count).contains(s)) {
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
                    // A label at the tip would sit on the whisker.
                    let tip =
                        if ratio.ratio >= 1.0 { y(most.max(ratio.ratio)) - 4.0 } else { y(least) + 11.0 };
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
        svg.text("head", Anchor::Middle, ((began + x) / 2.0, 14.0), pattern_title(&cells[first].pattern));
        x += 5.0;
        svg.line("part", (x, 4.0), (x, above + height + 36.0));
    }
    svg.finish("throughput ratio of each cell")
}

/// Two digits are enough above a bar.
fn three_short(ratio: f64) -> String {
    if ratio >= 10.0 { format!("{ratio:.0}") } else { format!("{ratio:.1}") }
}

/// Messages per second of every library, one small chart per pattern and transport, logarithmic.
pub(super) fn absolute(results: &Results, cells: &[&Cell]) -> String {
    let rates: Vec<f64> = cells
        .iter()
        .flat_map(|cell| results.libraries.iter().filter_map(|l| results.figure(cell, &l.name, RATE)))
        .filter(|f| f.runs > 0)
        .map(|f| f.summary.median)
        .collect();
    let (low, high) = crate::statistics::range(&rates);
    let (bottom, top) = ((low.max(1.0) / 1.3).log10().floor(), (high.max(10.0) * 1.6).log10());
    let mut html = String::from("<div class=\"grid3\">");
    for (first, count) in groups(cells, |cell| (cell.pattern.clone(), cell.transport.clone())) {
        let (width, above, height, left) = (340.0, 26.0, 130.0, 38.0);
        let mut svg = Svg::new(width, above + height + 22.0);
        let y =
            |rate: f64| above + height * (top - rate.max(1.0).log10().clamp(bottom, top)) / (top - bottom);
        for decade in bottom as i32..=top.floor() as i32 {
            let tick = 10f64.powi(decade);
            svg.line("grid", (left, y(tick)), (width, y(tick)));
            svg.text("tick", Anchor::End, (left - 5.0, y(tick) + 4.0), &short_rate(tick));
        }
        let title = format!("{} {}", pattern_title(&cells[first].pattern), cells[first].transport);
        svg.text("head", Anchor::Start, (left, 14.0), &title);
        let step = (width - left) / count as f64;
        let bar = (step * 0.86 / results.libraries.len() as f64).min(36.0);
        for (at, cell) in cells[first..first + count].iter().enumerate() {
            let middle = left + step * (at as f64 + 0.5);
            svg.text("tick", Anchor::Middle, (middle, above + height + 15.0), &size_title(cell.size));
            for (number, library) in results.libraries.iter().enumerate() {
                let x = middle + bar * (number as f64 - results.libraries.len() as f64 / 2.0);
                let figure = results.figure(cell, &library.name, RATE);
                let trouble = flaw(figure);
                if let Some(figure) = figure.filter(|f| f.runs > 0) {
                    let rate = figure.summary.median;
                    let class =
                        if trouble.is_some() { "bad".to_owned() } else { format!("p{}", number.min(5)) };
                    let hint = spread_hint(&library.title, cell, RATE, &figure.summary);
                    svg.bar(&class, (x + 1.0, y(rate)), (bar - 2.0, above + height - y(rate)), &hint);
                    svg.text("small", Anchor::Middle, (x + bar / 2.0, y(rate) - 3.0), &short_rate(rate));
                }
                if let Some(trouble) = trouble {
                    // Red on a red bar would not be read.
                    let class = if figure.is_some_and(|f| f.runs > 0) { "inside" } else { "flaw" };
                    svg.text(class, Anchor::Middle, (x + bar / 2.0, above + height - 4.0), trouble);
                }
            }
        }
        html += &svg.finish(&title);
    }
    html + "</div>"
}

fn spread_hint(title: &str, cell: &Cell, metric: &str, summary: &Summary) -> String {
    format!(
        "{title}, {}: {} (from {} to {})",
        cell.title(),
        value(metric, summary.median),
        value(metric, summary.min),
        value(metric, summary.max)
    )
}

/// `3.2M`, `44K`.
fn short_rate(rate: f64) -> String {
    let two = |v: f64| if v >= 9.95 { format!("{v:.0}") } else { format!("{v:.1}").replace(".0", "") };
    match rate {
        r if r >= 1e6 => two(r / 1e6) + "M",
        r if r >= 1e3 => two(r / 1e3) + "K",
        r => format!("{r:.0}"),
    }
}

/// One row of bars for each cell and metric, a bar for each library; `mark` is a line across all of them.
pub(super) fn rows(results: &Results, rows: &[(&Cell, &str, String)], mark: Option<(f64, &str)>) -> String {
    let (left, right, bar, gap) = (200.0, 140.0, 15.0, 12.0);
    let row = bar * results.libraries.len() as f64 + gap;
    let above = if mark.is_some() { 20.0 } else { 4.0 };
    let figure = |cell: &Cell, metric: &str, library: &str| results.figure(cell, library, metric);
    let longest = rows
        .iter()
        .flat_map(|(cell, metric, _)| results.libraries.iter().filter_map(|l| figure(cell, metric, &l.name)))
        .map(|f| f.summary.median)
        .fold(1e-9, f64::max);
    let x = |v: f64| left + (WIDTH - left - right) * v / longest;
    let mut svg = Svg::new(WIDTH, above + row * rows.len() as f64 + 4.0);
    for (at, (cell, metric, label)) in rows.iter().enumerate() {
        let y = above + row * at as f64;
        let middle = y + (row - gap) / 2.0 + 4.0;
        svg.text("label", Anchor::End, (left - 10.0, middle), label);
        for (number, library) in results.libraries.iter().enumerate() {
            let y = y + bar * number as f64;
            let figure = figure(cell, metric, &library.name);
            let trouble = flaw(figure);
            let mut end = left;
            let mut said = String::new();
            if let Some(figure) = figure.filter(|f| f.runs > 0) {
                let median = figure.summary.median;
                let class = if trouble.is_some() { "bad".to_owned() } else { format!("p{}", number.min(5)) };
                let hint = spread_hint(&library.title, cell, metric, &figure.summary);
                svg.bar(&class, (left, y), (x(median) - left, bar - 2.0), &hint);
                end = x(median);
                said = value(metric, median).replace(" us", " \u{b5}s");
                if let Some(ratio) = results.ratio(cell, &library.name, metric) {
                    said += &format!("  ({}x)", ratio_text(ratio.ratio));
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
        svg.line("mark", (x(at), 16.0), (x(at), above + row * rows.len() as f64));
        svg.text("marked", Anchor::Start, (x(at) - 4.0, 11.0), what);
    }
    svg.finish("bars")
}

/// The machine over the time of the run: raw TCP, and the cache line.
pub(super) fn calibration(results: &Results) -> String {
    let samples = &results.calibration.samples;
    let last = samples.last().map_or(1.0, |s| s.at_seconds.max(1.0));
    let tcp: Vec<_> = samples.iter().map(|s| (s.at_seconds, s.tcp_mb_s)).collect();
    let line: Vec<_> = samples.iter().map(|s| (s.at_seconds, s.line_ns)).collect();
    let ping: Vec<_> = samples.iter().map(|s| (s.at_seconds, s.ping_pong_us)).collect();
    let mut html = String::from("<div class=\"grid3\">");
    for (title, unit, points) in [
        ("Raw loopback TCP, 64 KiB writes", "MB/s", tcp),
        ("Spinning raw TCP round trip", "\u{b5}s", ping),
        ("A cache line across two threads, one way", "ns", line),
    ] {
        let (width, above, height, left) = (340.0, 26.0, 80.0, 44.0);
        let mut svg = Svg::new(width, above + height + 18.0);
        // One sample that met another program must not flatten the rest.
        let mut values: Vec<f64> = points.iter().map(|p| p.1).collect();
        values.sort_by(f64::total_cmp);
        let usual = values.get(values.len() * 9 / 10).copied().unwrap_or(1.0);
        let top = (usual * 1.5).max(1e-9);
        let y = |v: f64| above + height * (1.0 - (v / top).min(1.0));
        svg.text("head", Anchor::Start, (0.0, 14.0), title);
        for tick in [0.0, usual] {
            svg.line("grid", (left, y(tick)), (width, y(tick)));
            svg.text("tick", Anchor::End, (left - 5.0, y(tick) + 4.0), &format!("{tick:.0}"));
        }
        let points: Vec<_> =
            points.iter().map(|(at, v)| (left + (width - left) * at / last, y(*v))).collect();
        svg.path("trace", &points);
        svg.text("tick", Anchor::End, (width, above + height + 14.0), &format!("{unit} over {last:.0} s"));
        html += &svg.finish(title);
    }
    html + "</div>"
}
