//! Writing SVG: rectangles, lines and text, down the page. Knows nothing of what they show.

use std::fmt::Write;

/// Colours that stand out from white and from near black; text follows the reader's scheme where that is known.
const STYLE: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:13px;fill:#6e7781}
.title{font-size:18px;font-weight:600}.head{font-size:15px;font-weight:600}.small{font-size:11px}
.in{fill:#0d1117;font-size:11px}
.cpu{fill:#4a90d9}.pinned{fill:#35a572}.streamed{fill:#e0922f}.part{fill:#b9a13c}.handoff{fill:#c65f8b}
.kv{fill:#7fc4a5}.scratch{fill:#a08fd6}.driver{fill:#9aa3ad}.track{fill:#808890;fill-opacity:.14}
.pass{stroke:#6e7781;stroke-width:2}.tick{stroke:#808890;stroke-opacity:.6;stroke-width:1;stroke-dasharray:3 3}
@media (prefers-color-scheme:light){text{fill:#24292f}.in{fill:#0d1117}}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.in{fill:#0d1117}}
";

/// A picture that grows downwards.
pub(super) struct Canvas {
    width: f64,
    /// Where things are drawn now: the top of rectangles, the foot of text.
    pub(super) y: f64,
    body: String,
}

impl Canvas {
    pub(super) fn new(width: f64) -> Canvas {
        Canvas { width, y: 0.0, body: String::new() }
    }

    pub(super) fn down(&mut self, by: f64) {
        self.y += by;
    }

    /// A rectangle with its top at the current height; one with a name tells it when pointed at.
    pub(super) fn rect(&mut self, [x, width, height]: [f64; 3], class: &str, name: &str) {
        let y = self.y;
        let _ = write!(
            self.body,
            r#"<rect x="{x:.2}" y="{y:.1}" width="{width:.2}" height="{height:.1}" class="{class}""#
        );
        if name.is_empty() {
            self.body.push_str("/>\n");
        } else {
            let _ = writeln!(self.body, "><title>{}</title></rect>", escaped(name));
        }
    }

    /// Many rectangles alike but for where they begin and how wide they are.
    pub(super) fn bars(&mut self, bars: &[[f64; 2]], height: f64, class: &str) {
        if bars.is_empty() {
            return;
        }
        let y = self.y;
        let _ = write!(self.body, r#"<path class="{class}" d=""#);
        for [x, width] in bars {
            let _ = write!(self.body, "M{x:.2} {y:.1}h{width:.2}v{height}h-{width:.2}z");
        }
        self.body.push_str("\"/>\n");
    }

    /// A line from the current height down.
    pub(super) fn fall(&mut self, x: f64, height: f64, class: &str) {
        let (top, foot) = (self.y, self.y + height);
        let _ = writeln!(
            self.body,
            r#"<line x1="{x:.2}" y1="{top:.1}" x2="{x:.2}" y2="{foot:.1}" class="{class}"/>"#
        );
    }

    /// Text from `x` on.
    pub(super) fn text(&mut self, x: f64, class: &str, text: &str) {
        self.write(x, class, "start", text);
    }

    /// Text that ends at `x`.
    pub(super) fn text_before(&mut self, x: f64, class: &str, text: &str) {
        self.write(x, class, "end", text);
    }

    /// Text around `x`.
    pub(super) fn text_around(&mut self, x: f64, class: &str, text: &str) {
        self.write(x, class, "middle", text);
    }

    fn write(&mut self, x: f64, class: &str, anchor: &str, text: &str) {
        let (y, text) = (self.y, escaped(text));
        let _ = writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" class="{class}" text-anchor="{anchor}">{text}</text>"#
        );
    }

    pub(super) fn into_svg(self) -> String {
        let (width, height) = (self.width, self.y + 20.0);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width} {height:.0}\">\n<style>\n{STYLE}</style>\n{}</svg>\n",
            self.body
        )
    }
}

/// Text between tags; characters that XML has no place for are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            c if c.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_end_its_element() {
        assert_eq!(escaped("a</text>&\u{1b}b"), "a&lt;/text&gt;&amp;\u{fffd}b");
    }
}
