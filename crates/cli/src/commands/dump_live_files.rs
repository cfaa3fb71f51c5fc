//! `flagstone dump-live-files`

use std::path::{Path, PathBuf};

use clap::Args;
use flagstone::base::file_name::FileKind;
use serde_json::json;

use crate::arguments::{Common, Database};
use crate::commands::{blob, kind, manifest, sst, wal};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict, say};
use crate::json;
use crate::output::Output;
use crate::text;
use crate::world;

/// Print the contents of all files that make up a database: MANIFEST, tables, blob files, WALs.
///
/// Each file is announced by a line with its path, and then printed as by flagstone manifest, sst
/// --entries, blob --keys, and wal --operations. If another process writes to the database, a file
/// that it removes meanwhile is left out, and named on standard error. A blob file that only a WAL
/// names yet is not printed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone dump-live-files --db /data/photos")]
pub struct Arguments {
    #[command(flatten)]
    database: Database,
    /// Show keys and values in hexadecimal
    #[arg(long)]
    hex: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let path = &arguments.database.db;
    let db = database::open(common, path, Access::Read)?;
    let current = flagstone::manifest::read_current(&*world::env().fs, path)?;
    let listed = db.live_files().into_iter().map(|file| file.path);
    let wals = db.wal_files().into_iter().filter(|wal| !wal.archived).map(|wal| wal.path);
    let files: Vec<PathBuf> = [current].into_iter().chain(listed).chain(wals).collect();
    // The files that are printed are opened by their names.
    let plain = Common { settings: Vec::new(), ..common.clone() };
    let mut verdict = Verdict::Sound;
    for path in &files {
        let Some(kind) = kind::of(path) else { continue };
        announce(path, common)?;
        match print(path, &kind, arguments.hex, &plain) {
            Ok(found) => verdict = verdict.worse(found),
            Err(Failure::Engine(error)) if error.is_not_found() => {
                say(format_args!("note: {} was removed meanwhile", path.display()));
            }
            Err(Failure::Engine(error)) => {
                verdict = Verdict::Faulty;
                let mut output = Output::new();
                output.finding(common.json, "FAULT", &error.to_string())?;
                output.finish()?;
            }
            Err(failure) => return Err(failure),
        }
    }
    drop(db);
    Ok(verdict)
}

fn announce(path: &Path, common: &Common) -> Result<(), Failure> {
    let mut output = Output::new();
    output.line(if common.json {
        let mut facts = json!({});
        json::tell_path(&mut facts, "live_file", Some(path));
        facts.to_string()
    } else {
        format!("==> {} <==", text::path(path))
    })?;
    output.finish()
}

fn print(path: &Path, kind: &FileKind, hex: bool, common: &Common) -> Outcome {
    let path = path.to_path_buf();
    match kind {
        FileKind::Manifest(_) => manifest::run(&manifest::Arguments::of_file(path), common),
        FileKind::Blob(_) => blob::run(&blob::Arguments::of_file(path, hex), common),
        FileKind::Wal(_) => wal::run(&wal::Arguments::of_file(path, hex), common),
        _ => sst::run(&sst::Arguments::of_file(path, hex), common),
    }
}
