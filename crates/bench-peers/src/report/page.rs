//! Writing the page: what stands between the marks is replaced, what people wrote around them
//! stays.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::{Report, plots, tables};
use crate::cell::Track;
use crate::engine::Result;
use crate::workload::Family;

/// The lines between which the page is written.
#[derive(Debug, Clone, Copy)]
pub struct Marks {
    /// The line before.
    pub begin: &'static str,
    /// The line after.
    pub end: &'static str,
}

/// The marks of what `peers report` writes at the head of the page.
const GLANCE: Marks = Marks {
    begin: "<!-- glance begin: written by `peers report`, do not edit -->",
    end: "<!-- glance end -->",
};

/// The marks of the figures that `peers report` writes.
const FIGURES: Marks = Marks {
    begin: "<!-- figures begin: written by `peers report`, do not edit -->",
    end: "<!-- figures end -->",
};

/// Writes the figures into the page and the plots beside it. Says which short rows the page does
/// not explain.
pub fn write(report: &Report, page: &Path) -> Result<()> {
    let old = fs::read_to_string(page).map_err(|error| format!("{}: {error}", page.display()))?;
    let stem = page.file_stem().ok_or("the page has no name")?.to_string_lossy();
    let pictures = page.with_file_name(stem.as_ref());
    let mut figures = format!("{}\n{}", tables::conditions(report), tables::summary(report));
    let mut files = Vec::new();
    for track in [Track::Tuned, Track::Defaults] {
        for family in Family::ALL {
            let Some(tables) = tables::section(report, track, family) else { continue };
            let _ = write!(figures, "\n### {}: {}\n\n", tables::track_title(track), family.title());
            for plot in plots::plots(report, track, family) {
                let _ = writeln!(figures, "![{}]({stem}/{})\n", plot.title, plot.file);
                files.push(plot);
            }
            figures.push_str(&tables);
        }
    }
    let new = replaced(&old, GLANCE, &tables::glance(report))
        .and_then(|page| replaced(&page, FIGURES, &figures))
        .map_err(|error| format!("{}: {error}", page.display()))?;
    fs::create_dir_all(&pictures)?;
    // Plots of rows that are gone go too.
    for entry in fs::read_dir(&pictures)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "svg") {
            fs::remove_file(path)?;
        }
    }
    for plot in files {
        fs::write(pictures.join(plot.file), plot.text)?;
    }
    for cell in unexplained(report, &new) {
        eprintln!("peers: the page does not say why `{cell}` falls short");
    }
    Ok(fs::write(page, new)?)
}

/// Writes `text` into the page between `marks`.
pub fn write_between(page: &Path, marks: Marks, text: &str) -> Result<()> {
    let fail = |error: String| format!("{}: {error}", page.display());
    let old = fs::read_to_string(page).map_err(|error| fail(error.to_string()))?;
    Ok(fs::write(page, replaced(&old, marks, text).map_err(fail)?)?)
}

/// The page with other figures between the marks.
fn replaced(page: &str, marks: Marks, figures: &str) -> std::result::Result<String, String> {
    let Marks { begin, end } = marks;
    let (head, rest) = page.split_once(begin).ok_or(format!("no line '{begin}'"))?;
    let (_, tail) = rest.split_once(end).ok_or(format!("no line '{end}'"))?;
    Ok(format!("{head}{begin}\n\n{figures}\n{end}{tail}"))
}

/// Cells that fall short and are not named outside the figures.
fn unexplained(report: &Report, page: &str) -> Vec<String> {
    let written = replaced(page, FIGURES, "").unwrap_or_default();
    let short = report.rows.iter().filter(|row| row.is_short()).map(|row| row.cell.to_string());
    let mut cells: Vec<String> =
        short.filter(|cell| !written.contains(&format!("`{cell}`"))).collect();
    cells.dedup();
    cells
}

#[cfg(test)]
mod tests;
