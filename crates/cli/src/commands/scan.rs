//! `flagstone scan`

use clap::Args;
use flagstone::db::{ColumnFamily, Db};
use flagstone::reports::WriteTimes;
use serde_json::json;

use crate::arguments::{Common, Place, Range};
use crate::database::{self, Access};
use crate::entities::entity_line;
use crate::failure::{Failure, Outcome, Verdict};
use crate::json::Form;
use crate::marks::{Marks, Period, ReadAsOf};
use crate::output::Output;
use crate::pieces::print_json;
use crate::progress::{Progress, TOLD_EVERY};
use crate::stamped::{Cursor, Ttl};

/// Print keys and values, one line each.
///
/// A tab separates key and value. Backslashes and bytes that are not printable UTF-8 are escaped;
/// with --hex everything is hexadecimal. JSON has text unchanged, and base64 under key_base64 or
/// value_base64 for bytes that are not UTF-8. An entity is shown as its columns, NAME:VALUE each.
/// Where keys have timestamps, that of the version shown stands between key and value. The time of
/// --write-unix-time is unknown for entries at or before the first sample of the tables, and for
/// those whose sequence number a compaction has set to 0.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flagstone scan --db /data/photos --prefix cats/ --keys-only --limit 10"
)]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    range: Range,
    /// Stop after N keys
    #[arg(long, value_name = "N", alias = "max_keys")]
    limit: Option<u64>,
    /// Start at the last key and go backwards
    #[arg(long)]
    reverse: bool,
    /// Print no values
    #[arg(long, alias = "no_value")]
    keys_only: bool,
    #[command(flatten)]
    as_of: ReadAsOf,
    #[command(flatten)]
    ttl: Ttl,
    /// With --ttl, show behind each key when its value was written
    #[arg(long, requires = "ttl")]
    timestamp: bool,
    #[command(flatten)]
    period: Period,
    /// Show behind each key the latest time at which its value was certainly not written yet, by
    /// the samples that tables have with preserve_internal_time_seconds
    #[arg(long, alias = "get_write_unix_time", conflicts_with_all = ["reverse", "ttl"])]
    write_unix_time: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let (place, notation) = (&arguments.place, arguments.place.notation());
    let bounds = arguments.range.bounds(notation)?;
    arguments.period.check()?;
    let db = arguments.ttl.open(common, &place.db, Access::Read)?;
    let family = database::family(db.db(), &place.cf)?;
    arguments.range.check_order(&family, &bounds)?;
    let is_bounded = bounds.0.is_some() || bounds.1.is_some() || arguments.limit.is_some();
    let progress = Progress::beside_output(|| {
        Progress::keys(db.db(), std::slice::from_ref(&family), is_bounded)
    });
    let options = arguments.as_of.options(&family)?;
    let mut iter = db.cursor(options, &family, bounds, arguments.reverse)?;
    let times = arguments.write_unix_time.then(|| times_of(db.db(), &family)).transpose()?;
    let (mut output, mut keys) = (Output::new(), 0u64);
    let mut left = arguments.limit.unwrap_or(u64::MAX);
    while iter.valid() && left > 0 {
        if arguments.period.admits(&mut iter)? {
            print_entry(&mut iter, times.as_ref(), arguments, common, &mut output)?;
            left -= 1;
        }
        keys += 1;
        if keys.is_multiple_of(TOLD_EVERY) {
            progress.set(keys);
        }
        iter.step(arguments.reverse);
    }
    iter.status()?;
    output.finish()?;
    Ok(Verdict::Sound)
}

/// When the sequence numbers of a family were written, as its tables say.
fn times_of(db: &Db, family: &ColumnFamily) -> Result<WriteTimes, Failure> {
    let mut samples = Vec::new();
    for properties in db.properties_of_all_tables(family)?.values() {
        samples.extend_from_slice(properties.write_times()?.samples());
    }
    Ok(WriteTimes::of(samples))
}

/// Prints the entry at which the cursor stands.
fn print_entry(
    iter: &mut Cursor,
    times: Option<&WriteTimes>,
    arguments: &Arguments,
    common: &Common,
    output: &mut Output,
) -> Result<(), Failure> {
    let notation = arguments.place.notation();
    let marks = Marks::of(iter, arguments.timestamp)?;
    let marks = times.map_or(marks, |times| marks.within(times, iter));
    match (common.json, arguments.keys_only) {
        (true, true) => {
            let form = Form::of(iter.key(), notation);
            let (name, key) = (json!(form.name("key")), json!(form.text(iter.key())));
            output.line(format!("{{{name}:{key}{}}}", marks.json()))
        }
        (false, true) => output.line(format!("{}{}", notation.show(iter.key()), marks.text())),
        (as_json, false) if let Some(columns) = iter.columns()? => {
            output.line(entity_line((iter.key(), &marks), &columns, notation, as_json))
        }
        (true, false) => {
            let key = iter.key().to_vec();
            let form = iter.value()?.form(notation)?;
            print_json(output, (&key, &marks), notation, iter.value()?, form)
        }
        (false, false) => {
            let head = format!("{}{}\t", notation.show(iter.key()), marks.text());
            output.bytes(head.as_bytes())?;
            iter.value()?.print_shown(output, notation)?;
            output.bytes(b"\n")
        }
    }
}
