//! The plots, as SVG: few marks, readable on light and dark pages.

use std::fmt::Write;

use super::{Report, Row};
use crate::cell::{EngineName, Memory, Track, size_text, value_name};
use crate::measure::Part;
use crate::statistics::{Estimate, Verdict, median};
use crate::workload::{Family, Workload};

/// Width of a plot, in pixels.
const WIDTH: f64 = 900.0;
/// Where the labels end and the plot begins.
const LEFT: f64 = 330.0;
/// Room on the right.
const RIGHT: f64 = 70.0;
/// Height of a line of text.
const LINE: f64 = 22.0;

/// A plot and the name of its file.
pub struct Plot {
    /// Without directory.
    pub file: String,
    /// What it shows.
    pub title: String,
    /// The SVG.
    pub text: String,
}

/// All plots of one family on one track.
pub fn plots(report: &Report, track: Track, family: Family) -> Vec<Plot> {
    let rows = || {
        let all = report.rows.iter();
        all.filter(move |row| row.cell.track == track && row.cell.workload.family() == family)
    };
    let mut plots = Vec::new();
    let bars: Vec<Bar> = rows().filter_map(bar).collect();
    if !bars.is_empty() {
        let file = format!("{}-{}.svg", value_name(track), format!("{family:?}").to_lowercase());
        let title = "Flagstone's throughput over RocksDB's".to_string();
        plots.push(Plot { file, text: ratios(&bars), title });
    }
    for row in rows().filter(|row| row.cell.workload == Workload::Overload && row.is_main) {
        let file = format!("{}-overload-{}.svg", value_name(track), row.cell.value_size);
        let title = format!("Writes without a limit, values of {} bytes", row.cell.value_size);
        plots.push(Plot { file, text: seconds(row), title });
    }
    plots
}

struct Bar {
    label: String,
    ratio: Estimate,
    target: Option<f64>,
}

fn bar(row: &Row) -> Option<Bar> {
    if row.part.starts_with("paced") {
        return None;
    }
    let (cell, (_, ratio)) = (&row.cell, row.ratio()?);
    let part = if row.is_main { String::new() } else { format!(", {}", row.part) };
    let memory = match cell.memory {
        Memory::Ample => "",
        Memory::Quarter => ", little memory",
        Memory::Cold => ", cold",
        Memory::Direct => ", cold, direct",
    };
    let label = format!(
        "{}{part} {} B, {} thr., {}{memory}",
        value_name(cell.workload),
        size_text(cell.value_size),
        cell.threads,
        value_name(cell.durability)
    );
    Some(Bar { label, ratio, target: cell.target(&row.part) })
}

/// The head of a picture: its size, and colours that follow the page's.
fn open(height: f64) -> String {
    let style = "text{font:12px sans-serif;fill:#24292f}.axis{stroke:#8c959f;stroke-width:1}\
                 .one{stroke:#57606a;stroke-width:1.5;stroke-dasharray:4 3}\
                 .won{fill:#1a7f37;stroke:#1a7f37}.lost{fill:#cf222e;stroke:#cf222e}.even{fill:#9a6700;stroke:#9a6700}\
                 .target{fill:none;stroke:#8250df;stroke-width:1.5}\
                 @media(prefers-color-scheme:dark){text{fill:#d1d7e0}.axis{stroke:#656c76}}";
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\">\n<style>{style}</style>\n"
    )
}

