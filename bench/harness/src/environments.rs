//! The table of environments: for one library, a row for each cell and metric, a column for each environment, in it the
//! ratio to the reference and what its interval says.

use crate::environment::{DEFAULT, Environment};
use crate::results::{Figure, Ratio, Results};
use crate::scenario::Cell;
use crate::statistics::Standing;
use crate::table::{ratio_text, three, unit};

/// One row: the cell as it is called in any environment.
pub(crate) struct Row<'a> {
    pub(crate) label: String,
    pub(crate) entries: Vec<Entry<'a>>,
}

/// One cell and metric in one environment.
pub(crate) enum Entry<'a> {
    /// The scenario has no such cell there.
    None,
    /// The environment could not be made.
    Absent,
    /// Lost messages or failed, with either library.
    Failed,
    Ratio(&'a Ratio),
}

/// Are there environments to be shown side by side?
pub(crate) fn is_of_interest(results: &Results) -> bool {
    results.environments.iter().any(|environment| environment.name != DEFAULT)
}

/// The rows of one library; the entries are in the order of `results.environments`.
pub(crate) fn rows<'a>(results: &'a Results, library: &str) -> Vec<Row<'a>> {
    let mut cells: Vec<Cell> = Vec::new();
    for cell in results.distinct_cells() {
        let cell = cell.in_default();
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    let mut rows = Vec::new();
    for cell in &cells {
        let of_cell: Vec<&Figure> =
            results.cells.iter().filter(|f| f.library == library && f.cell.in_default() == *cell).collect();
        let mut metrics: Vec<&str> = Vec::new();
        for figure in &of_cell {
            if !metrics.contains(&figure.metric.as_str()) {
                metrics.push(&figure.metric);
            }
        }
        for metric in metrics {
            let entries =
                results.environments.iter().map(|e| entry(results, &of_cell, library, metric, e)).collect();
            let name = unit(metric).0;
            let quantity =
                if name == "messages" { String::new() } else { format!(", {}", name.replace('_', " ")) };
            rows.push(Row { label: cell.title() + &quantity, entries });
        }
    }
    rows
}

fn entry<'a>(
    results: &'a Results,
    of_cell: &[&Figure],
    library: &str,
    metric: &str,
    environment: &Environment,
) -> Entry<'a> {
    let figure = of_cell.iter().find(|f| f.cell.environment == environment.name && f.metric == metric);
    match figure {
        None if environment.absent.is_some() => Entry::Absent,
        None => Entry::None,
        Some(figure) => match results.ratio(&figure.cell, library, metric) {
            Some(ratio) if figure.sound() => Entry::Ratio(ratio),
            _ => Entry::Failed,
        },
    }
}

impl Entry<'_> {
    /// `1.23x won`.
    pub(crate) fn short(&self) -> String {
        match self {
            Self::None => "-".to_owned(),
            Self::Absent => "not there".to_owned(),
            Self::Failed => "FAILED".to_owned(),
            Self::Ratio(ratio) => format!("{}x {}", ratio_text(ratio.ratio), ratio.standing().word()),
        }
    }

    /// `1.10..1.36`, of a ratio.
    pub(crate) fn interval(&self) -> Option<String> {
        match self {
            Self::Ratio(ratio) => Some(format!("{}..{}", three(ratio.interval.0), three(ratio.interval.1))),
            _ => None,
        }
    }

    pub(crate) fn standing(&self) -> Option<Standing> {
        match self {
            Self::Ratio(ratio) => Some(ratio.standing()),
            _ => None,
        }
    }
}

/// How many entries of a column are won, lost, level and open.
pub(crate) fn tally(rows: &[Row<'_>], column: usize) -> [usize; 4] {
    [Standing::Won, Standing::Lost, Standing::Level, Standing::Open]
        .map(|wanted| rows.iter().filter(|row| row.entries[column].standing() == Some(wanted)).count())
}

/// How near the processors' caches were, in a sentence.
pub(crate) fn memory(results: &Results) -> Option<String> {
    let memory = results.memory.as_ref()?;
    let line = &memory.line_ns;
    Some(format!(
        "A cache line crossed between two processors in {} ns ({} to {}): caches were near in {} pairs of runs, far \
         ({:.0} ns and more) in {}, and changed in {}.",
        three(line.median),
        three(line.min),
        three(line.max),
        memory.near,
        memory.far_from_ns,
        memory.far,
        memory.changed
    ))
}
