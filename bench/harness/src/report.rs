//! `report.html`: the results as one page without outside resources, with charts as inline SVG.
//!
//! It shows the lost cells and the failures before the charts, so that a sceptical reader finds them first.

mod charts;
mod svg;
mod tables;

use crate::process::{PROCESSOR, RATE};
use crate::results::{Figure, MachineState, Ratio, Results, smaller_is_better};
use crate::scenario::{Cell, pattern_title};
use crate::statistics::{Verdict, median, range};
use crate::table::{ratio_text, three, unit, value};
use crate::wins::Wins;
use svg::escape;

/// Returns the whole page.
pub(crate) fn html(results: &Results) -> String {
    let Some((reference, subjects)) = results.libraries.split_first() else { return String::new() };
    let mut page = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    let version = results.versions.get(&format!("{} reports", reference.name)).map_or("", String::as_str);
    let titles: Vec<_> = subjects.iter().map(|s| s.title.as_str()).collect();
    let heading = escape(&format!("{} beside {} {version}", titles.join(", "), reference.title));
    page += &format!(
        "<title>{heading}</title>\n<style>\n{}</style></head><body>\n",
        include_str!("report/style.css")
    );
    page += &format!("<h1>{heading}</h1>\n<p class=\"sub\">{}</p>\n", escape(&subtitle(results)));
    for subject in subjects {
        page += &cards(results, &subject.name);
    }
    page += &wins(results);
    page += &tables::environments(results);
    page += &problems(results);
    for subject in subjects {
        page += &not_won(results, &subject.name, &subject.title);
    }
    page += &one_way(results);
    page += &round_trips(results);
    page += &fan_out(results);
    page += &others(results);
    page += "<h2>All figures</h2>\n";
    page += "<p>Medians; small behind the ratio its 95 % bootstrap interval. Processor is user and system time per \
             message, of all threads at both ends. One cell once more: <code>scripts/run.sh --only \
             pattern=push_pull,transport=tcp,size=64</code>.</p>\n";
    page += &tables::figures(results);
    page +=
        "<h2>The machine during the run</h2>\n<p>Measured beside every pair, without any messaging library. ";
    page += &format!(
        "A virtual machine may alternate between states: the state changed during {} of {} runs. Over inproc, only runs in equal states are compared (a cache \
         line crosses in under {:.0} ns in the fast state).</p>\n",
        results.cells.iter().flat_map(|f| &f.states).filter(|s| **s == MachineState::Changed).count(),
        results.cells.iter().map(|f| f.states.len()).sum::<usize>(),
        results.calibration.fast_below_line_ns
    );
    page += &charts::calibration(results);
    page += &tables::facts(results);
    page += METHOD;
    page + "</body></html>\n"
}

const METHOD: &str = "<h2>How it was measured</h2>\n<ul class=\"plain\">\
<li>The program is one C program against the public <code>zmq.h</code>, compiled once. <code>LD_LIBRARY_PATH</code> \
selects the library. Every run reports the path of its library, which the harness checks.</li>\
<li>Runs are interleaved: the reference, then the other library, cell by cell, round by round. Every run is a new \
process.</li>\
<li>The receiver's clock runs from its first to its last message. The receiver checks the sequence number and both \
ends of every message. Both ends greet each other first, so the clock excludes handshakes.</li>\
<li>Socket options are the defaults, except the options that prevent loss: ROUTER_MANDATORY, and \
XPUB_NODROP with blocking sends. Both libraries get the same options.</li>\
<li>Each run sends the number of messages that fills the same time on its library.</li>\
<li>If a run hangs, crashes, or loses, reorders or corrupts a message, the report shows this instead of a \
speed.</li></ul>\n";

fn subtitle(results: &Results) -> String {
    let machine = &results.machine;
    format!(
        "{} \u{b7} {} \u{b7} {}, {} cores{}, {} \u{b7} {} interleaved pairs of about {} ms",
        results.title,
        results.date,
        machine.cpu,
        machine.cores,
        if machine.virtual_machine { " (virtual)" } else { "" },
        machine.kernel,
        results.number_of_pairs(),
        results.target_ms
    )
}

