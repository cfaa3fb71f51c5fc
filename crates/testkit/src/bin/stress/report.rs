//! What a run did and survived, or what it found.

use std::io::{self, Write};
use std::time::Duration;

use flagstone::base::counted;
use indicatif::BinaryBytes;
use serde_json::{Value, json};

use crate::counts::Totals;
use crate::failure::Failure;
use crate::plan::{Config, Ending};
use crate::settings;
use crate::supervisor::Failed;

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
    /// Prints it. A reader who goes away is no error: the verdict stands.
    pub fn print(&self, as_json: bool) -> Result<(), Failure> {
        let text = if as_json {
            format!("{}\n", self.json())
        } else {
            format!("{}{}", self.totals_as_text(), self.failure_as_text())
        };
        let mut output = io::stdout().lock();
        match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::io("write to standard output", error))
            }
            _ => Ok(()),
        }
    }

    fn totals_as_text(&self) -> String {
        let Self { config, totals, time, .. } = self;
        let shown = |name: &str, count: u64| {
            if name.starts_with("bytes") {
                format!("  {:>14} {name}", BinaryBytes(count).to_string())
            } else {
                format!("  {count:>14} {name}")
            }
        };
        let mut lines = vec![format!(
            "seed {}: {} in {:.1} s, {}, {} in each of 3 families",
            config.seed,
            counted(totals.other("rounds"), "round"),
            time.as_secs_f64(),
            counted(config.space.threads, "thread"),
            counted(config.space.keys(), "key")
        )];
        let others = totals.others.iter().filter(|(name, _)| *name != "rounds");
        lines.extend(others.map(|(name, count)| shown(name, *count)));
        lines.push(format!("operations ({}):", totals.operations.values().sum::<u64>()));
        lines.extend(totals.operations.iter().map(|(name, count)| shown(name, *count)));
        let (reached, never): (Vec<_>, Vec<_>) =
            totals.markers.iter().partition(|(_, (_, count))| *count > 0);
        lines.push("rare branches reached:".to_string());
        lines.extend(reached.iter().map(|(name, (_, count))| shown(name, *count)));
        if !never.is_empty() {
            lines.push("never reached:".to_string());
        }
        lines.extend(never.iter().map(|(name, (meaning, _))| format!("  {name}: {meaning}")));
        lines.join("\n") + "\n"
    }

    fn failure_as_text(&self) -> String {
        let Some((round, fault)) = &self.failed else { return "nothing wrong found\n".to_string() };
        let mut lines = vec![
            format!("\nFAULT in round {} of seed {}", round.number, self.config.seed),
            fault.to_string(),
            format!("the round {}; its options, where they are not the defaults:", self.story()),
        ];
        lines.extend(self.options().iter().map(|line| format!("  {line}")));
        lines.extend(self.kept().iter().map(|(what, path)| format!("{what}: {path}")));
        lines.push(format!("to repeat the round: {}\n", self.repeat()));
        lines.join("\n")
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
            story += &format!(", on a disk of {}", BinaryBytes(limit));
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
        format!("stress {} --repeat {round}", again.join(" "))
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
