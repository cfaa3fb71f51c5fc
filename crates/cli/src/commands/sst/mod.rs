//! `flagstone sst`
//!
//! - `open`: the tables; `properties`, `entries`, `raw`: what is printed of one
//! - `recompress`: how large it would be; `identify`: whether a file is one
//! - `internal_key`: a key apart from any file

mod entries;
mod identify;
mod internal_key;
mod open;
mod properties;
mod raw;
mod recompress;

pub use open::open_table;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use flagstone::base::file_name::FileKind;
use flagstone::env::Env;

use crate::arguments::{Common, Range};
use crate::failure::{Failure, Outcome, Verdict, reported};
use crate::output::Output;
use crate::progress::Progress;
use crate::text::Notation;
use crate::world;

use entries::{Shown, print_entries};
use open::{Opened, Sight, open_listed, open_named};
use properties::{print_meta_blocks, print_properties};

/// Print the properties of table files; with --entries or --verify, look inside.
///
/// A file that is damaged or not a table gives exit code 1; the other files are still read. In a
/// database's directory, a table that is being written or disappears meanwhile is only a note. The
/// order of entries is not checked if the comparator is an application's own.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flagstone sst /data/photos/000012.sst --entries --hex\n  flagstone sst /data/photos --verify\n  \
                  flagstone sst /data/photos/000012.sst --recompress --compression-types none,lz4,zstd"
)]
#[command(group(ArgGroup::new("mode").args([
    "entries", "raw", "recompress", "identify", "list_meta_blocks", "parse_internal_key",
])))]
pub struct Arguments {
    /// Files, or directories for all tables in them
    #[arg(value_name = "FILE", required_unless_present = "parse_internal_key")]
    files: Vec<PathBuf>,
    /// List each entry: key, sequence number, type, value. Range deletions come first, with their
    /// ends as values
    #[arg(long)]
    entries: bool,
    #[command(flatten)]
    range: Range,
    /// With --entries, list at most N entries of each table, range deletions apart
    #[arg(long, value_name = "N", alias = "read_num", requires = "entries")]
    limit: Option<u64>,
    /// With --entries, show addresses of values in blob files in words
    #[arg(long, alias = "decode_blob_index", requires = "entries")]
    decode_blob_index: bool,
    /// With another mode, print the properties as well
    #[arg(long, alias = "show_properties")]
    show_properties: bool,
    /// Print all there is: footer, meta blocks, properties, filter, index, range deletions, and the
    /// data blocks with their entries
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    recompress: recompress::Flags,
    /// Only say what kind of table each file is. Exit code 1 if one is none, or is damaged
    #[arg(long)]
    identify: bool,
    /// Only list the blocks that are not data
    #[arg(long, alias = "list_meta_blocks")]
    list_meta_blocks: bool,
    /// Take an internal key, in hexadecimal, apart
    #[arg(long, value_name = "KEY", alias = "parse_internal_key", conflicts_with = "files")]
    parse_internal_key: Option<OsString>,
    /// Read and check every block
    #[arg(long, alias = "verify_checksum")]
    #[arg(conflicts_with_all = ["recompress", "identify", "parse_internal_key"])]
    verify: bool,
    /// Show keys and values in hexadecimal
    #[arg(long, alias = "output_hex")]
    hex: bool,
}

