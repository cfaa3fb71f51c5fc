//! `flagstone import-family`

use std::path::PathBuf;

use clap::Args;
use flagstone::ExportedFamily;
use flagstone::options::{ColumnFamilyOptions, ImportColumnFamilyOptions, load_latest};

use crate::arguments::{CF_ALIASES, Common, Database};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};
use crate::progress::Progress;
use crate::world;

/// Make a column family of exported ones, all or nothing.
///
/// Each DIR is what `export-family` made, a checkpoint, or a closed database without entries of the
/// family in its WALs. The new family has the options of the first one. Keys of several must lie in
/// ranges that do not overlap.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flagstone import-family --db /data/photos --cf small /data/exported"
)]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    /// Name of the new column family
    #[arg(long, value_name = "NAME", aliases = CF_ALIASES)]
    cf: String,
    /// Name of the column family in DIR, if it has several
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// Move the files instead of copying them
    #[arg(long, alias = "move_files")]
    move_files: bool,
    /// Read every table first and check all checksums
    #[arg(long)]
    verify: bool,
    /// The directories
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let db = database::open(common, &arguments.database.db, Access::Write)?;
    let exported = |directory: &PathBuf| ExportedFamily {
        column_family: arguments.from.clone(),
        ..ExportedFamily::new(directory)
    };
    let sources: Vec<_> = arguments.dirs.iter().map(exported).collect();
    let options = options_of(&sources[0])?;
    let mut how = ImportColumnFamilyOptions::default();
    how.move_files = arguments.move_files;
    how.verify_checksums = arguments.verify;
    let progress = Progress::of_work("importing");
    db.create_column_family_with_import(&arguments.cf, &options, &sources, &how)?;
    db.close()?;
    drop(progress);
    Ok(Verdict::Sound)
}

/// What the OPTIONS file of an export says of its family; the defaults if there is none.
fn options_of(exported: &ExportedFamily) -> Result<ColumnFamilyOptions, Failure> {
    let loaded = match load_latest(&world::env(), &exported.directory) {
        Ok(Some(loaded)) => loaded,
        Ok(None) => return Ok(ColumnFamilyOptions::default()),
        // The import says what the directory lacks.
        Err(error) if error.is_not_found() => return Ok(ColumnFamilyOptions::default()),
        Err(error) => return Err(error.into()),
    };
    let named = exported.column_family.as_deref();
    let found = loaded.families.into_iter().rfind(|(name, _)| named.is_none_or(|it| it == name));
    Ok(found.map_or_else(ColumnFamilyOptions::default, |(_, options)| options))
}
