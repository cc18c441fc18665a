//! Tables of the report: every figure, and the facts about machine and versions.

use super::{micro, svg::escape};
use crate::environment_table::{self, CellResult};
use crate::process::RATE;
use crate::results::{Figure, Results};
use crate::scenario::{Cell, pattern_title, size_title};
use crate::statistics::Standing;
use crate::table::{losses, ratio_text, three, unit, value};

/// A row for each cell and metric, with every library's columns.
pub(super) fn figures(results: &Results) -> String {
    let mut html = String::from("<div class=\"scroll\"><table>\n<tr>");
    for head in ["pattern", "transport", "size", "metric"] {
        html += &format!("<th class=\"l\">{head}</th>");
    }
    for (number, library) in results.libraries.iter().enumerate() {
        html += &format!("<th>{}</th><th>min \u{2013} max</th><th>MB/s</th>", escape(&library.title));
        if number > 0 {
            html += "<th>times better</th>";
        }
    }
    html += "<th>lost / reord. / corr.</th></tr>\n";
    let mut before: Option<&Cell> = None;
    for cell in results.distinct_cells() {
        for metric in results.metrics_of(cell) {
            let new = before.is_some_and(|b| b.pattern != cell.pattern || b.variant() != cell.variant());
            html += if new { "<tr class=\"new\">" } else { "<tr>" };
            html += &row(results, cell, metric);
            html += "</tr>\n";
            before = Some(cell);
        }
    }
    html + "</table></div>\n"
}

fn row(results: &Results, cell: &Cell, metric: &str) -> String {
    let mut pattern = pattern_title(&cell.pattern).to_owned();
    if cell.subscribers > 1 {
        pattern += &format!(" to {}", cell.subscribers);
    }
    if let Some(variant) = cell.variant() {
        pattern += &format!(" ({variant})");
    }
    let name = if metric == RATE { "messages" } else { unit(metric).0 };
    let mut html = String::new();
    for text in [pattern.as_str(), &cell.transport, &size_title(cell.size), &name.replace('_', " ")] {
        html += &format!("<td class=\"l\">{}</td>", escape(text));
    }
    let mut figures: Vec<&Figure> = Vec::new();
    for (number, library) in results.libraries.iter().enumerate() {
        let figure = results.figure(cell, &library.name, metric);
        figures.extend(figure);
        match figure.filter(|f| f.runs > 0) {
            Some(f) => {
                let show = |v: f64| escape(&micro(&value(metric, v)));
                // Over inproc, a ratio compares only runs in one machine state, so only
                // those are shown.
                let mut ratios = results.ratios.iter().filter(|r| r.cell == *cell && r.metric == metric);
                let median = match ratios.find(|r| number == 0 || r.library == library.name) {
                    Some(ratio) if number == 0 => ratio.compared.1,
                    Some(ratio) => ratio.compared.0,
                    None => f.summary.median,
                };
                html += &format!(
                    "<td>{}</td><td><small>{} \u{2013} {}</small></td><td>{}</td>",
                    show(median),
                    show(f.summary.min).replace(" M/s", "").replace(" \u{b5}s", ""),
                    show(f.summary.max),
                    f.megabytes_per_second
                        .map_or_else(String::new, |_| three(median * cell.size as f64 / 1e6))
                );
            }
            None if figure.is_some_and(|f| f.unsupported.is_some()) => {
                html += "<td>\u{2013}</td><td></td><td></td>"
            }
            None => html += "<td class=\"bad\">failed</td><td></td><td></td>",
        }
        if number == 0 {
            continue;
        }
        html += &match results.ratio(cell, &library.name, metric) {
            Some(r) => format!(
                "<td class=\"{}\">{}x <small>{}\u{2013}{}</small></td>",
                if r.won() && !r.is_wide() { "win" } else { "under" },
                ratio_text(r.ratio),
                three(r.interval.0),
                three(r.interval.1)
            ),
            None => "<td class=\"bad\">\u{2013}</td>".to_owned(),
        };
    }
    let flawed = figures.iter().any(|f| f.unsupported.is_none() && !f.is_sound());
    let class = if flawed { " class=\"bad\"" } else { "" };
    html + &format!("<td{class}>{}</td>", escape(&losses(&figures).replace('/', " / ")))
}

