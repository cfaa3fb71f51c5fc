//! From results to rows that compare engines, as tables.

pub mod tables;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::cell::{Cell, Effort, EngineName, Look, value_name};
use crate::engine::Result;
use crate::environment::Environment;
use crate::measure::Part;
use crate::program::ALL_ENGINES;
use crate::run::{Assignment, Run};
use crate::statistics::{Estimate, Verdict, estimate, median};
use crate::store::Line;

/// Runs in which others took more than this part of the CPU time are named as disturbed; the
/// kernel's own threads take some.
const DISTURBED: f64 = 0.1;

/// Everything that files of results say, sorted.
pub struct Report {
    /// The machines and versions; more than one is a warning in itself.
    pub environments: Vec<Environment>,
    /// How much was done.
    pub effort: Effort,
    /// The rows.
    pub rows: Vec<Row>,
    /// Runs that came to nothing: the cell, the engine, why.
    pub failures: Vec<(Cell, EngineName, String)>,
    /// Options beyond the tracks'.
    pub options: BTreeSet<String>,
    /// Runs that others disturbed, and all runs.
    pub disturbed: (usize, usize),
    /// The first and the last run's seconds since 1970.
    pub period: (u64, u64),
}

/// One part of one cell on all engines.
pub struct Row {
    /// The cell.
    pub cell: Cell,
    /// The part's name.
    pub part: String,
    /// Whether it is the cell's first part, the one that the cell's resources are shown beside.
    pub is_main: bool,
    /// The runs by engine and round.
    pub runs: BTreeMap<EngineName, BTreeMap<u32, Run>>,
}

impl Report {
    /// Sorts lines. A later run of the same round replaces an earlier one.
    pub fn new(lines: &[Line]) -> Result<Self> {
        let mut cells: BTreeMap<Cell, BTreeMap<EngineName, BTreeMap<u32, Run>>> = BTreeMap::new();
        let (mut environments, mut failures) = (Vec::new(), BTreeMap::new());
        let (mut alike, mut options) = (Alike::default(), BTreeSet::new());
        for line in lines {
            match line {
                Line::Environment(found) if !environments.contains(found) => {
                    environments.push(found.clone())
                }
                // The latter have tables of their own.
                Line::Environment(_) | Line::Amplification(_) => {}
                Line::Failure { assignment: told, message } => {
                    failures.insert((told.cell, told.engine, told.round), message.clone());
                }
                Line::Run(run) => {
                    let told = &run.assignment;
                    alike.admit(told)?;
                    options.extend(options_of(told));
                    failures.remove(&(told.cell, told.engine, told.round));
                    let rounds =
                        cells.entry(told.cell).or_default().entry(told.engine).or_default();
                    rounds.insert(told.round, run.as_ref().clone());
                }
            }
        }
        let runs = || cells.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values);
        let disturbed = runs().filter(|run| is_disturbed(run)).count();
        let times: Vec<u64> = runs().map(|run| run.unix_time).collect();
        Ok(Self {
            effort: alike.effort.ok_or("no runs")?,
            disturbed: (disturbed, times.len()),
            period: (
                times.iter().min().copied().unwrap_or(0),
                times.iter().max().copied().unwrap_or(0),
            ),
            rows: cells.iter().flat_map(|(cell, runs)| rows(cell, runs)).collect(),
            environments,
            options,
            failures: failures
                .into_iter()
                .map(|((cell, engine, _), message)| (cell, engine, message))
                .collect(),
        })
    }

    /// The comparisons for programs.
    pub fn json(&self) -> serde_json::Value {
        let rows = self.rows.iter().map(|row| {
            let rate_of = |engine: &EngineName| (value_name(*engine), json!(row.rate(*engine)));
            let rates = row.runs.keys().map(rate_of);
            let ratio = row.ratio().map(|(rival, ratio)| {
                let (low, high, confidence) = (ratio.low, ratio.high, ratio.confidence);
                json!({ "rival": rival, "median": ratio.median, "low": low, "high": high, "confidence": confidence })
            });
            json!({
                "cell": row.cell.to_string(),
                "part": row.part,
                "operations_per_second": rates.collect::<serde_json::Map<_, _>>(),
                "ratio": ratio,
                "target": row.cell.target(&row.part),
            })
        });
        json!({ "rows": rows.collect::<Vec<_>>(), "disturbed_runs": self.disturbed.0, "runs": self.disturbed.1 })
    }
}

/// What the runs of a report have in common.
#[derive(Default)]
struct Alike {
    effort: Option<Effort>,
    maker: Option<Option<EngineName>>,
    look: Option<Look>,
    programs: BTreeMap<EngineName, String>,
    /// What the runs of an engine in a cell have beyond the track.
    options: BTreeMap<(Cell, EngineName), String>,
}