/// Returns the ratios of one library's rates, or of its times.
fn ratios<'a>(results: &'a Results, library: &'a str, metric: &'a str) -> impl Iterator<Item = &'a Ratio> {
    results.ratios.iter().filter(move |r| r.library == library && r.metric == metric)
}

fn card(class: &str, figure: &str, text: &str) -> String {
    format!("<div class=\"card {class}\"><b>{}</b><span>{}</span></div>\n", escape(figure), escape(text))
}

fn cards(results: &Results, library: &str) -> String {
    let rates: Vec<&Ratio> = ratios(results, library, RATE).collect();
    let mut html = String::from("<div class=\"cards\">\n");
    if !rates.is_empty() {
        let sound = |r: &&&Ratio| results.figure(&r.cell, library, RATE).is_some_and(Figure::is_sound);
        let won = rates.iter().filter(|r| r.won() && !r.is_wide()).filter(sound).count();
        // A cell without a ratio has failed: it counts as not won.
        let all = results.cells.iter().filter(|f| f.library == library && f.metric == RATE).count();
        let class = if won == all { "good" } else { "" };
        html += &card(class, &format!("{won} of {all}"), "throughput cells won");
        let values: Vec<f64> = rates.iter().map(|r| r.ratio).collect();
        let (low, high) = range(&values);
        let text =
            format!("the messages per second, median of the cells ({}x to {}x)", three(low), three(high));
        let class = if median(&values) >= 1.0 { "good" } else { "" };
        html += &card(class, &format!("{}x", three(median(&values))), &text);
        if let Some(least) = rates.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio)) {
            let class = if least.won() { "good" } else { "" };
            html += &card(
                class,
                &format!("{}x", ratio_text(least.ratio)),
                &format!("the messages per second, least of all cells: {}", least.cell.title()),
            );
        }
    }
    if let Some((middle, low, high)) = results.processor_ratio(library) {
        let class = if middle >= 1.0 { "good" } else { "" };
        let text = format!(
            "less processor time per message, median of the cells ({}x to {}x)",
            three(low),
            three(high)
        );
        html += &card(class, &format!("{}x", three(middle)), &text);
    }
    if let Some(trip) = ratios(results, library, "p50_us").next() {
        let class = if trip.won() { "good" } else { "" };
        html +=
            &card(class, &format!("{}x", three(trip.ratio)), &format!("faster: {}, p50", trip.cell.title()));
    }
    let sum = |f: fn(&Figure) -> u64| results.cells.iter().map(f).sum::<u64>();
    let figures = (sum(|f| f.lost), sum(|f| f.reordered), sum(|f| f.corrupted));
    let failed = results.cells.iter().filter(|f| f.metric != "p99_us").map(|f| f.failed).sum::<usize>();
    let class = if results.problems.is_empty() { "good" } else { "bad" };
    let text = format!("lost / reordered / corrupted, and {failed} failed runs, all libraries");
    html += &card(class, &format!("{} / {} / {}", figures.0, figures.1, figures.2), &text);
    html + "</div>\n"
}

fn problems(results: &Results) -> String {
    if results.problems.is_empty() && results.absent.is_empty() {
        return String::new();
    }
    let absent = results.absent.iter().map(|text| format!("could not take part: {text}")).collect::<Vec<_>>();
    let items: String = results
        .problems
        .iter()
        .chain(&absent)
        .map(|p| format!("<li class=\"flaw\">{}</li>", escape(p)))
        .collect();
    format!("<h2>Problems</h2>\n<ul class=\"plain\">{items}</ul>\n")
}