/// Each library's cells by environment.
pub(super) fn environments(results: &Results) -> String {
    if !environment_table::is_of_interest(results) {
        return String::new();
    }
    let mut html = String::from(
        "<h2>By environment</h2>\n<p>How many times as good as the reference, with the 95 % interval. Won: all of the interval is above 1; \
         lost: all of it is below; level: it holds 1 and lies within 5 % of it; open: the runs do not tell, because the interval \
         holds 1, is wider than the limit, or is of fewer than three pairs.</p>\n",
    );
    for library in results.libraries.iter().skip(1) {
        let rows = environment_table::rows(results, &library.name);
        html +=
            &format!("<div class=\"scroll\"><table>\n<tr><th class=\"l\">{}</th>", escape(&library.title));
        for environment in &results.environments {
            html += &format!("<th>{}</th>", escape(&environment.name));
        }
        html += "</tr>\n";
        for row in &rows {
            html += &format!("<tr><td class=\"l\">{}</td>", escape(&row.label));
            html += &row.entries.iter().map(environment_entry).collect::<String>();
            html += "</tr>\n";
        }
        html += "<tr class=\"new\"><td class=\"l\">won / lost / level / open</td>";
        for column in 0..results.environments.len() {
            let tally = environment_table::tally(&rows, column).map(|number| number.to_string());
            html += &format!("<td>{}</td>", tally.join(" / "));
        }
        html += "</tr></table></div>\n";
    }
    html += "<ul class=\"plain\">";
    for environment in &results.environments {
        html += &match &environment.absent {
            None => format!("<li>{}: {}</li>", escape(&environment.name), escape(&environment.what)),
            Some(reason) => {
                format!(
                    "<li class=\"flaw\">{}: not there: {}</li>",
                    escape(&environment.name),
                    escape(reason)
                )
            }
        };
    }
    html += "</ul>\n";
    html + &environment_table::memory(results)
        .map_or(String::new(), |text| format!("<p>{}</p>\n", escape(&text)))
}

fn environment_entry(entry: &CellResult<'_>) -> String {
    let class = match (entry, entry.standing()) {
        (CellResult::Failed, _) => "bad",
        (_, Some(Standing::Won)) => "win",
        (_, Some(Standing::Lost)) => "under",
        _ => "",
    };
    let interval =
        entry.interval().map_or(String::new(), |text| format!(" <small>{}</small>", escape(&text)));
    format!("<td class=\"{class}\">{}{interval}</td>", escape(&entry.short()))
}

/// Machine and versions.
pub(super) fn facts(results: &Results) -> String {
    let machine = &results.machine;
    let mut rows = vec![
        ("processor".to_owned(), format!("{}, {} cores", machine.cpu, machine.cores)),
        ("memory".to_owned(), format!("{} GiB", machine.memory_gib)),
        ("system".to_owned(), format!("{}, {}", machine.system, machine.kernel)),
        ("virtual machine".to_owned(), if machine.virtual_machine { "yes" } else { "no" }.to_owned()),
        ("load before the run".to_owned(), machine.load.to_string()),
        ("the run took".to_owned(), format!("{:.0} s", results.took_seconds)),
    ];
    rows.extend(results.versions.iter().map(|(name, version)| (name.clone(), version.clone())));
    let rows: String = rows
        .iter()
        .map(|(name, text)| format!("<tr><td>{}</td><td>{}</td></tr>\n", escape(name), escape(text)))
        .collect();
    format!(
        "<h2>Machine and versions</h2>\n<div class=\"scroll\"><table class=\"facts\">\n{rows}</table></div>\n"
    )
}
