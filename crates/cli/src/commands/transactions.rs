//! `flagstone transactions`

use std::ffi::OsString;

use clap::{Args, Subcommand};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, PreparedTransaction, TwoPhase};
use flagstone::options::WriteOptions;
use serde_json::json;

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};
use crate::json;
use crate::output::Output;
use crate::text::{self, Notation};

/// List the transactions that are prepared and not decided; commit or roll one back.
///
/// A prepared transaction is in a WAL, and its application decides on it, perhaps after a restart.
/// Until then the WAL is kept, and the database cannot be opened without allow_2pc. Decide here
/// only if the application is gone for good, or you know what it would decide.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flagstone transactions --db /data/orders\n  \
                  flagstone transactions --db /data/orders commit order-4711\n  \
                  flagstone transactions --db /data/orders rollback order-4712")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    /// Names are hexadecimal, in arguments and in output
    #[arg(long, global = true)]
    hex: bool,
    #[command(subcommand)]
    decision: Option<Decision>,
}

/// What becomes of a transaction.
#[derive(Debug, Subcommand)]
enum Decision {
    /// Commit it: write what was prepared
    Commit {
        /// Name of the transaction, as the list shows it
        name: OsString,
    },
    /// Roll it back: forget what was prepared
    Rollback {
        /// Name of the transaction, as the list shows it
        name: OsString,
    },
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let notation = Notation::new(arguments.hex);
    match &arguments.decision {
        None => {
            let db = database::open(common, &arguments.database.db, Access::Read)?;
            list(&db, common, notation)?;
        }
        Some(decision) => {
            let path = &arguments.database.db;
            let (mut options, families) = database::options(common, path, Access::Write)?;
            options.set_for_one_opening("allow_2pc", "true")?;
            let db = database::open_with((options, families), path, Access::Write)?;
            decide(&db, decision, notation)?;
            db.close()?;
        }
    }
    Ok(Verdict::Sound)
}

fn decide(db: &Db, decision: &Decision, notation: Notation) -> Result<(), Failure> {
    let options = WriteOptions { sync: true, ..WriteOptions::default() };
    match decision {
        Decision::Commit { name } => {
            let name = notation.read("NAME", name)?;
            TwoPhase::of(db).commit(&options, name, &WriteBatch::new())?;
        }
        Decision::Rollback { name } => {
            TwoPhase::of(db).rollback(&options, notation.read("NAME", name)?)?;
        }
    }
    Ok(())
}

fn list(db: &Db, common: &Common, notation: Notation) -> Result<(), Failure> {
    let mut output = Output::new();
    for transaction in TwoPhase::of(db).prepared() {
        output.line(if common.json {
            in_json(&transaction, notation)
        } else {
            line(&transaction, notation)
        })?;
    }
    output.finish()
}

fn line(transaction: &PreparedTransaction, notation: Notation) -> String {
    let operations = transaction.operations();
    format!(
        "{}  {} operations, {}, in WAL {:06}.log",
        notation.show(transaction.name()),
        operations.count(),
        text::bytes(operations.byte_size() as u64),
        transaction.wal_number()
    )
}

fn in_json(transaction: &PreparedTransaction, notation: Notation) -> String {
    let operations = transaction.operations();
    let mut object = json!({
        "operations": operations.count(),
        "bytes": operations.byte_size(),
        "wal": transaction.wal_number(),
    });
    json::tell(&mut object, "name", transaction.name(), notation);
    object.to_string()
}
