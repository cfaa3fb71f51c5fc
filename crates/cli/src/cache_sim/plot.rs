//! Hit ratios over sizes, as an SVG.

use std::fmt::Write as _;

use super::Curve;
use super::replay::Player;
use super::trace::Trace;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 740.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 460.0;
/// Told apart also by those who do not see red and green apart (Okabe, Ito), and two more.
const COLOURS: [&str; 9] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#b0a000",
    "#000000",
];

/// One curve a policy; sizes, ascending, on a logarithmic axis.
pub fn svg(trace: &Trace, sizes: &[u64], curves: &[Curve]) -> String {
    let axis = Axis::new(sizes);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"15\">Hits, percent of requests, by size of the cache</text>\n"
    );
    for percent in (0..=100).step_by(20) {
        let y = height(f64::from(percent) / 100.0);
        line(&mut out, (LEFT, y), (RIGHT, y));
        label(&mut out, LEFT - 8.0, y + 4.0, "end", &percent.to_string());
    }
    for size in sizes {
        let x = axis.place(*size);
        line(&mut out, (x, TOP), (x, BOTTOM));
        label(&mut out, x, BOTTOM + 18.0, "middle", &trace.shown(*size));
    }
    for (at, curve) in curves.iter().enumerate() {
        draw(&mut out, &axis, sizes, curve, COLOURS[at % COLOURS.len()]);
        let y = TOP + 12.0 + 20.0 * at as f64;
        let colour = COLOURS[at % COLOURS.len()];
        let _ = writeln!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"18\" height=\"4\" fill=\"{colour}\"/>",
            RIGHT + 20.0,
            y - 6.0
        );
        label(&mut out, RIGHT + 46.0, y, "start", curve.player.name());
    }
    out.push_str("</svg>\n");
    out
}

struct Axis {
    first: f64,
    range: f64,
}

impl Axis {
    fn new(sizes: &[u64]) -> Self {
        let log = |size: Option<&u64>| (size.map_or(1, |size| *size).max(1) as f64).ln();
        let first = log(sizes.first());
        Self { first, range: (log(sizes.last()) - first).max(1e-9) }
    }

    fn place(&self, size: u64) -> f64 {
        LEFT + (RIGHT - LEFT) * ((size.max(1) as f64).ln() - self.first) / self.range
    }
}

fn height(ratio: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * ratio
}

fn draw(out: &mut String, axis: &Axis, sizes: &[u64], curve: &Curve, colour: &str) {
    let places: Vec<(f64, f64)> = sizes
        .iter()
        .zip(&curve.points)
        .map(|(size, counts)| (axis.place(*size), height(counts.hit_ratio())))
        .collect();
    let points: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    // The bound is no policy.
    let dashes = if curve.player == Player::Clairvoyant { " stroke-dasharray=\"6 4\"" } else { "" };
    let _ = writeln!(
        out,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>",
        points.join(" ")
    );
    for (x, y) in places {
        let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
    }
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#dddddd\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn label(out: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
}
