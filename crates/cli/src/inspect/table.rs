//! Text tables with aligned columns.

use unicode_width::UnicodeWidthStr;

/// Table with a header. The caller must escape control characters in names that the inspected
/// program chose.
pub struct Table {
    columns: &'static [Column],
    rows: Vec<Vec<String>>,
}

/// Header and alignment of a column. Numbers are aligned to the right.
pub struct Column(pub &'static str, pub Side);

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

impl Table {
    /// Creates an empty table.
    pub fn new(columns: &'static [Column]) -> Self {
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row with one cell per column.
    pub fn add_row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// True if the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Formats the table as lines, each after `indent`.
    pub fn text(&self, indent: &str) -> String {
        let width = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            let widest = cells.map(|cell| cell.width()).max().unwrap_or(0);
            widest.max(self.columns[at].0.width())
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut line = indent.to_owned();
            for ((cell, column), width) in cells.zip(self.columns).zip(&widths) {
                let pad = " ".repeat(width.saturating_sub(cell.width()));
                match column.1 {
                    Side::Left => line.extend([cell, &pad, "  "]),
                    Side::Right => line.extend([&pad, cell, "  "]),
                }
            }
            line.truncate(line.trim_end().len());
            line.push('\n');
            line
        };
        let mut text = line(&mut self.columns.iter().map(|column| column.0));
        for row in &self.rows {
            text += &line(&mut row.iter().map(String::as_str));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&[Column("NAME", Side::Left), Column("N", Side::Right)]);
        table.add_row(["a longer".to_owned(), "7".to_owned()]);
        table.add_row(["ö".to_owned(), "123".to_owned()]);
        assert_eq!(table.text("  "), "  NAME        N\n  a longer    7\n  ö         123\n");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let mut table = Table::new(&[Column("NAME", Side::Left), Column("N", Side::Right)]);
        table.add_row(["注文.py".to_owned(), "7".to_owned()]);
        table.add_row(["news".to_owned(), "12".to_owned()]);
        // A combining accent has no width.
        table.add_row(["e\u{301}te\u{301}".to_owned(), "1".to_owned()]);
        let rows = ["NAME      N", "注文.py   7", "news     12", "e\u{301}te\u{301}       1", ""];
        assert_eq!(table.text(""), rows.join("\n"));
    }
}