/// A dot with its interval for each row, on a logarithmic axis.
fn ratios(bars: &[Bar]) -> String {
    let height = LINE * (bars.len() as f64 + 2.0);
    // Of too few rounds the interval is everything, which no axis holds.
    let ends = |bar: &Bar| {
        if bar.ratio.high.is_finite() {
            (bar.ratio.low, bar.ratio.high)
        } else {
            (bar.ratio.median, bar.ratio.median)
        }
    };
    let lowest = bars.iter().map(|bar| ends(bar).0).fold(0.8, f64::min).max(0.05);
    let highest = bars.iter().map(|bar| ends(bar).1).fold(2.5, f64::max).min(50.0);
    let x = |ratio: f64| {
        let part = (ratio.clamp(lowest, highest) / lowest).ln() / (highest / lowest).ln();
        LEFT + part * (WIDTH - LEFT - RIGHT)
    };
    let mut text = open(height);
    for tick in [0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0] {
        if tick < lowest || tick > highest {
            continue;
        }
        let (at, class) = (x(tick), if tick == 1.0 { "one" } else { "axis" });
        let (top, bottom) = (LINE, height - LINE);
        let _ = writeln!(
            text,
            "<line class=\"{class}\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{top}\" y2=\"{bottom}\"/>\
             <text x=\"{at:.1}\" y=\"15\" text-anchor=\"middle\">{tick}</text>"
        );
    }
    for (index, bar) in bars.iter().enumerate() {
        let y = LINE * (index as f64 + 1.7);
        let class = match bar.ratio.verdict() {
            Verdict::Won => "won",
            Verdict::Even => "even",
            Verdict::Lost => "lost",
        };
        let (low, center, high) = (x(bar.ratio.low), x(bar.ratio.median), x(bar.ratio.high));
        let _ = writeln!(
            text,
            "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <line class=\"{class}\" x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke-width=\"3\"/>\
             <circle class=\"{class}\" cx=\"{center:.1}\" cy=\"{y:.1}\" r=\"4\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{:.2}</text>",
            LEFT - 10.0,
            y + 4.0,
            bar.label,
            WIDTH - RIGHT + 12.0,
            y + 4.0,
            bar.ratio.median
        );
        if let Some(target) = bar.target {
            let (at, top, bottom) = (x(target), y - 7.0, y + 7.0);
            let _ = writeln!(
                text,
                "<line class=\"target\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/>"
            );
        }
    }
    text.push_str("</svg>\n");
    text
}

/// Operations by second: the median over the rounds, a line an engine.
fn seconds(row: &Row) -> String {
    const HEIGHT: f64 = 320.0;
    const BOTTOM: f64 = HEIGHT - 30.0;
    const AXIS: f64 = 90.0;
    let colours = ["#0969da", "#cf222e", "#bf8700", "#8250df", "#1a7f37", "#57606a", "#bc4c00"];
    let lines: Vec<(EngineName, Vec<f64>)> =
        row.runs.keys().map(|engine| (*engine, by_second(row, *engine))).collect();
    let longest = lines.iter().map(|(_, line)| line.len()).max().unwrap_or(0).max(2);
    let highest =
        lines.iter().flat_map(|(_, line)| line).fold(1.0f64, |highest, rate| highest.max(*rate));
    let mut text = open(HEIGHT);
    let _ = writeln!(
        text,
        "<line class=\"axis\" x1=\"{AXIS}\" x2=\"{WIDTH}\" y1=\"{BOTTOM}\" y2=\"{BOTTOM}\"/>\
         <line class=\"axis\" x1=\"{AXIS}\" x2=\"{AXIS}\" y1=\"30\" y2=\"{BOTTOM}\"/>\
         <text x=\"{:.0}\" y=\"34\" text-anchor=\"end\">{highest:.0}/s</text>\
         <text x=\"{:.0}\" y=\"{BOTTOM}\" text-anchor=\"end\">0</text>\
         <text x=\"{WIDTH}\" y=\"{:.0}\" text-anchor=\"end\">{longest} s</text>",
        AXIS - 8.0,
        AXIS - 8.0,
        BOTTOM + 20.0
    );
    for (index, (engine, line)) in lines.iter().enumerate() {
        let colour = colours[index % colours.len()];
        let point = |(second, rate): (usize, &f64)| {
            let x = AXIS + second as f64 / (longest - 1) as f64 * (WIDTH - AXIS);
            format!("{x:.1},{:.1}", BOTTOM - rate / highest * (BOTTOM - 30.0))
        };
        let points: Vec<String> = line.iter().enumerate().map(point).collect();
        let x = AXIS + 20.0 + 130.0 * index as f64;
        let _ = writeln!(
            text,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" points=\"{}\"/>\
             <rect x=\"{x}\" y=\"6\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{:.0}\" y=\"15\">{}</text>",
            points.join(" "),
            x + 15.0,
            engine.title()
        );
    }
    text.push_str("</svg>\n");
    text
}

fn by_second(row: &Row, engine: EngineName) -> Vec<f64> {
    let runs = row.runs.get(&engine).into_iter().flat_map(|rounds| rounds.values());
    let parts: Vec<&Part> = runs.filter_map(|run| run.parts.first()).collect();
    let length = parts.iter().map(|part| part.per_second.len()).min().unwrap_or(0);
    let second = |index: usize| {
        median(&parts.iter().map(|part| part.per_second[index] as f64).collect::<Vec<_>>())
    };
    (0..length).map(second).collect()
}

#[cfg(test)]
mod tests;
