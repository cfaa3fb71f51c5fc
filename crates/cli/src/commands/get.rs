//! `flagstone get`

use std::ffi::OsString;
use std::ops::Range;

use clap::Args;
use flagstone::ValueReader;

use crate::arguments::{Common, Place};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict, say};
use crate::marks::{Marks, ReadAsOf};
use crate::output::Output;
use crate::pieces::{Pieces, print_json};
use crate::stamped::Ttl;
use crate::text;

/// Print the value of a key.
///
/// The value is printed as it is, without a line end; with --hex as a line of hexadecimal, with
/// --json as by scan. A key without a value gives exit code 1. --range prints only those bytes; of
/// a large value in a blob file only those bytes are read, after one pass over the whole value to
/// check it. A value of more than 1 MiB stored uncompressed in a blob file need not fit into
/// memory. If such a value turns out to be damaged at its end, the exit code is 1 and the printed
/// part must not be used.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone get --db /data/photos cats/tom.jpg > tom.jpg")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    /// The key
    key: OsString,
    /// Print only bytes START to END of the value, counted from 0, END excluded; either may be left
    /// out
    #[arg(long, value_name = "START..END", value_parser = parse_range)]
    range: Option<Range<u64>>,
    #[command(flatten)]
    as_of: ReadAsOf,
    #[command(flatten)]
    ttl: Ttl,
}

fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let (start, end) = text.split_once("..").ok_or("a range is START..END, as in 0..4096")?;
    let number = |text: &str, missing| match text {
        "" => Ok(missing),
        _ => text
            .parse::<u64>()
            .map_err(|_| format!("expected a whole number from 0 to {}, found '{text}'", u64::MAX)),
    };
    let range = number(start, 0)?..number(end, u64::MAX)?;
    if range.start > range.end { Err("the range ends before it starts".into()) } else { Ok(range) }
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let key = place.notation().read("the key", &arguments.key)?;
    let db = arguments.ttl.open(common, &place.db, Access::Read)?;
    let family = database::family(db.db(), &place.cf)?;
    let (notation, options) = (place.notation(), arguments.as_of.options(&family)?);
    let read = || -> Result<Option<Pieces<'_>>, Failure> {
        let reader = match &arguments.range {
            None => db.get_in_pieces(&options, &family, &key)?,
            Some(range) => {
                let part = db.get_range(&options, &family, &key, range.clone())?;
                part.map(ValueReader::from)
            }
        };
        Ok(reader.map(|reader| Pieces::Reader(Box::new(reader))))
    };
    let missing = || {
        let key = notation.show(&key);
        say(format_args!("key '{key}' is not in column family '{}'", text::name(&place.cf)));
        Ok(Verdict::Faulty)
    };
    let Some(value) = read()? else { return missing() };
    let mut output = Output::new();
    match (common.json, place.hex) {
        (true, _) => {
            // What is printed piece by piece is read once before, to know whether it is text.
            let form = value.form(notation)?;
            let Some(value) = read()? else { return missing() };
            print_json(&mut output, (&key, &Marks::default()), notation, value, form)?;
        }
        (false, true) => {
            value.print_shown(&mut output, notation)?;
            output.bytes(b"\n")?;
        }
        (false, false) => value.print(&mut output)?,
    }
    output.finish()?;
    Ok(Verdict::Sound)
}
