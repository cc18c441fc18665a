//! The plots of `docs/results`: bars beside each other for every language, drawn by `plotters`.

use super::data::{BASELINE, Data, Figure, overhead, ratio};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Colours of libzmq, Tautline, and implementations of their own; told apart in grey, too.
const LIBZMQ: RGBColor = RGBColor(0x8a, 0x93, 0x9f);
const TAUTLINE: RGBColor = RGBColor(0xd9, 0x5f, 0x02);
const OWN: RGBColor = RGBColor(0x3b, 0x6e, 0xa5);

const BAR: i32 = 13;
const LABELS: i32 = 150;
const PANEL: i32 = 330;
const TOP: i32 = 74;

/// One bar: its length is `value`, its label says it.
struct Bar {
    value: f64,
    label: String,
    colour: RGBColor,
}

/// The bars of every language for one size.
struct Panel {
    title: String,
    /// By language, in the order of the labels.
    groups: Vec<Vec<Bar>>,
    /// Where 1 is, for ratios.
    mark: Option<f64>,
}

/// Every plot: file name under the results, and SVG.
pub(super) fn all(data: &Data) -> Result<Vec<(String, String)>, String> {
    let figures = |figure| data.sizes().into_iter().map(move |size| absolute(data, figure, size)).collect();
    let costs =
        |figure| data.sizes().into_iter().map(move |size| costs(data, figure, size)).collect::<Vec<_>>();
    let gains =
        |figure| data.sizes().into_iter().map(move |size| gains(data, figure, size)).collect::<Vec<_>>();
    let mut dashboard = gains(Figure::Rate);
    dashboard.extend(gains(Figure::Mean));
    let mut overheads = costs(Figure::Rate);
    overheads.extend(costs(Figure::Mean));
    let plots: [(&str, &str, Vec<Panel>); 4] = [
        ("latency", "Latency: half a round trip, mean, in µs (shorter is better)", figures(Figure::Mean)),
        (
            "throughput",
            "Throughput in thousands of messages per second (longer is better)",
            figures(Figure::Rate),
        ),
        ("overhead", "Overhead beside C++ on the same library, per cent (shorter is better)", overheads),
        (
            "dashboard",
            "Tautline beside libzmq under the same binding, times better (longer is better)",
            dashboard,
        ),
    ];
    let labels: Vec<String> = data.languages().iter().map(|row| row.title.clone()).collect();
    plots
        .into_iter()
        .map(|(name, title, panels)| {
            let svg = draw(title, &labels, &panels).map_err(|e| format!("plot {name}: {e}"))?;
            Ok((format!("plots/{name}.svg"), svg))
        })
        .collect()
}

fn colour(library: &str) -> RGBColor {
    match library {
        "libzmq" => LIBZMQ,
        "tautline" => TAUTLINE,
        _ => OWN,
    }
}

fn size_title(figure: Figure, size: u64) -> String {
    let what = if figure == Figure::Rate { "throughput" } else { "latency" };
    format!("{what}, {size} B")
}

fn absolute(data: &Data, figure: Figure, size: u64) -> Panel {
    let groups = data.languages().into_iter().map(|language| {
        data.rows
            .iter()
            .filter(|row| row.language == language.language)
            .filter_map(|row| {
                let median = row.longest(figure, size)?.median(figure)?;
                let value = if figure == Figure::Rate { median / 1e3 } else { median };
                Some(Bar { value, label: short(value), colour: colour(&row.library) })
            })
            .collect()
    });
    Panel { title: size_title(figure, size), groups: groups.collect(), mark: None }
}

fn costs(data: &Data, figure: Figure, size: u64) -> Panel {
    let groups = data.languages().into_iter().map(|language| {
        data.rows
            .iter()
            .filter(|row| row.language == language.language && row.language != BASELINE)
            .filter_map(|row| {
                let baseline = data.baseline_of(row)?.longest(figure, size)?;
                let ratio = ratio(row.longest(figure, size)?, baseline, figure)?;
                let value = 100.0 * overhead(ratio.value, figure);
                Some(Bar { value, label: format!("{value:.0} %"), colour: colour(&row.library) })
            })
            .collect()
    });
    Panel { title: size_title(figure, size), groups: groups.collect(), mark: None }
}