fn not_won(results: &Results, library: &str, title: &str) -> String {
    let mut html = format!("<h2>Cells that {} did not win</h2>\n", escape(title));
    let lost: Vec<&Ratio> = results.ratios.iter().filter(|r| r.library == library && !r.won()).collect();
    if lost.is_empty() {
        return html + "<p>No cell here is behind the reference.</p>\n";
    }
    html += "<ul class=\"plain\">";
    for ratio in lost {
        let of = |median: f64| micro(&value(&ratio.metric, median));
        html += &format!(
            "<li>{}{}: <b>{}x</b>, {} against {} (95 %: {} to {}{})</li>",
            escape(&ratio.cell.title()),
            if ratio.metric == RATE {
                String::new()
            } else {
                format!(" {}", unit(&ratio.metric).0.replace('_', " "))
            },
            ratio_text(ratio.ratio),
            of(ratio.compared.0),
            of(ratio.compared.1),
            three(ratio.interval.0),
            three(ratio.interval.1),
            if ratio.decided() == Verdict::Open {
                format!("; {}", ratio.standing_text())
            } else {
                String::new()
            }
        );
    }
    html + "</ul>\n"
}

/// The sign for a millionth, where the terminal's table has a letter.
fn micro(text: &str) -> String {
    text.replace(" us", " \u{b5}s")
}

fn legend(results: &Results) -> String {
    let items: String = results
        .libraries
        .iter()
        .enumerate()
        .map(|(n, l)| format!("<span><i class=\"p{}\"></i>{}</span>", n.min(5), escape(&l.title)))
        .collect();
    format!("<div class=\"legend\">{items}</div>\n")
}

fn one_way(results: &Results) -> String {
    let mut variants: Vec<Option<String>> = Vec::new();
    for cell in results.distinct_cells() {
        let variant = cell.variant();
        if !variants.contains(&variant) && !charts::one_way(results, &variant).is_empty() {
            variants.push(variant);
        }
    }
    let name = |variant: &Option<String>| match (variant, variants.len()) {
        (None, 1) => String::new(),
        (None, _) => "<h3>Buffers, one process</h3>\n".to_owned(),
        (Some(variant), _) => format!("<h3>With {}</h3>\n", escape(variant)),
    };
    let mut html = String::new();
    if variants.is_empty() {
        return html;
    }
    for subject in &results.libraries[1..] {
        html +=
            &format!("<h2>Throughput: {} by {}</h2>\n", escape(&subject.title), results.libraries[0].title);
        html += "<p>How many times as many messages per second; logarithmic, and 1x is level. The thin lines are the lowest and \
                 the highest pair. Sizes in bytes. <span class=\"legend\"><span><i class=\"p1\"></i>won</span><span><i class=\"under\"></i>\
                 not won</span><span><i class=\"bad\"></i>lost, corrupted or failed</span></span></p>\n";
        for variant in &variants {
            html += &name(variant);
            html += &charts::ratios(results, &subject.name, &charts::one_way(results, variant));
        }
    }
    let parts = [
        (
            "Messages per second",
            "Longer is better",
            "medians, from the lowest run to the highest",
            &charts::RATES,
        ),
        (
            "Processor time, \u{b5}s a message",
            "Shorter is better",
            "medians of user and system time of all threads at both ends",
            &charts::PROCESSOR,
        ),
    ];
    for (title, sense, what, quantity) in parts {
        html += &format!("<h2>{title}</h2>\n<p>{sense}; logarithmic, {what}.</p>\n");
        html += &legend(results);
        for variant in &variants {
            html += &name(variant);
            html += &charts::absolute(results, &charts::one_way(results, variant), quantity);
        }
    }
    html
}

fn round_trips(results: &Results) -> String {
    let cells: Vec<&Cell> = results.distinct_cells().into_iter().filter(|c| c.is_round_trip()).collect();
    if cells.is_empty() {
        return String::new();
    }
    let raw = results.calibration.ping_pong_us.median;
    let mut html =
        String::from("<h2>Round trips, REQ/REP</h2>\n<p>Shorter is better. The dashed line is a raw TCP ");
    html += "round trip without a library, both ends spinning.</p>\n";
    html += &legend(results);
    for (quantile, metric) in [("p50", "p50_us"), ("p99", "p99_us"), ("Processor time", PROCESSOR)] {
        let label = |cell: &Cell| cell.title().replace("REQ/REP ", "");
        let rows: Vec<_> = cells.iter().map(|cell| (*cell, metric, label(cell))).collect();
        html += &format!("<h3>{quantile}</h3>\n");
        let text = format!("raw TCP {} \u{b5}s", three(raw));
        html += &charts::rows(results, &rows, (metric != PROCESSOR).then_some((raw, text.as_str())));
    }
    html
}

