//! A small SVG writer for the charts: bars, lines, text. Colours and fonts come from the page's style sheet.

use std::fmt::{Display, Write};

/// A drawing in its own coordinates. The page scales it to its width.
pub(super) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// Alignment of a text relative to its position.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// Draws a bar. `hint` is shown when the pointer rests on it.
    pub(super) fn bar(&mut self, class: &str, (x, y): (f64, f64), (w, h): (f64, f64), hint: &str) {
        let (w, h) = (w.max(0.5), h.max(0.5));
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"1.5\">\
             <title>{}</title></rect>",
            escape(hint)
        ));
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.add(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    pub(super) fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.add(format_args!(
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            escape(text)
        ));
    }

    /// Draws a line through all points.
    pub(super) fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut list = String::new();
        for (x, y) in points {
            // Writing to a String cannot fail.
            let _ = write!(list, "{x:.1},{y:.1} ");
        }
        self.add(format_args!("<polyline class=\"{class}\" points=\"{}\"/>", list.trim_end()));
    }

    pub(super) fn finish(self, label: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {:.0} {:.0}\" role=\"img\" aria-label=\"{}\">{}</svg>\n",
            self.width,
            self.height,
            escape(label),
            self.body
        )
    }

    fn add(&mut self, element: impl Display) {
        let _ = write!(self.body, "{element}");
    }
}

/// Escapes text for HTML and XML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text("a", Anchor::Middle, (1.0, 2.0), "<&\">");
        assert!(svg.finish("x").contains("&lt;&amp;&quot;&gt;"));
    }
}
