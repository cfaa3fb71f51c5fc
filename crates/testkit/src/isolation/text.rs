//! Histories as text, one transaction a line.
//!
//! ```text
//! p1 3-7 ok: append 1 5, locked 1 [4 5], snapshot 2 [], plain 3 [8]
//! p2 4-6 failed: append 1 6
//! p1 8- unknown: append 2 9
//! ```
//!
//! The process, the times of beginning and end, the outcome, and the steps. Empty lines and lines
//! that begin with `#` mean nothing.

use std::fmt::{self, Display};
use std::str::FromStr;

use super::history::{History, Outcome, Read, Step, Transaction};

const OUTCOMES: [(Outcome, &str); 3] =
    [(Outcome::Committed, "ok"), (Outcome::Failed, "failed"), (Outcome::Unknown, "unknown")];

const READS: [(Read, &str); 3] =
    [(Read::Locked, "locked"), (Read::Snapshot, "snapshot"), (Read::Plain, "plain")];

fn name_of<T: PartialEq>(names: &[(T, &'static str)], sought: &T) -> &'static str {
    names.iter().find(|(thing, _)| thing == sought).expect("all have names").1
}

fn named<T: Copy>(names: &[(T, &str)], name: &str) -> Option<T> {
    names.iter().find(|(_, known)| *known == name).map(|(thing, _)| *thing)
}

impl Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Append { key, value } => write!(f, "append {key} {value}"),
            Self::Read { how, key, list } => {
                write!(f, "{} {key} [", name_of(&READS, how))?;
                for (at, value) in list.iter().enumerate() {
                    let space = if at == 0 { "" } else { " " };
                    write!(f, "{space}{value}")?;
                }
                f.write_str("]")
            }
        }
    }
}

impl Display for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{} {}-", self.process, self.begun)?;
        if let Some(ended) = self.ended {
            write!(f, "{ended}")?;
        }
        write!(f, " {}:", name_of(&OUTCOMES, &self.outcome))?;
        for (at, step) in self.steps.iter().enumerate() {
            write!(f, "{} {step}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.transactions.iter().try_for_each(|transaction| writeln!(f, "{transaction}"))
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let step = || {
            let (word, rest) = text.trim().split_once(' ')?;
            let (key, rest) = rest.split_once(' ')?;
            let key = key.parse().ok()?;
            if word == "append" {
                return Some(Self::Append { key, value: rest.parse().ok()? });
            }
            let list = rest.strip_prefix('[')?.strip_suffix(']')?;
            let list = list.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
            Some(Self::Read { how: named(&READS, word)?, key, list })
        };
        step().ok_or_else(|| format!("'{text}' is no step, such as 'locked 1 [4 5]'"))
    }
}

impl FromStr for Transaction {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let wrong = || format!("'{line}' is no transaction, such as 'p1 3-7 ok: append 1 5'");
        let (head, steps) = line.split_once(':').ok_or_else(wrong)?;
        let head: Vec<&str> = head.split_whitespace().collect();
        let [process, times, outcome] = head[..] else { return Err(wrong()) };
        let (begun, ended) = times.split_once('-').ok_or_else(wrong)?;
        let ended = if ended.is_empty() { None } else { Some(ended.parse().map_err(|_| wrong())?) };
        let steps = steps.split(',').filter(|step| !step.trim().is_empty());
        Ok(Self {
            process: process
                .strip_prefix('p')
                .and_then(|number| number.parse().ok())
                .ok_or_else(wrong)?,
            begun: begun.parse().map_err(|_| wrong())?,
            ended,
            outcome: named(&OUTCOMES, outcome).ok_or_else(wrong)?,
            steps: steps.map(str::parse).collect::<Result<_, _>>()?,
        })
    }
}

impl FromStr for History {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Ok(Self { transactions: lines.map(str::parse).collect::<Result<_, _>>()? })
    }
}
