//! `flagstone dump`

use clap::Args;

use crate::arguments::{Common, Database};
use crate::commands::cursor::cursor;
use crate::database::{self, Access};
use crate::failure::{Outcome, Verdict};
use crate::output::Output;
use crate::text::dump_line;

/// Print everything, one line a key: COLUMN_FAMILY HEXKEY HEXVALUE.
///
/// Families come in the order of their creation, keys in the family's order. The directory is not changed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone dump --db /data/photos > photos.dump")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let db = database::open(common, &arguments.database.db, Access::Read)?;
    let mut output = Output::new();
    for family in db.column_families() {
        let mut iter = cursor(&db, &family, (None, None), false)?;
        while iter.valid() {
            let key = iter.key().to_vec();
            output.bytes(dump_line(family.name(), &key, iter.value()?).as_bytes())?;
            iter.next();
        }
        iter.status()?;
    }
    output.finish()?;
    Ok(Verdict::Sound)
}
