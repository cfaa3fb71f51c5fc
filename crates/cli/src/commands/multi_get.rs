//! `flagstone multi-get` and `flagstone multi-get-entity`

use std::ffi::OsString;

use clap::Args;

use crate::arguments::{Common, Place};
use crate::database::{self, Access};
use crate::entities::entity_line;
use crate::failure::{Failure, Outcome, Verdict, say};
use crate::marks::{Marks, ReadAsOf};
use crate::output::Output;
use crate::pieces::{Pieces, print_json};
use crate::stamped::Ttl;
use crate::text;

/// Print several keys with their values, one line each.
///
/// The lines are those of scan, in the order of the arguments; of an entity the value is that of
/// the column without a name. Keys that do not exist are named on standard error, and give exit
/// code 1.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone multi-get --db /data/photos hello cats/kit.jpg")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// The keys
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,
    #[command(flatten)]
    as_of: ReadAsOf,
    #[command(flatten)]
    ttl: Ttl,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let (place, notation) = (&arguments.place, arguments.place.notation());
    let keys = read_keys(&arguments.keys, place)?;
    let db = arguments.ttl.open(common, &place.db, Access::Read)?;
    let family = database::family(db.db(), &place.cf)?;
    let options = arguments.as_of.options(&family)?;
    let (mut output, mut missing) = (Output::new(), Missing::new(place));
    let marks = Marks::default();
    for key in &keys {
        let read = || -> Result<_, Failure> {
            Ok(db.get_in_pieces(&options, &family, key)?.map(Box::new).map(Pieces::Reader))
        };
        let Some(value) = read()? else {
            missing.add(key);
            continue;
        };
        if common.json {
            let form = value.form(notation)?;
            // What is printed piece by piece is read once before, to know whether it is text.
            let Some(value) = read()? else { continue };
            print_json(&mut output, (key, &marks), notation, value, form)?;
        } else {
            output.bytes(format!("{}\t", notation.show(key)).as_bytes())?;
            value.print_shown(&mut output, notation)?;
            output.bytes(b"\n")?;
        }
    }
    output.finish()?;
    Ok(missing.verdict())
}

/// Print several keys with their columns, one line each.
///
/// The lines are those of scan, in the order of the arguments; a plain value is shown as :VALUE.
/// Keys that do not exist are named on standard error, and give exit code 1.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone multi-get-entity --db /data/people ada")]
pub struct EntityArguments {
    #[command(flatten)]
    place: Place,
    /// The keys
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,
    #[command(flatten)]
    as_of: ReadAsOf,
}

/// Runs the command for entities.
pub fn run_entity(arguments: &EntityArguments, common: &Common) -> Outcome {
    let (place, notation) = (&arguments.place, arguments.place.notation());
    let keys = read_keys(&arguments.keys, place)?;
    let db = database::open(common, &place.db, Access::Read)?;
    let family = database::family(&db, &place.cf)?;
    let options = arguments.as_of.options(&family)?;
    let (mut output, mut missing) = (Output::new(), Missing::new(place));
    for key in &keys {
        match db.get_entity(&options, &family, key)? {
            Some(columns) => {
                let entry = (&key[..], &Marks::default());
                output.line(entity_line(entry, &columns, notation, common.json))?;
            }
            None => missing.add(key),
        }
    }
    output.finish()?;
    Ok(missing.verdict())
}

fn read_keys(keys: &[OsString], place: &Place) -> Result<Vec<Vec<u8>>, Failure> {
    keys.iter().map(|key| place.notation().read("the key", key)).collect()
}

/// Keys that were not found.
struct Missing<'a> {
    place: &'a Place,
    count: u64,
}

impl<'a> Missing<'a> {
    fn new(place: &'a Place) -> Self {
        Self { place, count: 0 }
    }

    fn add(&mut self, key: &[u8]) {
        self.count += 1;
        let (key, family) = (self.place.notation().show(key), text::name(&self.place.cf));
        say(format_args!("key '{key}' is not in column family '{family}'"));
    }

    fn verdict(&self) -> Verdict {
        if self.count == 0 { Verdict::Sound } else { Verdict::Faulty }
    }
}
