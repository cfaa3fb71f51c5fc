//! What a run did and survived, or what it found.

use flagstone::base::counted;
use std::time::Duration;

use serde_json::{Value, json};

use super::counts::Totals;
use super::plan::{Config, Ending};
use super::settings;
use super::supervisor::Failed;
use crate::failure::Failure;
use crate::output::Output;
use crate::text;

/// Everything there is to tell.
pub struct Summary<'a> {
    pub config: &'a Config,
    pub totals: &'a Totals,
    pub time: Duration,
    pub failed: Option<Failed>,
    /// The arguments of the run.
    pub again: Vec<String>,
}

impl Summary<'_> {
    /// Prints it.
    pub fn print(&self, as_json: bool) -> Result<(), Failure> {
        let mut output = Output::new();
        if as_json {
            output.line(self.json().to_string())?;
        } else {
            self.totals_as_text(&mut output)?;
            self.failure_as_text(&mut output)?;
        }
        output.finish()
    }

    fn totals_as_text(&self, output: &mut Output) -> Result<(), Failure> {
        let Self { config, totals, time, .. } = self;
        output.line(format!(
            "seed {}: {} in {:.1} s, {}, {} in each of 3 families",
            config.seed,
            counted(totals.other("rounds"), "round"),
            time.as_secs_f64(),
            counted(config.space.threads, "thread"),
            counted(config.space.keys(), "key")
        ))?;
        let shown = |name: &str, count: u64| {
            if name.starts_with("bytes") {
                format!("  {:>14} {name}", text::bytes(count))
            } else {
                format!("  {count:>14} {name}")
            }
        };
        for (name, count) in totals.others.iter().filter(|(name, _)| *name != "rounds") {
            output.line(shown(name, *count))?;
        }
        output.line(format!("operations ({}):", totals.operations.values().sum::<u64>()))?;
        for (name, count) in &totals.operations {
            output.line(shown(name, *count))?;
        }
        output.line("rare branches reached:")?;
        for (name, (_, count)) in totals.markers.iter().filter(|(_, (_, count))| *count > 0) {
            output.line(shown(name, *count))?;
        }
        let never: Vec<_> = totals.markers.iter().filter(|(_, (_, count))| *count == 0).collect();
        if !never.is_empty() {
            output.line("never reached:")?;
        }
        never
            .into_iter()
            .try_for_each(|(name, (meaning, _))| output.line(format!("  {name}: {meaning}")))
    }

    fn failure_as_text(&self, output: &mut Output) -> Result<(), Failure> {
        let Some((round, fault)) = &self.failed else { return output.line("nothing wrong found") };
        output.line(format!("\nFAULT in round {} of seed {}", round.number, self.config.seed))?;
        output.line(fault.to_string())?;
        output.line(format!(
            "the round {}; its options, where they are not the defaults:",
            self.story()
        ))?;
        for line in self.options() {
            output.line(format!("  {line}"))?;
        }
        for (what, path) in self.kept() {
            output.line(format!("{what}: {path}"))?;
        }
        output.line(format!("to repeat the round: {}", self.repeat()))
    }

    fn json(&self) -> Value {
        let Self { config, totals, .. } = self;
        let markers: Vec<Value> = totals
            .markers
            .iter()
            .map(|(name, (meaning, count))| json!({ "name": name, "meaning": meaning, "count": count }))
            .collect();
        let failure = self.failed.as_ref().map(|(round, fault)| {
            json!({
                "round": round.number,
                "fault": fault.to_json(),
                "story": self.story(),
                "options": self.options(),
                "kept": self.kept().into_iter().collect::<std::collections::BTreeMap<_, _>>(),
                "repeat": self.repeat(),
            })
        });
        json!({
            "seed": config.seed,
            "seconds": self.time.as_secs_f64(),
            "threads": config.space.threads,
            "keys": config.space.keys(),
            "counts": totals.others,
            "operations": totals.operations,
            "markers": markers,
            "failure": failure,
        })
    }

    /// What the round was to be.
    fn story(&self) -> String {
        let Some((round, _)) = &self.failed else { return String::new() };
        let mut story = match round.ending {
            Ending::Killed(time) => {
                format!("was to be killed after {:.3} s of work", time.as_secs_f64())
            }
            Ending::KilledEarly(time) => {
                format!("was to be killed {:.3} s after its start", time.as_secs_f64())
            }
            Ending::Closed(time) => {
                format!("was to close the database after {:.3} s", time.as_secs_f64())
            }
        };
        if round.closes() && round.closes_under_threads {
            story += ", while its threads are at work";
        }
        if round.unlogged {
            story += ", with some writes that skip the WAL";
        }
        if let Some(limit) = round.disk_limit {
            story += &format!(", on a disk of {}", text::bytes(limit));
        }
        story
    }

    fn options(&self) -> Vec<String> {
        let Some((round, _)) = &self.failed else { return Vec::new() };
        settings::choose(self.config, round, &flagstone::env::Env::os()).differences()
    }

    fn kept(&self) -> Vec<(&'static str, String)> {
        let shown = |path: std::path::PathBuf| path.display().to_string();
        vec![
            ("the database", shown(self.config.db())),
            ("as the round found it", shown(self.config.before())),
            ("standard error of its process", shown(self.config.log())),
        ]
    }

    fn repeat(&self) -> String {
        let round = self.failed.as_ref().map_or(0, |(round, _)| round.number);
        let again: Vec<_> = self.again.iter().map(|argument| quoted(argument)).collect();
        format!("flagstone {} --repeat {round}", again.join(" "))
    }
}

/// An argument as it is written for a shell.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=+./:,@%".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        argument.to_string()
    } else {
        format!("'{}'", argument.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests;
