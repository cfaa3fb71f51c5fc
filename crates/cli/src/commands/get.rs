//! `flagstone get`

use clap::Args;

use crate::arguments::{Common, Place};
use crate::database::{self, Access};
use crate::failure::{Outcome, Verdict};
use crate::output::Output;

/// Print the value of a key.
///
/// The value is printed as it is, without a line end; with --hex in hexadecimal on a line. A key without a value
/// gives exit code 1.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone get --db /data/photos cats/tom.jpg > tom.jpg")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// The key
    key: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let key = place.notation().read("the key", &arguments.key)?;
    let db = database::open(common, &place.db, Access::Read)?;
    let family = database::family(&db, &place.cf)?;
    let Some(value) = db.get_cf(&family, &key)? else {
        eprintln!("flagstone: key '{}' is not in column family '{}'", arguments.key, place.cf);
        return Ok(Verdict::Faulty);
    };
    let mut output = Output::new();
    match place.hex {
        true => output.line(place.notation().show(&value))?,
        false => output.bytes(&value)?,
    }
    output.finish()?;
    Ok(Verdict::Sound)
}