fn fan_out(results: &Results) -> String {
    let cells: Vec<&Cell> =
        results.distinct_cells().into_iter().filter(|cell| cell.pattern == "fan_out").collect();
    if cells.is_empty() {
        return String::new();
    }
    let label = |cell: &Cell| cell.title().replace("PUB fan-out ", "") + " subscribers";
    let rows: Vec<_> = cells.iter().map(|cell| (*cell, RATE, label(cell))).collect();
    let mut html = String::from("<h2>Fan-out: one XPUB to several SUB</h2>\n");
    html += "<p>Messages delivered per second, all subscribers together; each has a separate thread. Longer is \
             better.</p>\n";
    html += &legend(results);
    html += &charts::rows(results, &rows, None);
    let rows: Vec<_> = cells.iter().map(|cell| (*cell, PROCESSOR, label(cell))).collect();
    html += "<h3>Processor time per delivered message</h3>\n<p>Shorter is better.</p>\n";
    html + &charts::rows(results, &rows, None)
}

/// Returns the number of won cells, by pattern and by transport.
fn wins(results: &Results) -> String {
    if results.wins.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<h2>Cells won</h2>\n<p>Beyond doubt: the whole 95 % interval of the ratio is above 1; lost: it is below, or runs \
         failed; open: neither won nor lost.</p>\n<div class=\"scroll\"><table>\n",
    );
    let row = |tag: &str, columns: &[String]| {
        let column = |(number, text): (usize, &String)| {
            let class = if number < Wins::WORDS { " class=\"l\"" } else { "" };
            format!("<{tag}{class}>{}</{tag}>", escape(text))
        };
        format!("<tr>{}</tr>\n", columns.iter().enumerate().map(column).collect::<String>())
    };
    html += &row("th", &Wins::HEADINGS.map(str::to_owned));
    for wins in &results.wins {
        html += &row("td", &wins.columns(results));
    }
    html + "</table></div>\n"
}

/// Every other pattern: a chart for each of its metrics.
fn others(results: &Results) -> String {
    let mut patterns: Vec<&str> = Vec::new();
    for cell in results.distinct_cells() {
        let shown = charts::MATRIX.contains(&cell.pattern.as_str())
            || cell.is_round_trip()
            || cell.pattern == "fan_out";
        if !shown && !patterns.contains(&cell.pattern.as_str()) {
            patterns.push(&cell.pattern);
        }
    }
    let mut html = String::new();
    for pattern in patterns {
        html += &format!("<h2>{}</h2>\n{}", escape(pattern_title(pattern)), legend(results));
        let mut metrics: Vec<&str> = Vec::new();
        for figure in results.cells.iter().filter(|f| f.cell.pattern == pattern) {
            if !metrics.contains(&figure.metric.as_str()) {
                metrics.push(&figure.metric);
            }
        }
        for metric in metrics {
            let rows: Vec<_> = results
                .distinct_cells()
                .into_iter()
                .filter(|c| {
                    c.pattern == pattern && results.cells.iter().any(|f| f.cell == **c && f.metric == metric)
                })
                .map(|c| {
                    let label = c.title().replace(&format!("{} ", pattern_title(pattern)), "");
                    (c, metric, label)
                })
                .collect();
            let name = unit(metric).0.replace('_', " ");
            let sense = if smaller_is_better(metric) { "shorter" } else { "longer" };
            html += &format!("<h3>{}</h3>\n<p>{sense} is better.</p>\n", escape(&name));
            html += &charts::rows(results, &rows, None);
        }
    }
    html
}