impl Alike {
    /// Refuses a run that is not like those before.
    fn admit(&mut self, told: &Assignment) -> Result<()> {
        if *self.effort.get_or_insert(told.effort) != told.effort {
            return Err(
                "these results are of several scales or lengths: they cannot share a report".into(),
            );
        }
        if *self.maker.get_or_insert(told.database_of) != told.database_of {
            return Err("some of these results are of the same database for both engines".into());
        }
        if *self.look.get_or_insert(told.look) != told.look {
            return Err(
                "in some of these results readers looked at more of a value than in others".into(),
            );
        }
        let options = format!("{:?} {:?}", told.options, told.maker_options);
        let of_row =
            self.options.entry((told.cell, told.engine)).or_insert_with(|| options.clone());
        if *of_row != options {
            return Err(format!(
                "some runs of {} in {} have other options than others: they cannot share a report",
                told.engine.title(),
                told.cell
            )
            .into());
        }
        let program = self.programs.entry(told.engine).or_insert_with(|| told.program.clone());
        if *program != told.program {
            let (engine, other) = (told.engine.title(), &told.program);
            return Err(format!(
                "some runs of {engine} were made by a program with {program}, others with {other}"
            )
            .into());
        }
        Ok(())
    }
}

/// What makes a run another one than its track says.
fn options_of(told: &Assignment) -> Vec<String> {
    let mut options = Vec::new();
    options.extend(
        told.database_of.map(|of| format!("the same files for both, of {}", value_name(of))),
    );
    for engine in [told.engine, told.maker()] {
        let of = value_name(engine);
        let named = told.options_of(engine).iter();
        options.extend(named.map(|(name, value)| format!("{of}:{name}={value}")));
    }
    if told.look != Look::default() {
        options.push(format!("--look {}", value_name(told.look)));
    }
    if told.program != ALL_ENGINES {
        options.push(format!("{} in a program with {}", value_name(told.engine), told.program));
    }
    options
}

fn is_disturbed(run: &Run) -> bool {
    run.foreign_cpu_seconds > DISTURBED * run.working.machine_cpu_seconds
}

fn rows(cell: &Cell, runs: &BTreeMap<EngineName, BTreeMap<u32, Run>>) -> Vec<Row> {
    let mut parts: Vec<&String> = Vec::new();
    for part in runs.values().flat_map(BTreeMap::values).flat_map(|run| &run.parts) {
        if !parts.contains(&&part.name) {
            parts.push(&part.name);
        }
    }
    let rows = parts.iter().enumerate().map(|(index, part)| Row {
        cell: *cell,
        part: part.to_string(),
        is_main: index == 0,
        runs: runs.clone(),
    });
    rows.collect()
}

impl Row {
    fn part_of<'a>(&self, run: &'a Run) -> Option<&'a Part> {
        run.parts.iter().find(|part| part.name == self.part)
    }

    /// The median of something over an engine's runs.
    pub fn median(
        &self,
        engine: EngineName,
        figure: impl Fn(&Run, &Part) -> Option<f64>,
    ) -> Option<f64> {
        let runs = self.runs.get(&engine)?.values();
        let figures: Vec<f64> = runs.filter_map(|run| figure(run, self.part_of(run)?)).collect();
        (!figures.is_empty()).then(|| median(&figures))
    }

    /// The median rate, in operations a second.
    pub fn rate(&self, engine: EngineName) -> Option<f64> {
        self.median(engine, |_, part| Some(part.rate()))
    }

    /// Our rate over another engine's, from rounds that both have.
    pub fn ratio_to(&self, rival: EngineName) -> Option<Estimate> {
        self.ratio_of(EngineName::Flagstone, rival)
    }

    /// One engine's rate over another's, likewise.
    pub fn ratio_of(&self, engine: EngineName, rival: EngineName) -> Option<Estimate> {
        let (ours, theirs) = (self.runs.get(&engine)?, self.runs.get(&rival)?);
        let ratios = ours.iter().filter_map(|(round, run)| {
            let their_rate = self.part_of(theirs.get(round)?)?.rate();
            (their_rate > 0.0).then_some(self.part_of(run)?.rate() / their_rate)
        });
        let ratios: Vec<f64> = ratios.collect();
        (!ratios.is_empty()).then(|| estimate(&ratios))
    }

    /// The ratio to RocksDB: to the fastest of its modes, if there are several.
    pub fn ratio(&self) -> Option<(EngineName, Estimate)> {
        let modes = self.cell.rivals().iter().copied();
        let best = modes.filter(|mode| self.rate(*mode).is_some()).max_by(|one, other| {
            self.rate(*one).unwrap_or(0.0).total_cmp(&self.rate(*other).unwrap_or(0.0))
        });
        let best = best?;
        Some((best, self.ratio_to(best)?))
    }

    /// Whether the row falls short of what it must reach. A part at a set pace has nothing to
    /// reach.
    pub fn is_short(&self) -> bool {
        let Some((_, ratio)) = self.ratio() else { return false };
        if self.part.starts_with("paced") {
            return false;
        }
        let misses = self.cell.target(&self.part).is_some_and(|target| ratio.median < target);
        misses || ratio.verdict() == Verdict::Lost
    }
}

#[cfg(test)]
mod tests;
