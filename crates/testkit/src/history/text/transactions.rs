//! Operations of transactions as text.
//!
//! ```text
//! begin:    "now" | "snapshot"
//! go-on:    number { step ";" }
//! commit:   durability number
//! abandon:  number
//! prepare:  durability { edit ";" }
//! decide:   "commit" | "rollback" durability number
//! step := "get" family key | "track" family key | "change" edit | "save-point" | "roll-back"
//! ```

use std::fmt;

use super::{DURABILITIES, Words, name_of, named, print_edit, word};
use crate::history::operation::{Operation, TransactionStep};

/// As of when a transaction reads.
const MOMENTS: [(&str, bool); 2] = [("now", false), ("snapshot", true)];

/// What becomes of a transaction that is prepared.
const DECISIONS: [(&str, bool); 2] = [("rollback", false), ("commit", true)];

fn print_step(step: &TransactionStep) -> String {
    let of_key = |name, family: &String, key: &[u8]| {
        format!("{name} {} {}", word(family.as_bytes()), word(key))
    };
    match step {
        TransactionStep::Get { family, key } => of_key("get", family, key),
        TransactionStep::Track { family, key } => of_key("track", family, key),
        TransactionStep::Change(family, edit) => {
            format!("change {}", print_edit(&(family.clone(), edit.clone())))
        }
        TransactionStep::SavePoint => "save-point".to_string(),
        TransactionStep::RollBack => "roll-back".to_string(),
    }
}

impl Operation {
    pub(super) fn fmt_of_transaction(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin { in_snapshot } => write!(f, " {}", name_of(&MOMENTS, in_snapshot)),
            Self::GoOn { index, steps } => {
                let steps: Vec<_> = steps.iter().map(print_step).collect();
                write!(f, " {index} {}", steps.join(" ; "))
            }
            Self::Commit { index, durability } => {
                write!(f, " {} {index}", name_of(&DURABILITIES, durability))
            }
            Self::Abandon(index) => write!(f, " {index}"),
            Self::Prepare { durability, edits } => {
                let edits: Vec<_> = edits.iter().map(print_edit).collect();
                write!(f, " {} {}", name_of(&DURABILITIES, durability), edits.join(" ; "))
            }
            Self::Decide { index, commits, durability } => write!(
                f,
                " {} {} {index}",
                name_of(&DECISIONS, commits),
                name_of(&DURABILITIES, durability)
            ),
            other => unreachable!("{} is none of a transaction", other.kind()),
        }
    }
}

impl Words<'_> {
    /// What follows the first word of an operation that is of a transaction, or of none.
    pub(super) fn of_transaction(&mut self, kind: &str) -> Result<Operation, String> {
        Ok(match kind {
            "begin" => Operation::Begin { in_snapshot: named(&MOMENTS, self.text()?)? },
            "go-on" => {
                Operation::GoOn { index: self.number()?, steps: self.all(Self::transaction_step)? }
            }
            "commit" => {
                let durability = named(&DURABILITIES, self.text()?)?;
                Operation::Commit { index: self.number()?, durability }
            }
            "abandon" => Operation::Abandon(self.number()?),
            "prepare" => {
                let durability = named(&DURABILITIES, self.text()?)?;
                Operation::Prepare { durability, edits: self.all(Self::edit)? }
            }
            "decide" => {
                let commits = named(&DECISIONS, self.text()?)?;
                let durability = named(&DURABILITIES, self.text()?)?;
                Operation::Decide { commits, durability, index: self.number()? }
            }
            unknown => return Err(format!("'{unknown}' is no operation")),
        })
    }

    fn transaction_step(&mut self) -> Result<TransactionStep, String> {
        self.rest.next_if_eq(&";");
        Ok(match self.text()? {
            "get" => TransactionStep::Get { family: self.name()?, key: self.key()? },
            "track" => TransactionStep::Track { family: self.name()?, key: self.key()? },
            "change" => {
                let (family, edit) = self.edit()?;
                TransactionStep::Change(family, edit)
            }
            "save-point" => TransactionStep::SavePoint,
            "roll-back" => TransactionStep::RollBack,
            unknown => return Err(format!("'{unknown}' is no step of a transaction")),
        })
    }
}
