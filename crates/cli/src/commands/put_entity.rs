//! `flagstone put-entity`

use std::ffi::OsString;

use clap::Args;
use flagstone::batch::WriteBatch;
use flagstone::options::WriteOptions;

use crate::arguments::{Common, Place};
use crate::database::{self, Access};
use crate::entities::read_column;
use crate::failure::{Outcome, Verdict};
use crate::marks::refuse_stamps;

/// Set a key to an entity: several named columns in place of one value.
///
/// A column is NAME:VALUE; the name ends at the first colon, and may be empty: get prints the value
/// of that column. With --hex, key, names and values are hexadecimal. Creates the database if it
/// does not exist. The write is on the device when the command ends.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flagstone put-entity --db /data/people ada :countess born:1815"
)]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// The key
    key: OsString,
    /// A column, NAME:VALUE
    #[arg(required = true, value_name = "COLUMN")]
    columns: Vec<OsString>,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let notation = place.notation();
    let key = notation.read("the key", &arguments.key)?;
    let columns = arguments.columns.iter().map(|text| read_column(text, notation));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    database::check_may_have(&place.db, &place.cf)?;
    let db = database::open(common, &place.db, Access::Create)?;
    let family = database::family(&db, &place.cf)?;
    refuse_stamps(&family, "put or batch-put --write-timestamp NUMBER")?;
    let mut batch = WriteBatch::new();
    batch.put_entity_cf(&family, &key, columns)?;
    db.write_with(&WriteOptions::synced(), batch)?;
    db.close()?;
    Ok(Verdict::Sound)
}
