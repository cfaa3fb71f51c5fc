//! `flagstone batch-put`

use std::ffi::OsString;

use clap::Args;
use flagstone::batch::WriteBatch;

use crate::arguments::{Common, Place};
use crate::commands::write::put_into;
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};
use crate::marks::WriteAsOf;
use crate::stamped::Ttl;

/// Set the values of several keys at once: all of them, or none if it fails.
///
/// With --hex, keys and values are hexadecimal. Creates the database if it does not exist. The
/// write is on the device when the command ends. For more pairs than a command line takes, use
/// load, which is not atomic.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone batch-put --db /data/photos hello world ada 1815")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// Keys, each with its value behind it
    #[arg(value_name = "KEY VALUE", required = true)]
    pairs: Vec<OsString>,
    #[command(flatten)]
    as_of: WriteAsOf,
    #[command(flatten)]
    ttl: Ttl,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let (place, notation) = (&arguments.place, arguments.place.notation());
    let (pairs, alone) = arguments.pairs.as_chunks::<2>();
    if let [key] = alone {
        let key = notation.show(key.as_encoded_bytes());
        return Err(Failure::Usage(format!("the last key, '{key}', has no value behind it")));
    }
    let read = |[key, value]: &[OsString; 2]| {
        Ok((notation.read("the key", key)?, notation.read("the value", value)?))
    };
    let pairs = pairs.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
    database::check_may_have(&place.db, &place.cf)?;
    let db = arguments.ttl.open(common, &place.db, Access::Create)?;
    let family = database::family(db.db(), &place.cf)?;
    let stamp = arguments.as_of.stamp(&family)?;
    let mut batch = WriteBatch::new();
    for (key, value) in &pairs {
        put_into(&mut batch, &family, stamp, (key, value))?;
    }
    db.write_synced(&mut batch)?;
    Ok(Verdict::Sound)
}
