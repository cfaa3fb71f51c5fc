//! `flagstone put`

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use flagstone::env::{Env, read_file};

use crate::arguments::{Common, Place};
use crate::commands::write::write_synced;
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome};

/// The largest value that a database holds.
const VALUE_SIZE_MAX: u64 = u32::MAX as u64;

/// Set the value of a key.
///
/// The value is the second argument, or the contents of --file, or else what standard input holds. Makes the
/// database if there is none. The write is on the device when the command ends.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone put --db /data/photos cats/tom.jpg --file tom.jpg")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// The key
    key: String,
    /// The value
    #[arg(conflicts_with = "file")]
    value: Option<String>,
    /// Take the value from this file
    #[arg(long, value_name = "F")]
    file: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let key = place.notation().read("the key", &arguments.key)?;
    let value = value(arguments)?;
    let db = database::open(common, &place.db, Access::Create)?;
    let family = database::family(&db, &place.cf)?;
    write_synced(&db, |batch| batch.put_cf(&family, &key, &value))
}

fn value(arguments: &Arguments) -> Result<Vec<u8>, Failure> {
    match (&arguments.value, &arguments.file) {
        (Some(text), _) => arguments.place.notation().read("the value", text),
        (None, Some(path)) => Ok(read_file(Env::os().fs.as_ref(), path, VALUE_SIZE_MAX)?),
        (None, None) => {
            let mut bytes = Vec::new();
            std::io::stdin()
                .lock()
                .read_to_end(&mut bytes)
                .map_err(|error| Failure::Stream("read the value from standard input", error))?;
            Ok(bytes)
        }
    }
}