fn gains(data: &Data, figure: Figure, size: u64) -> Panel {
    let groups = data.languages().into_iter().map(|language| {
        let gain = data.row(&language.language, "tautline").and_then(|ours| {
            let theirs = data.row(&language.language, "libzmq")?.longest(figure, size)?;
            let ratio = ratio(ours.longest(figure, size)?, theirs, figure)?.value;
            Some(if figure.smaller_is_better() { 1.0 / ratio } else { ratio })
        });
        gain.map(|value| Bar { value, label: format!("{}x", short(value)), colour: TAUTLINE })
            .into_iter()
            .collect()
    });
    Panel { title: size_title(figure, size), groups: groups.collect(), mark: Some(1.0) }
}

/// Three figures.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Panels in rows of three, languages down the side of each row.
fn draw(title: &str, labels: &[String], panels: &[Panel]) -> Result<String, Box<dyn std::error::Error>> {
    const COLUMNS: usize = 3;
    let rows_of = |panel: &Panel| panel.groups.iter().map(Vec::len).max().unwrap_or(1).max(1) as i32;
    let bars = panels.iter().map(rows_of).max().unwrap_or(1);
    let group = bars * BAR + 8;
    let height_of_row = group * labels.len() as i32 + 44;
    let rows = panels.len().div_ceil(COLUMNS) as i32;
    let columns = panels.len().clamp(1, COLUMNS) as i32;
    let (width, height) = (LABELS + columns * PANEL + 20, TOP + rows * height_of_row);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (width as u32, height as u32)).into_drawing_area();
        area.fill(&WHITE)?;
        let font = |size: i32| ("sans-serif", size).into_font().color(&BLACK);
        area.draw(&Text::new(title.to_owned(), (16, 14), font(17)))?;
        legend(&area, panels)?;
        for (at, panel) in panels.iter().enumerate() {
            let left = LABELS + (at % COLUMNS) as i32 * PANEL;
            let top = TOP + (at / COLUMNS) as i32 * height_of_row;
            area.draw(&Text::new(panel.title.clone(), (left, top), font(14)))?;
            let longest = panel.groups.iter().flatten().map(|bar| bar.value).fold(1e-9, f64::max);
            let scale = f64::from(PANEL - 80) / longest;
            for (line, (label, bars)) in labels.iter().zip(&panel.groups).enumerate() {
                let y = top + 24 + line as i32 * group;
                if at % COLUMNS == 0 {
                    let right = font(13).pos(Pos::new(HPos::Right, VPos::Center));
                    area.draw(&Text::new(label.clone(), (LABELS - 10, y + group / 2 - 4), right))?;
                }
                for (place, bar) in bars.iter().enumerate() {
                    let y = y + place as i32 * BAR;
                    let end = left + (bar.value.max(0.0) * scale).round() as i32;
                    let corners = [(left, y), (end.max(left + 1), y + BAR - 2)];
                    area.draw(&Rectangle::new(corners, bar.colour.filled()))?;
                    let beside = font(11).pos(Pos::new(HPos::Left, VPos::Center));
                    area.draw(&Text::new(bar.label.clone(), (end + 5, y + BAR / 2), beside))?;
                }
            }
            if let Some(mark) = panel.mark.filter(|&mark| mark <= longest) {
                let x = left + (mark * scale).round() as i32;
                let bottom = top + height_of_row - 24;
                area.draw(&PathElement::new(vec![(x, top + 20), (x, bottom)], BLACK.mix(0.5)))?;
            }
        }
        area.present()?;
    }
    Ok(svg)
}

fn legend(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    panels: &[Panel],
) -> Result<(), Box<dyn std::error::Error>> {
    let mut x = 16;
    for (name, colour) in [("libzmq", LIBZMQ), ("Tautline", TAUTLINE), ("its own implementation", OWN)] {
        if panels.iter().flat_map(|panel| panel.groups.iter().flatten()).all(|bar| bar.colour != colour) {
            continue;
        }
        area.draw(&Rectangle::new([(x, 42), (x + 12, 54)], colour.filled()))?;
        let beside = ("sans-serif", 12).into_font().color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(name, (x + 18, 48), beside))?;
        x += 40 + 8 * name.len() as i32;
    }
    Ok(())
}
