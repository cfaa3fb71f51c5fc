//! `flagstone get-entity`

use std::ffi::OsString;

use clap::Args;

use crate::arguments::{Common, Place};
use crate::database::{self, Access};
use crate::entities::{entity_line, show_columns};
use crate::failure::{Outcome, Verdict, say};
use crate::marks::{Marks, ReadAsOf};
use crate::output::Output;
use crate::text;

/// Print the columns of a key on one line.
///
/// A column is printed as NAME:VALUE, a plain value as :VALUE. Backslashes and bytes that are not
/// printable UTF-8 are escaped; with --hex everything is hexadecimal. A key that does not exist
/// gives exit code 1.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone get-entity --db /data/people ada")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// The key
    key: OsString,
    #[command(flatten)]
    as_of: ReadAsOf,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let notation = place.notation();
    let key = notation.read("the key", &arguments.key)?;
    let db = database::open(common, &place.db, Access::Read)?;
    let family = database::family(&db, &place.cf)?;
    let Some(columns) = db.get_entity(&arguments.as_of.options(&family)?, &family, &key)? else {
        let key = notation.show(&key);
        say(format_args!("key '{key}' is not in column family '{}'", text::name(&place.cf)));
        return Ok(Verdict::Faulty);
    };
    let mut output = Output::new();
    output.line(if common.json {
        entity_line((&key, &Marks::default()), &columns, notation, true)
    } else {
        show_columns(&columns, notation)
    })?;
    output.finish()?;
    Ok(Verdict::Sound)
}
