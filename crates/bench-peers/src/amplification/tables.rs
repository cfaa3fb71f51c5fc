//! The tables, as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::contender::Contender;
use super::task::{Activity, Exercise, Outcome, Phase, Task};
use crate::cell::size_text;
use crate::environment::Environment;
use crate::report::tables::{environment_line, grouped};
use crate::statistics::median;
use crate::store::Line;

/// The outcomes of one exercise, and where they were found.
pub struct Found {
    environments: Vec<Environment>,
    outcomes: Vec<Outcome>,
}

impl Found {
    /// What lines of a file say of an exercise. A later outcome of a task replaces an earlier one.
    pub fn new(lines: &[Line], exercise: Exercise) -> Self {
        let (mut here, mut found) = (None, Self { environments: Vec::new(), outcomes: Vec::new() });
        for line in lines {
            match line {
                Line::Environment(environment) => here = Some(environment),
                Line::Amplification(outcome) if outcome.task.exercise == exercise => {
                    if let Some(here) = here.filter(|here| !found.environments.contains(here)) {
                        found.environments.push(here.clone());
                    }
                    found.outcomes.retain(|known| known.task != outcome.task);
                    found.outcomes.push(outcome.as_ref().clone());
                }
                _ => {}
            }
        }
        found
    }

    /// Where it was measured, how much was done, and the table.
    pub fn text(&self, exercise: Exercise) -> String {
        let mut text: String = self.environments.iter().map(environment_line).collect();
        let mut amounts: Vec<String> =
            self.outcomes.iter().map(|outcome| amount(&outcome.task)).collect();
        amounts.sort();
        amounts.dedup();
        let _ = writeln!(text, "- {}.\n", amounts.join("; "));
        text.push_str(&match exercise {
            Exercise::Space => space(&self.outcomes),
            Exercise::Steady => steady(&self.outcomes),
        });
        text
    }
}

fn amount(task: &Task) -> String {
    let memtable = task.exercise.memtable_bytes() >> 20;
    let (live, times) = (task.live_bytes >> 20, task.times);
    format!("{live} MiB of live data, overwritten {times} times, memtables of {memtable} MiB")
}

/// A contender and its options, for a line.
fn name(task: &Task) -> String {
    let options = task.options.iter().map(|(name, value)| format!(", `{name}={value}`"));
    format!("{}{}", task.contender.title(), options.collect::<String>())
}

fn space(outcomes: &[Outcome]) -> String {
    let activities: Vec<&str> =
        Exercise::Space.activities().iter().map(|activity| activity.title()).collect();
    let mut text = format!("| value | engine | {} |\n", activities.join(" | "));
    let _ = writeln!(text, "|---:|---|{}", "---:|".repeat(activities.len()));
    let mut sorted: Vec<&Outcome> = outcomes.iter().collect();
    sorted.sort_by_key(|outcome| {
        (outcome.task.value_size, outcome.task.contender, outcome.task.options.clone())
    });
    for outcome in sorted {
        let cells: Vec<String> = outcome.phases.iter().map(space_cell).collect();
        let size = size_text(outcome.task.value_size);
        let _ = writeln!(text, "| {size} | {} | {} |", name(&outcome.task), cells.join(" | "));
    }
    text
}

/// Write amplification, then the largest ratio of space and that when idle.
fn space_cell(phase: &Phase) -> String {
    let amplification = phase.written.amplification();
    let amplification = amplification.map_or("-".to_string(), |ratio| format!("**{ratio:.2}**"));
    let peak = phase.space_peak.map_or("-".to_string(), |ratio| format!("{ratio:.2}"));
    format!("{amplification} {peak} / {:.2}", phase.space_idle)
}

/// Pairs that are compared: the title, Flagstone's contender, and RocksDB's.
const PAIRS: [(&str, Contender, Contender); 2] = [
    ("leveled", Contender::Flagstone, Contender::RocksdbLeveled),
    ("universal", Contender::FlagstoneUniversal, Contender::RocksdbUniversal),
];

fn steady(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "| value | compaction | Flagstone, puts/s | RocksDB, puts/s | ratio (lowest - highest round) | Flagstone's write \
         amplification | RocksDB's | ratio |\n|---:|---|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut rounds: BTreeMap<(u32, Contender), BTreeMap<u32, &Phase>> = BTreeMap::new();
    for outcome in outcomes {
        let task = &outcome.task;
        let measured = outcome.phases.iter().find(|phase| phase.activity == Activity::Overwrite);
        if let Some(phase) = measured {
            rounds.entry((task.value_size, task.contender)).or_default().insert(task.round, phase);
        }
    }
    let mut sizes: Vec<u32> = rounds.keys().map(|(size, _)| *size).collect();
    sizes.dedup();
    for size in sizes {
        for (title, ours, theirs) in PAIRS {
            let (Some(ours), Some(theirs)) =
                (rounds.get(&(size, ours)), rounds.get(&(size, theirs)))
            else {
                continue;
            };
            let _ =
                writeln!(text, "| {} | {title} | {}", size_text(size), steady_cells(ours, theirs));
        }
    }
    text
}

fn steady_cells(ours: &BTreeMap<u32, &Phase>, theirs: &BTreeMap<u32, &Phase>) -> String {
    let rate = |phase: &&Phase| phase.puts as f64 / phase.seconds;
    let amplification = |phase: &&Phase| phase.written.amplification().unwrap_or(f64::NAN);
    let of = |rounds: &BTreeMap<u32, &Phase>, figure: &dyn Fn(&&Phase) -> f64| {
        median(&rounds.values().map(figure).collect::<Vec<_>>())
    };
    let ratios: Vec<f64> = ours
        .iter()
        .filter_map(|(round, phase)| Some(rate(phase) / rate(theirs.get(round)?)))
        .collect();
    let (low, high) = ratios
        .iter()
        .fold((f64::MAX, 0.0f64), |(low, high), ratio| (low.min(*ratio), high.max(*ratio)));
    let (own, other) = (of(ours, &amplification), of(theirs, &amplification));
    format!(
        "{} | {} | **{:.2}** ({low:.2} - {high:.2}) | {own:.2} | {other:.2} | {:.2} |",
        grouped(Some(of(ours, &rate))),
        grouped(Some(of(theirs, &rate))),
        median(&ratios),
        own / other
    )
}

#[cfg(test)]
mod tests;
