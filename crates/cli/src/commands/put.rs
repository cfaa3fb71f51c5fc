//! `flagstone put`

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use flagstone::options::WriteOptions;

use crate::arguments::{Common, Place};
use crate::commands::write::store_pieces;
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict, tell_if_typed};
use crate::input::Input;
use crate::stamped::Ttl;

/// Set the value of a key.
///
/// The value is the second argument, the contents of --file, or standard input; it need not fit
/// into memory. --hex applies to the arguments only, not to files or standard input. Creates the
/// database if it does not exist. The write is on the device when the command ends.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone put --db /data/photos cats/tom.jpg --file tom.jpg")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// The key
    key: OsString,
    /// The value
    #[arg(conflicts_with = "file")]
    value: Option<OsString>,
    /// Read the value from this file; - is standard input
    #[arg(long, visible_alias = "value-file", value_name = "F")]
    file: Option<PathBuf>,
    #[command(flatten)]
    ttl: Ttl,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let key = place.notation().read("the key", &arguments.key)?;
    database::check_may_have(&place.db, &place.cf)?;
    if let Some(text) = &arguments.value {
        let value = place.notation().read("the value", text)?;
        return put_whole(arguments, common, &key, &value);
    }
    let mut source = source(arguments)?;
    let db = arguments.ttl.open(common, &place.db, Access::Create)?;
    let family = database::family(db.db(), &place.cf)?;
    let synced = WriteOptions { sync: true, ..WriteOptions::default() };
    store_pieces(db.put_stream(&family, &key, &synced)?, &mut *source)?;
    db.db().close()?;
    Ok(Verdict::Sound)
}

fn put_whole(arguments: &Arguments, common: &Common, key: &[u8], value: &[u8]) -> Outcome {
    let db = arguments.ttl.open(common, &arguments.place.db, Access::Create)?;
    let family = database::family(db.db(), &arguments.place.cf)?;
    db.put_synced(&family, key, value)?;
    Ok(Verdict::Sound)
}

type Source = Box<dyn FnMut(&mut [u8]) -> Result<usize, Failure>>;

/// What fills a buffer with the next piece of the value, and says how much of it.
fn source(arguments: &Arguments) -> Result<Source, Failure> {
    match &arguments.file {
        Some(path) if path.as_os_str() != "-" => {
            let mut input = Input::open(path)?;
            Ok(Box::new(move |buffer: &mut [u8]| Ok(input.next(buffer)?)))
        }
        _ => {
            tell_if_typed("the value");
            Ok(Box::new(|buffer: &mut [u8]| {
                let read = std::io::stdin().lock().read(buffer);
                read.map_err(|error| Failure::Stream("read the value from standard input", error))
            }))
        }
    }
}
