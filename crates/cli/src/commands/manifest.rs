//! `flagstone manifest`

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{ArgGroup, Args};
use flagstone::base::{Error, FileNumber};
use flagstone::env::{FileSystem, IoMode, RandomAccessFile};
use flagstone::manifest::{self, EditIterator};
use flagstone::wal::{Event, Reader};
use serde_json::json;

use crate::arguments::Common;
use crate::commands::edit_json::edit_json;
use crate::database;
use crate::failure::{Failure, Outcome, Verdict, reported};
use crate::output::Output;
use crate::world;

/// Print the edits of a MANIFEST in order, each with its offset.
///
/// If the last record is cut off, the offset where it begins is printed. Damage gives exit code 1,
/// and so does a file without an edit. A last record cut off by a crash is no damage: its edit
/// never took effect. With --json each edit is an object.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone manifest --db /data/photos")]
#[command(group(ArgGroup::new("which").required(true).args(["db", "file"])))]
pub struct Arguments {
    /// The database's directory; its current MANIFEST is printed
    #[arg(long, value_name = "DB")]
    db: Option<PathBuf>,
    /// A MANIFEST file
    file: Option<PathBuf>,
}

impl Arguments {
    /// All edits of a file.
    pub fn of_file(file: PathBuf) -> Self {
        Self { db: None, file: Some(file) }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    common.refuse_settings()?;
    let fs = world::env().fs;
    let opened = match (&arguments.file, &arguments.db) {
        (Some(file), _) if fs.metadata(file).is_ok_and(|found| found.is_directory) => {
            return Err(Failure::Usage(format!(
                "{} is a directory; name a database with --db",
                file.display()
            )));
        }
        (Some(file), _) => open(fs.as_ref(), file)?,
        (None, Some(db)) => {
            database::check_exists(db)?;
            manifest::with_current(fs.as_ref(), db, |path| open(fs.as_ref(), path))?
        }
        (None, None) => {
            return Err(Failure::Usage(
                "name a database with --db, or a MANIFEST file".to_string(),
            ));
        }
    };
    let mut verdict = Verdict::Sound;
    let printed = print(opened, common, &mut verdict);
    reported(verdict, printed)
}

/// A MANIFEST, and its edits: another process may remove it while these are printed.
type Opened = (Arc<dyn RandomAccessFile>, EditIterator);

fn open(fs: &dyn FileSystem, path: &Path) -> Result<Opened, Error> {
    Ok((fs.open_random_access(path, IoMode::Buffered)?, manifest::dump(fs, path)?))
}

fn print((file, dump): Opened, common: &Common, verdict: &mut Verdict) -> Result<(), Failure> {
    let mut output = Output::of_a_search();
    let mut edits = 0u64;
    for (offset, edit) in dump {
        match edit {
            Ok(edit) => {
                edits += 1;
                output.line(if common.json {
                    json!({ "offset": offset, "edit": edit_json(&edit) }).to_string()
                } else {
                    format!("{offset}: {edit}")
                })?;
            }
            Err(error) => {
                *verdict = Verdict::Faulty;
                output.finding(common.json, "FAULT", &error.to_string())?;
            }
        }
    }
    // CURRENT names a MANIFEST only once that has a first edit.
    if *verdict == Verdict::Sound && edits == 0 {
        *verdict = Verdict::Faulty;
        let error = Error::corruption(
            "this file has no complete edit; it was emptied or is not a MANIFEST",
        )
        .at(file.path());
        output.finding(common.json, "FAULT", &error.to_string())?;
    }
    if edits > 0
        && *verdict == Verdict::Sound
        && let Some(torn) = torn_end(&file)?
    {
        output.finding(common.json, "end:", &torn.to_string())?;
    }
    output.finish()
}

/// What is left of a last record that is not whole, of a MANIFEST that is sound otherwise.
fn torn_end(file: &Arc<dyn RandomAccessFile>) -> Result<Option<Error>, Failure> {
    // Its headers carry no number.
    let mut reader = Reader::new(file.clone(), FileNumber(0));
    loop {
        match reader.next_event()? {
            Event::Record(_) => {}
            Event::End => return Ok(None),
            Event::Damage(damage) => return Ok(Some(damage.to_error(&**file))),
        }
    }
}
