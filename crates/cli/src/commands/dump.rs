//! `flagstone dump`

use clap::Args;
use flagstone::base::Comparator;
use flagstone::base::entity::encode_unsorted;
use flagstone::options::ReadOptions;

use crate::arguments::{Common, Database};
use crate::database::Access;
use crate::failure::{Failure, Outcome, Verdict};
use crate::marks::{Period, refuse_stamps};
use crate::output::Output;
use crate::progress::{Progress, TOLD_EVERY};
use crate::stamped::Ttl;
use crate::text::{Notation, dump_entity, dump_line_start, order_line};

/// Print everything, one line a key: COLUMN_FAMILY HEXKEY HEXVALUE.
///
/// Families come in the order of their creation, keys in the family's order. A line COLUMN_FAMILY
/// comparator=NAME comes first for a family that is empty or not in bytewise order. An entity has
/// entity=HEX as its value, in the encoding of the tables. The directory
/// is not changed. For JSON use scan --json. With --ttl, values lose their time stamps; without it,
/// they are dumped and loaded as stored. scan --ttl --timestamp shows the stamps.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone dump --db /data/photos > photos.dump")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    #[command(flatten)]
    ttl: Ttl,
    #[command(flatten)]
    period: Period,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    if common.json {
        return Err(Failure::Usage(
            "dump has no JSON form because load cannot read JSON; use scan --json".to_string(),
        ));
    }
    arguments.period.check()?;
    let db = arguments.ttl.open(common, &arguments.database.db, Access::Read)?;
    let families = db.db().column_families();
    let progress = Progress::beside_output(|| Progress::keys(db.db(), &families, false));
    let (mut output, mut keys) = (Output::new(), 0u64);
    for family in families {
        if family.name().contains('\n') {
            let name = family.name().escape_default();
            return Err(Failure::Other(format!(
                "column family '{name}' cannot be dumped: its name contains a line break"
            )));
        }
        refuse_stamps(&family, "scan --cf NAME --read-timestamp NUMBER")?;
        let mut iter = db.cursor(ReadOptions::default(), &family, (None, None), false)?;
        // A family without a key is named all the same, so that it comes back, and a dump is never
        // empty.
        if !iter.valid() || *family.comparator() != Comparator::Bytewise {
            output.bytes(order_line(family.name(), family.comparator().name()).as_bytes())?;
        }
        while iter.valid() {
            if !arguments.period.admits(&mut iter)? {
                iter.step(false);
                continue;
            }
            let start = dump_line_start(family.name(), iter.key());
            output.bytes(start.as_bytes())?;
            match iter.columns()? {
                Some(columns) => {
                    let entity = encode_unsorted(columns.iter())?;
                    output.bytes(dump_entity(&entity).as_bytes())?;
                }
                None => iter.value()?.print_shown(&mut output, Notation::Hex)?,
            }
            output.bytes(b"\n")?;
            keys += 1;
            if keys.is_multiple_of(TOLD_EVERY) {
                progress.set(keys);
            }
            iter.step(false);
        }
        iter.status()?;
    }
    output.finish()?;
    Ok(Verdict::Sound)
}
