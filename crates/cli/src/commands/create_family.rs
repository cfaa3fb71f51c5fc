//! `flagstone create-family`

use clap::Args;
use flagstone::db::Db;
use flagstone::options::{ColumnFamilyOptions, names};

use crate::arguments::{Common, Database};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};
use crate::text;

/// Create a column family.
///
/// It gets the default options, changed by --set. Here --set does not affect existing families.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flagstone create-family --db /data/photos thumbnails\n  \
                  flagstone create-family --db /data/photos newest --set comparator=rocksdb.ReverseBytewiseComparator")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    /// Name of the family
    name: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    // What is no option of a family, or no value of it, the opening takes or refuses.
    let mut options = ColumnFamilyOptions::default();
    let mut of_others = Common { settings: Vec::new(), ..common.clone() };
    for (name, value) in &common.settings {
        let parts = names::taken_apart(name, value);
        for (name, value) in
            parts.map_err(|error| Failure::Usage(format!("--set {name}={value}: {error}")))?
        {
            // What is refused half-way leaves nothing.
            let mut with_it = options.clone();
            match with_it.set(&name, &value) {
                Ok(()) => options = with_it,
                Err(_) => of_others.settings.push((name, value)),
            }
        }
    }
    options.validate_for_writing().map_err(|error| Failure::Usage(format!("--set: {error}")))?;
    let db = database::open(&of_others, &arguments.database.db, Access::Write)?;
    check_name(&db, &arguments.name)?;
    let created = db.create_column_family(&arguments.name, &options);
    created.map_err(|error| database::of_setting(common, error.into()))?;
    db.close()?;
    Ok(Verdict::Sound)
}

/// Checks that it may be the name of a new one.
fn check_name(db: &Db, name: &str) -> Result<(), Failure> {
    if name.is_empty() {
        return Err(Failure::Usage("a column family's name must not be empty".to_string()));
    }
    match db.column_family(name) {
        Some(_) => {
            Err(Failure::Usage(format!("column family '{}' already exists", text::name(name))))
        }
        None => Ok(()),
    }
}