impl Arguments {
    /// All entries of a file.
    pub fn of_file(file: PathBuf, hex: bool) -> Self {
        Self {
            files: vec![file],
            entries: true,
            range: Range::default(),
            limit: None,
            decode_blob_index: false,
            show_properties: true,
            raw: false,
            recompress: recompress::Flags::default(),
            identify: false,
            list_meta_blocks: false,
            parse_internal_key: None,
            verify: false,
            hex,
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    common.refuse_settings()?;
    if let Some(key) = &arguments.parse_internal_key {
        return internal_key::run(key, arguments.hex, common);
    }
    let bounds = arguments.range.bounds(Notation::new(arguments.hex))?;
    if !arguments.entries && (bounds.0.is_some() || bounds.1.is_some()) {
        return Err(Failure::Usage("--from, --to and --prefix need --entries".to_string()));
    }
    arguments.recompress.check()?;
    let env = world::env();
    let files = list(&env, &arguments.files)?;
    // A list ends when its reader goes away; a verification goes on.
    let mut output = if arguments.verify { Output::of_a_search() } else { Output::new() };
    let mut verdict = Verdict::Sound;
    let printed = look_at_all(&env, &files, arguments, common, &mut output, &mut verdict);
    reported(verdict, printed.and_then(|()| output.finish()))
}

fn look_at_all(
    env: &Env,
    files: &[Found],
    arguments: &Arguments,
    common: &Common,
    output: &mut Output,
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    let is_one_of_several = files.len() > 1;
    let progress = Progress::beside_output(|| Progress::things(files.len() as u64, "tables"));
    for (number, Found { path, is_listed }) in files.iter().enumerate() {
        progress.set(number as u64);
        if arguments.identify {
            let found = match identify::one(env, path, *is_listed, common, output) {
                Err(Failure::Engine(error)) if is_one_of_several => {
                    output.finding(common.json, "FAULT", &error.to_string())?;
                    Verdict::Faulty
                }
                found => found?,
            };
            *verdict = verdict.worse(found);
            continue;
        }
        if is_one_of_several && !common.json {
            output.line(format!("{}:", path.display()))?;
        }
        let opened = if *is_listed {
            open_listed(env, path)
        } else {
            open_named(env, path).map(Sight::Table)
        };
        let looked = match opened {
            Ok(Sight::Table(opened)) => look(&opened, path, arguments, common, output),
            Ok(Sight::Nothing(why)) => {
                output.finding(common.json, "note:", &format!("{} {why}", path.display()))?;
                continue;
            }
            Err(error) => Err(error.into()),
        };
        match looked {
            Ok(found) => *verdict = verdict.worse(found),
            Err(Failure::Engine(error)) if is_one_of_several => {
                *verdict = Verdict::Faulty;
                output.finding(common.json, "FAULT", &error.to_string())?;
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// A table to look at.
struct Found {
    path: PathBuf,
    /// It was found in a directory.
    is_listed: bool,
}

/// The files, and the tables of the directories among them.
fn list(env: &Env, places: &[PathBuf]) -> Result<Vec<Found>, Failure> {
    let mut files = Vec::new();
    for place in places {
        // What is not there is told when its turn comes.
        if !env.fs.metadata(place).is_ok_and(|found| found.is_directory) {
            files.push(Found { path: place.clone(), is_listed: false });
            continue;
        }
        let names = env.fs.list(place)?;
        let mut tables: Vec<_> = names
            .iter()
            .filter_map(|name| match FileKind::parse(name) {
                Some(FileKind::Table(number)) => Some((number, place.join(name))),
                _ => None,
            })
            .collect();
        if tables.is_empty() {
            return Err(Failure::Other(format!(
                "there are no tables in the directory {}",
                place.display()
            )));
        }
        tables.sort();
        files.extend(tables.into_iter().map(|(_, path)| Found { path, is_listed: true }));
    }
    Ok(files)
}

/// Prints what is asked of a table.
fn look(
    Opened { table, size }: &Opened,
    path: &Path,
    arguments: &Arguments,
    common: &Common,
    output: &mut Output,
) -> Result<Verdict, Failure> {
    let mut faults = Vec::new();
    if arguments.verify {
        table.verify(&mut |fault| faults.push(fault.error.to_string()));
    }
    // Before the entries, which end at the first block that cannot be read.
    faults.iter().try_for_each(|fault| output.finding(common.json, "FAULT", fault))?;
    let counted = arguments.verify.then_some(faults.len() as u64);
    let mut print = || -> Result<(), Failure> {
        if arguments.entries {
            let shown = Shown::new(table, arguments)?;
            print_entries(table, path, &shown, common, output)?;
        } else if arguments.raw {
            raw::print(table, path, Notation::new(arguments.hex), common, output)?;
        } else if arguments.recompress.is_asked_for() {
            recompress::print(table, path, &arguments.recompress, common, output)?;
        } else if arguments.list_meta_blocks {
            print_meta_blocks(table, path, common, output)?;
        } else {
            return print_properties(table, path, *size, counted, common, output);
        }
        if arguments.show_properties {
            print_properties(table, path, *size, counted, common, output)?;
        }
        Ok(())
    };
    let printed = print();
    match printed {
        // It is one of the faults.
        Err(Failure::Engine(error)) if error.is_corruption() && !faults.is_empty() => {
            Ok(Verdict::Faulty)
        }
        printed => {
            printed.map(|()| if faults.is_empty() { Verdict::Sound } else { Verdict::Faulty })
        }
    }
}
