//! `flagstone transactions`

use std::ffi::OsString;

use clap::{Args, Subcommand};
use flagstone::base::{Code, counted};
use flagstone::batch::{Operation, WriteBatch};
use flagstone::db::{Db, PreparedTransaction, TwoPhase};
use flagstone::options::WriteOptions;
use serde_json::json;

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};
use crate::json;
use crate::marks::{Stamp, WriteAsOf};
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
        #[command(flatten)]
        as_of: WriteAsOf,
        /// Leave out what it changes in column families that were dropped
        #[arg(long)]
        ignore_missing_families: bool,
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
    let mut options = WriteOptions { sync: true, ..WriteOptions::default() };
    match decision {
        Decision::Commit { name, as_of, ignore_missing_families } => {
            options.ignore_missing_column_families = *ignore_missing_families;
            let name = notation.read("NAME", name)?;
            let stamp = stamp_of_commit(db, &name, as_of)?;
            commit(db, &options, &name, stamp)?;
        }
        Decision::Rollback { name } => {
            TwoPhase::of(db).rollback(&options, notation.read("NAME", name)?)?;
        }
    }
    Ok(())
}

/// The timestamp of a commit, which those of its families want whose keys have timestamps.
fn stamp_of_commit(db: &Db, name: &[u8], as_of: &WriteAsOf) -> Result<Option<Stamp>, Failure> {
    let prepared = TwoPhase::of(db).prepared().into_iter().find(|one| one.name() == name);
    let written = prepared.map(|one| one.families()).unwrap_or_default();
    let families = db.column_families();
    let mut written: Vec<_> =
        families.iter().filter(|family| written.contains(&family.id())).collect();
    written.sort_by_key(|family| family.comparator().timestamp_size() == 0);
    written.first().map_or(Ok(None), |family| as_of.stamp(family))
}

fn commit(
    db: &Db,
    options: &WriteOptions,
    name: &[u8],
    stamp: Option<Stamp>,
) -> Result<(), Failure> {
    let stamp = stamp.as_ref().map(|stamp| &stamp[..]);
    let committed = TwoPhase::of(db).commit_as_of(options, name, &WriteBatch::new(), stamp);
    let Err(error) = committed else { return Ok(()) };
    let refused = TwoPhase::of(db).prepared().into_iter().find(|one| one.name() == name);
    let Some(refused) = refused.filter(|_| error.code() == Code::InvalidArgument) else {
        return Err(error.into());
    };
    let there: Vec<_> = db.column_families().iter().map(|family| family.id()).collect();
    let lacks_families = refused.families().iter().any(|id| !there.contains(id));
    if lacks_families && !options.ignore_missing_column_families {
        let message = format!("{error} (here: --ignore-missing-families)");
        return Err(Failure::Other(message));
    }
    let is_merge = |operation| matches!(operation, Ok(Operation::Merge { .. }));
    if refused.operations().iter().any(is_merge) {
        return Err(Failure::Other(format!(
            "{error}. It merges values: only the program with its merge operator can commit it"
        )));
    }
    Err(error.into())
}

fn list(db: &Db, common: &Common, notation: Notation) -> Result<(), Failure> {
    let mut output = Output::new();
    for transaction in TwoPhase::of(db).prepared() {
        output.line(if common.json {
            in_json(&transaction, &families_of(db, &transaction), notation)
        } else {
            line(&transaction, &families_of(db, &transaction), notation)
        })?;
    }
    output.finish()
}

/// The column families that a transaction changes: their names, or the numbers of those that were
/// dropped.
fn families_of(db: &Db, transaction: &PreparedTransaction) -> Vec<String> {
    let there = db.column_families();
    let names = transaction.families().into_iter().map(|id| {
        let family = there.iter().find(|family| family.id() == id);
        family.map_or_else(|| format!("{id} (dropped)"), |family| family.name().to_string())
    });
    names.collect()
}

fn line(transaction: &PreparedTransaction, families: &[String], notation: Notation) -> String {
    let operations = transaction.operations();
    format!(
        "{}  {} in {}, {}, in WAL {:06}.log",
        notation.show(transaction.name()),
        counted(operations.count(), "operation"),
        families.join(", "),
        text::bytes(operations.byte_size() as u64),
        transaction.wal_number()
    )
}

fn in_json(transaction: &PreparedTransaction, families: &[String], notation: Notation) -> String {
    let operations = transaction.operations();
    let mut object = json!({
        "operations": operations.count(),
        "families": families,
        "bytes": operations.byte_size(),
        "wal": transaction.wal_number(),
    });
    json::tell(&mut object, "name", transaction.name(), notation);
    object.to_string()
}
