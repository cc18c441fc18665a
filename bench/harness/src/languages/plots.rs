//! Plots of `docs/results`: bars beside each other for every language, drawn by `plotters`.

use super::data::{BASELINE, Cell, Data, LanguageFigure, Ratio, Row, Table, ratio};
use crate::statistics::range;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Colours of libzmq, Tautline, and independent implementations, as in the report. They also differ in grey.
const LIBZMQ: RGBColor = RGBColor(0xa7, 0xb4, 0xc2);
const TAUTLINE: RGBColor = RGBColor(0x12, 0x84, 0x7d);
const OWN: RGBColor = RGBColor(0x8b, 0x6b, 0xb1);

const BAR: i32 = 16;
const LABELS: i32 = 190;
const PANEL: i32 = 360;
const TOP: i32 = 84;
/// Text to the right of a bar.
const BESIDE: i32 = 96;

/// One bar: its length is `value`, its label is the text, and a thin line marks its interval.
struct Bar {
    value: f64,
    ends: (f64, f64),
    label: String,
    colour: RGBColor,
}

/// Bars of every language for one size.
struct Panel {
    title: String,
    /// By language, in the order of the labels.
    groups: Vec<Vec<Bar>>,
    /// Reference value of the ratios, and its name.
    mark: Option<(f64, &'static str)>,
}

/// Returns every plot: file name under the results, and SVG.
pub(super) fn all(data: &Data) -> Result<Vec<(String, String)>, String> {
    let data = &data.of_table(Table::Plain);
    let figures = |figure| data.sizes().into_iter().map(move |size| absolute(data, figure, size)).collect();
    let gains =
        |figure| data.sizes().into_iter().map(move |size| gains(data, figure, size)).collect::<Vec<_>>();
    let mut dashboard = gains(LanguageFigure::Rate);
    dashboard.extend(gains(LanguageFigure::Mean));
    let mut speeds: Vec<Panel> =
        data.sizes().into_iter().map(|size| speeds(data, LanguageFigure::Rate, size)).collect();
    speeds.extend(data.sizes().into_iter().map(|size| self::speeds(data, LanguageFigure::Mean, size)));
    let plots: [(&str, &str, Vec<Panel>); 4] = [
        (
            "latency",
            "Latency: half a round trip, mean, in µs (shorter is better)",
            figures(LanguageFigure::Mean),
        ),
        (
            "throughput",
            "Throughput in thousands of messages per second (longer is better)",
            figures(LanguageFigure::Rate),
        ),
        ("speed", "Speed in per cent of C++ on libzmq (longer is better)", speeds),
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
            // A language with only one library has no comparison.
            let shown: Vec<bool> =
                (0..labels.len()).map(|at| panels.iter().any(|panel| !panel.groups[at].is_empty())).collect();
            let keep = |at: &usize| shown[*at];
            let labels: Vec<String> = (0..labels.len()).filter(keep).map(|at| labels[at].clone()).collect();
            let mut panels = panels;
            for panel in &mut panels {
                let mut shown = shown.iter();
                panel.groups.retain(|_| shown.next().is_some_and(|shown| *shown));
            }
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

fn size_title(figure: LanguageFigure, size: u64) -> String {
    let what = if figure == LanguageFigure::Rate { "throughput" } else { "latency" };
    format!("{what}, {size} B")
}

fn absolute(data: &Data, figure: LanguageFigure, size: u64) -> Panel {
    let groups = data.languages().into_iter().map(|language| {
        data.rows
            .iter()
            .filter(|row| row.language == language.language)
            .filter_map(|row| {
                let cell = row.longest(figure, size)?;
                let unit = if figure == LanguageFigure::Rate { 1e3 } else { 1.0 };
                let value = cell.median(figure)? / unit;
                let (low, high) = range(cell.values(figure));
                let ends = (low / unit, high / unit);
                Some(Bar { value, ends, label: short(value), colour: colour(&row.library) })
            })
            .collect()
    });
    Panel { title: size_title(figure, size), groups: groups.collect(), mark: None }
}

/// Plots the speed of every language on either library. C++ on libzmq is 100 per cent.
fn speeds(data: &Data, figure: LanguageFigure, size: u64) -> Panel {
    let baseline = data.row(BASELINE, "libzmq").and_then(|row| row.longest(figure, size));
    let bar = |row: &Row| {
        let better = better(row.longest(figure, size)?, baseline?, figure)?;
        let (low, high) = better.interval;
        let (value, ends) = (100.0 * better.value, (100.0 * low, 100.0 * high));
        Some(Bar { value, ends, label: format!("{value:.0} %"), colour: colour(&row.library) })
    };
    let groups = data.languages().into_iter().map(|language| {
        data.rows.iter().filter(|row| row.language == language.language).filter_map(bar).collect()
    });
    Panel { title: size_title(figure, size), groups: groups.collect(), mark: Some((100.0, "100 %")) }
}

fn gains(data: &Data, figure: LanguageFigure, size: u64) -> Panel {
    let groups = data.languages().into_iter().map(|language| {
        let gain = data.row(&language.language, "tautline").and_then(|ours| {
            let theirs = data.row(&language.language, "libzmq")?.longest(figure, size)?;
            better(ours.longest(figure, size)?, theirs, figure)
        });
        gain.map(|Ratio { value, interval }| Bar {
            value,
            ends: interval,
            label: format!("{}x", short(value)),
            colour: TAUTLINE,
        })
        .into_iter()
        .collect()
    });
    Panel { title: size_title(figure, size), groups: groups.collect(), mark: Some((1.0, "1x")) }
}

/// Returns how many times as good the subject is, for rates and for times.
fn better(subject: &Cell, reference: &Cell, figure: LanguageFigure) -> Option<Ratio> {
    if figure.smaller_is_better() {
        ratio(reference, subject, figure)
    } else {
        ratio(subject, reference, figure)
    }
}

/// Rounds to three significant digits.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Draws panels in rows of three, with the languages at the left of each row.
fn draw(title: &str, labels: &[String], panels: &[Panel]) -> Result<String, Box<dyn std::error::Error>> {
    const COLUMNS: usize = 3;
    let rows_of = |panel: &Panel| panel.groups.iter().map(Vec::len).max().unwrap_or(1).max(1) as i32;
    let bars = panels.iter().map(rows_of).max().unwrap_or(1);
    let group = bars * BAR + 10;
    let height_of_row = group * labels.len() as i32 + 64;
    let rows = panels.len().div_ceil(COLUMNS) as i32;
    let columns = panels.len().clamp(1, COLUMNS) as i32;
    let (width, height) = (LABELS + columns * PANEL + 20, TOP + rows * height_of_row);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (width as u32, height as u32)).into_drawing_area();
        area.fill(&WHITE)?;
        area.draw(&Text::new(title.to_owned(), (16, 12), font(21)))?;
        legend(&area, panels)?;
        for (at, panel) in panels.iter().enumerate() {
            let left = LABELS + (at % COLUMNS) as i32 * PANEL;
            let top = TOP + (at / COLUMNS) as i32 * height_of_row;
            area.draw(&Text::new(panel.title.clone(), (left, top), font(17)))?;
            let longest =
                panel.groups.iter().flatten().map(|bar| bar.value.max(bar.ends.1)).fold(1e-9, f64::max);
            let scale = f64::from(PANEL - BESIDE) / longest;
            axis(&area, panel, (left, top + 24), (height_of_row - 56, scale, longest))?;
            for (line, (label, bars)) in labels.iter().zip(&panel.groups).enumerate() {
                let y = top + 28 + line as i32 * group;
                if at % COLUMNS == 0 {
                    let right = font(15).pos(Pos::new(HPos::Right, VPos::Center));
                    area.draw(&Text::new(label.clone(), (LABELS - 10, y + group / 2 - 5), right))?;
                }
                for (place, bar) in bars.iter().enumerate() {
                    let y = y + place as i32 * BAR;
                    let x = |value: f64| left + (value.max(0.0) * scale).round() as i32;
                    let corners = [(left, y), (x(bar.value).max(left + 1), y + BAR - 2)];
                    area.draw(&Rectangle::new(corners, bar.colour.filled()))?;
                    let (low, high) = (x(bar.ends.0), x(bar.ends.1));
                    let middle = y + BAR / 2 - 1;
                    area.draw(&PathElement::new(vec![(low, middle), (high, middle)], BLACK.mix(0.55)))?;
                    let beside = font(14).pos(Pos::new(HPos::Left, VPos::Center));
                    area.draw(&Text::new(bar.label.clone(), (x(bar.value).max(high) + 5, middle), beside))?;
                }
            }
        }
        area.present()?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn font(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&BLACK)
}

/// Positions of zero, of the end of the longest bar, and of the reference.
fn axis(
    area: &Area<'_>,
    panel: &Panel,
    (left, top): (i32, i32),
    (height, scale, longest): (i32, f64, f64),
) -> Result<(), Box<dyn std::error::Error>> {
    let mut ticks = vec![(0.0, "0".to_owned()), (longest, short(longest))];
    if let Some((mark, name)) = panel.mark.filter(|(mark, _)| *mark <= longest) {
        ticks.push((mark, name.to_owned()));
        // Omit labels that would overlap.
        ticks.retain(|(value, _)| *value == mark || (value - mark).abs() * scale > 40.0);
    }
    for (value, name) in ticks {
        let x = left + (value * scale).round() as i32;
        let marked = panel.mark.is_some_and(|(mark, _)| mark == value);
        let shade = BLACK.mix(if marked { 0.6 } else { 0.15 });
        area.draw(&PathElement::new(vec![(x, top), (x, top + height)], shade))?;
        let below = font(13).pos(Pos::new(HPos::Center, VPos::Top));
        area.draw(&Text::new(name, (x, top + height + 4), below))?;
    }
    Ok(())
}

fn legend(area: &Area<'_>, panels: &[Panel]) -> Result<(), Box<dyn std::error::Error>> {
    let mut x = 16;
    for (name, colour) in [("libzmq", LIBZMQ), ("Tautline", TAUTLINE), ("its own implementation", OWN)] {
        if panels.iter().flat_map(|panel| panel.groups.iter().flatten()).all(|bar| bar.colour != colour) {
            continue;
        }
        area.draw(&Rectangle::new([(x, 46), (x + 14, 60)], colour.filled()))?;
        let beside = font(15).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(name, (x + 20, 53), beside))?;
        x += 50 + 9 * name.len() as i32;
    }
    Ok(())
}
