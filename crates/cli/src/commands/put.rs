//! `flagstone put`

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use flagstone::batch::{MAX_ENTRY_SIZE, WriteBatch};
use flagstone::db::ColumnFamily;
use flagstone::options::WriteOptions;

use crate::arguments::{Common, Place};
use crate::commands::write::{put_into, store_pieces};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict, tell_if_typed};
use crate::input::Input;
use crate::marks::{Stamp, WriteAsOf};
use crate::pieces::PIECE_SIZE;
use crate::stamped::{Opened, Ttl};

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
    as_of: WriteAsOf,
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
        let db = arguments.ttl.open(common, &place.db, Access::Create)?;
        let family = database::family(db.db(), &place.cf)?;
        return put_whole(&db, &family, arguments.as_of.stamp(&family)?, (&key, &value));
    }
    let mut source = source(arguments)?;
    let db = arguments.ttl.open(common, &place.db, Access::Create)?;
    let family = database::family(db.db(), &place.cf)?;
    if let Some(stamp) = arguments.as_of.stamp(&family)? {
        let value = whole(&mut *source)?;
        return put_whole(&db, &family, Some(stamp), (&key, &value));
    }
    store_pieces(db.put_stream(&family, &key, &WriteOptions::synced())?, &mut *source)?;
    db.db().close()?;
    Ok(Verdict::Sound)
}

fn put_whole(
    db: &Opened,
    family: &ColumnFamily,
    stamp: Option<Stamp>,
    (key, value): (&[u8], &[u8]),
) -> Outcome {
    let mut batch = WriteBatch::new();
    put_into(&mut batch, family, stamp, (key, value))?;
    db.write_synced(&mut batch)?;
    Ok(Verdict::Sound)
}

/// A value with a timestamp is in memory as a whole.
fn whole(read: &mut dyn FnMut(&mut [u8]) -> Result<usize, Failure>) -> Result<Vec<u8>, Failure> {
    let (mut value, mut piece) = (Vec::new(), vec![0; PIECE_SIZE]);
    loop {
        let length = read(&mut piece)?;
        value.extend_from_slice(&piece[..length]);
        if length == 0 || value.len() > MAX_ENTRY_SIZE {
            return Ok(value);
        }
    }
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
