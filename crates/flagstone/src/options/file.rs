//! OPTIONS-NNNNNN: the settings that a database was last opened with, as text.
//!
//! ```text
//! # a comment, to the end of the line unless a backslash stands before it
//! [Version]
//!   rocksdb_version=7.8.3
//!   options_file_version=1.1
//! [DBOptions]
//!   name=value
//! [CFOptions "default"]                        one section a column family, "default" first
//!   name=value
//! [TableOptions/BlockBasedTable "default"]
//!   name=value
//! ```
//!
//! The engine never needs the file: it says nothing about how to read the other files. Tools learn
//! from it which comparator, merge operator and prefix extractor a database uses. RocksDB rejects a
//! file with an unknown name, so only names known to both RocksDB 7.8 and 11 are written as such.
//! Names that only this engine has, and names kept from other releases, are written in comments of
//! the form `# flagstone:name=value`. One of these, `left_open`, is not a setting: it lists the
//! family's settings above that no caller has set, and whose values follow from others.
//!
//! **Truncation.** A database's file must have its end, even after a user has edited it, because it
//! may have been cut off after any line. Our files name their last line in their first. RocksDB's
//! end with the options of tables and an empty line, after which a user may have added comments. A
//! RocksDB file cut off between two families looks complete, except that the MANIFEST has more
//! families: the command line compares them, and RocksDB refuses to open only some families. Text
//! that a program passes in ([`parse`]) may end anywhere, as RocksDB's example does, but if it
//! names a last line it must have it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::file_name::FileKind;
use crate::base::{DEFAULT_COLUMN_FAMILY_NAME, Error, FileNumber, Remedy, Result};
use crate::env::{self, Env};

use super::assembled::{ColumnFamilyOptions, Options};
use super::filters::{self, FILTER, FILTER_FACTORY};
use super::hooks::{self, COLLECTORS, PARTITIONER};
use super::kept::{KeptSection, KeptSetting};
use super::known::{self, OWN_MARK};
use super::missing::{BLOCK_BASED_TABLE, COMPONENTS, TABLE_FACTORY};
use super::parser::{Parser, Place, of_line};
use super::table::{Section, Settings};
use super::text::escape;

/// The first line of a file, and the last one.
const FIRST_LINE: &str =
    "# Written by Flagstone in RocksDB's format. The last line is '# End of file.'";
const LAST_LINE: &str = "# End of file.";

/// How RocksDB begins its files, and how it ends them.
pub(super) const FIRST_OF_ROCKSDB: &str = "# This is a RocksDB option file.";
const END_OF_ROCKSDB: &str = "the options of a family's tables and an empty line behind them";

/// Maximum size of an OPTIONS file, which has about 4 KiB per column family.
const FILE_SIZE_MAX: u64 = 1 << 30;

/// The contents of an OPTIONS file.
#[derive(Debug, Clone)]
pub struct LoadedOptions {
    /// Path of the file.
    pub path: PathBuf,
    /// The database's settings, with the default column family's in `cf`.
    pub options: Options,
    /// All column families by name in the file's order, the default one first.
    pub families: Vec<(String, ColumnFamilyOptions)>,
    /// Sentences about unknown contents that were not kept because there is too much of them.
    pub unknown: Vec<String>,
}

impl LoadedOptions {
    /// Sentences about settings in the file that have no effect.
    pub fn warnings(&self) -> Vec<String> {
        let kept = self.options.kept.iter().map(ToString::to_string);
        let database = kept.chain(self.options.kept_sections.iter().map(ToString::to_string));
        let families = self.families.iter().flat_map(|(name, family)| {
            family.kept.iter().map(move |kept| format!("column family '{name}': {kept}"))
        });
        database.chain(families).chain(self.unknown.iter().cloned()).collect()
    }

    /// The options of the column family called `name`.
    pub fn family(&self, name: &str) -> Option<&ColumnFamilyOptions> {
        self.families.iter().find(|(found, _)| found == name).map(|(_, family)| family)
    }
}

/// Reads the newest OPTIONS file in `directory`; `None` if there is none.
///
/// This opens a database, of RocksDB or ours, with the options it had:
///
/// ```
/// # use std::path::Path;
/// use flagstone::db::Db;
/// use flagstone::env::Env;
/// use flagstone::options::load_latest;
///
/// # fn main() -> flagstone::base::Result<()> {
/// # let (env, path) = (Env::memory(), Path::new("/db"));
/// # let mut options = flagstone::options::Options { env: env.clone(), ..Default::default() };
/// # options.create_if_missing = true;
/// # let db = Db::open(path, &options)?;
/// # options.cf.set("merge_operator", "uint64add")?;
/// # db.create_column_family("visits", &options.cf)?;
/// # db.close()?;
/// // On a disk: Env::os().
/// let mut loaded = load_latest(&env, path)?.expect("no one has removed it");
/// for warning in loaded.warnings() {
///     eprintln!("not acted on: {warning}");
/// }
/// for (name, family) in &mut loaded.families {
///     // What is the program's own it gives again:
///     // family.merge_operator = Some(Arc::new(MyOperator)).
///     assert!(name == "default" || family.merge_operator.is_some(), "this one is built in");
/// }
/// let families: Vec<_> =
///     loaded.families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
/// let db = Db::open_with_families(path, &loaded.options, &families)?;
/// let visits = db.column_family("visits").expect("it was named");
/// db.merge_cf(&visits, "tom", 1u64.to_le_bytes())?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `IoError`; `InvalidArgument` for a line that makes no sense; `Corruption` for a file that is not
/// whole, or no text. A comparator, merge operator or prefix extractor that is not built in is no
/// error: opening will ask for it.
pub fn load_latest(env: &Env, directory: &Path) -> Result<Option<LoadedOptions>> {
    let newest = || -> Result<Option<FileNumber>> {
        Ok(env.fs.list(directory)?.iter().filter_map(|name| options_number(name)).max())
    };
    let mut number = newest()?;
    while let Some(known) = number {
        match load(env, directory, known) {
            // A writer has replaced it meanwhile.
            Err(error) if error.is_not_found() => {
                number = newest()?;
                if number == Some(known) {
                    return Err(error);
                }
            }
            loaded => return loaded.map(Some),
        }
    }
    Ok(None)
}

/// Reads the newest OPTIONS file that can be read, to recover what is left of a database. It may
/// lack the last changes, which are in newer, damaged files. Also returns the errors of those.
///
/// # Errors
/// `IoError` of the directory.
pub fn load_readable(env: &Env, directory: &Path) -> Result<(Option<LoadedOptions>, Vec<Error>)> {
    let mut numbers: Vec<_> =
        env.fs.list(directory)?.iter().filter_map(|name| options_number(name)).collect();
    numbers.sort_unstable();
    let mut errors = Vec::new();
    for number in numbers.into_iter().rev() {
        match load(env, directory, number) {
            Ok(loaded) => return Ok((Some(loaded), errors)),
            Err(error) => errors.push(error),
        }
    }
    Ok((None, errors))
}

fn load(env: &Env, directory: &Path, number: FileNumber) -> Result<LoadedOptions> {
    let path = crate::base::file_name::options(directory, number);
    let bytes = env::read_file(env.fs.as_ref(), &path, FILE_SIZE_MAX)?;
    let text = String::from_utf8(bytes)
        .map_err(|error| {
            Error::corruption("the file is not text")
                .at_offset(error.utf8_error().valid_up_to() as u64)
        })
        .map_err(|error| error.at(&path))?;
    let (mut loaded, names_wal_dir_anyway) = parse_file(&text).map_err(|error| error.at(&path))?;
    let is_wal = |name: &String| matches!(FileKind::parse(name), Some(FileKind::Wal(_)));
    if names_wal_dir_anyway && env.fs.list(directory)?.iter().any(is_wal) {
        // The database may have been moved, or may be a copy whose original still has WALs.
        loaded.options.wal_dir.clear();
    }
    loaded.options.env = env.clone();
    let file: Arc<Path> = Arc::from(path.as_path());
    let families = loaded.families.iter_mut().flat_map(|(_, family)| &mut family.kept);
    for kept in families.chain(&mut loaded.options.kept).chain(&mut loaded.options.cf.kept) {
        kept.file = Some(Arc::clone(&file));
    }
    loaded.path = path;
    Ok(loaded)
}

fn options_number(name: &str) -> Option<FileNumber> {
    match FileKind::parse(name) {
        Some(FileKind::Options(number)) => Some(number),
        _ => None,
    }
}

/// Parses the text of an OPTIONS file, including one written by hand. It counts as complete unless
/// something shows that it was cut off.
///
/// # Errors
/// As [`load_latest`], with the line but without the path.
pub fn parse(text: &str) -> Result<LoadedOptions> {
    Parser::read(text)?.finish()
}

/// Reads the text of the OPTIONS file of a database: one by RocksDB must end as RocksDB ends it.
/// Says whether it names `wal_dir` in any case, too.
fn parse_file(text: &str) -> Result<(LoadedOptions, bool)> {
    let is_by_rocksdb = text.lines().next() == Some(FIRST_OF_ROCKSDB);
    if is_by_rocksdb && !ends_in_empty_line(text) {
        return Err(cut_off(END_OF_ROCKSDB));
    }
    let parser = Parser::read(text)?;
    if is_by_rocksdb && !matches!(parser.place, Place::Table(_) | Place::Unknown) {
        return Err(cut_off(END_OF_ROCKSDB));
    }
    let names_wal_dir_anyway = parser.names_wal_dir_anyway();
    Ok((parser.finish()?, names_wal_dir_anyway))
}

/// Whether the last line but for comments is whole and has nothing. RocksDB indents it, as each
/// name: without its end it may be the next name's.
fn ends_in_empty_line(text: &str) -> bool {
    let last = text.split_inclusive('\n').rev().find(|line| !line.trim_start().starts_with('#'));
    last.is_some_and(|line| line.ends_with('\n') && line.trim().is_empty())
}

/// Checks that a file that names its last line ends in it. Before it is read: what is left of a
/// value may be none.
pub(super) fn check_last_line(text: &str) -> Result<()> {
    if text.lines().next() != Some(FIRST_LINE) {
        return Ok(());
    }
    let mut is_ended = false;
    let mut behind = None;
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if line == LAST_LINE {
            (is_ended, behind) = (true, None);
        } else {
            behind = behind.or(Some(index));
        }
    }
    match behind {
        _ if !is_ended => Err(cut_off(&format!("the line '{LAST_LINE}'"))),
        None => Ok(()),
        Some(index) => {
            let wrong = format!("it follows the line '{LAST_LINE}', which must be the last");
            Err(of_line(index, Error::invalid_argument(wrong)))
        }
    }
}

fn cut_off(end: &str) -> Error {
    Error::corruption(format!("the file does not end in {end}; it seems to be cut off"))
        .advise(Remedy::EndOptionsFile)
}

/// The text of an OPTIONS file for a database with these families, the default one first.
///
/// # Panics
/// If the first family is not the default one.
pub fn print(database: &Options, families: &[(&str, &ColumnFamilyOptions)]) -> String {
    assert!(
        families.first().is_some_and(|(name, _)| *name == DEFAULT_COLUMN_FAMILY_NAME),
        "an OPTIONS file begins with the default column family"
    );
    let mut out = format!(
        "{FIRST_LINE}\n\n[Version]\n  rocksdb_version=7.8.3\n  options_file_version=1.1\n\n[DBOptions]\n"
    );
    print_section(&mut out, &database.db, &database.kept, Section::Db);
    if families.iter().any(|(_, family)| excludes_concurrent_writes(family)) {
        out.push_str("  allow_concurrent_memtable_write=false\n");
    }
    for (name, family) in families {
        print_family(&mut out, name, family);
    }
    for section in &database.kept_sections {
        print_unknown(&mut out, section);
    }
    let _ = writeln!(out, "\n{LAST_LINE}");
    out
}

/// Whether RocksDB opens the family only if one thread at a time inserts into memtables.
fn excludes_concurrent_writes(family: &ColumnFamilyOptions) -> bool {
    let updates_in_place = |kept: &KeptSetting| kept.name == "inplace_update_support";
    !family.memtable_factory.allows_concurrent_writes_in_rocksdb()
        || family.kept.iter().any(updates_in_place)
}

fn print_family(out: &mut String, name: &str, family: &ColumnFamilyOptions) {
    let name = escape(name);
    let _ = writeln!(out, "\n[CFOptions \"{name}\"]");
    for component in COMPONENTS {
        let _ = writeln!(out, "  {component}={}", family.component_text(component));
    }
    for filter in [FILTER, FILTER_FACTORY] {
        let _ = writeln!(out, "  {filter}={}", filters::text(family, filter));
    }
    let _ = writeln!(out, "  {TABLE_FACTORY}={BLOCK_BASED_TABLE}");
    let mut kept = family.kept.clone();
    for (hook, mark) in [(PARTITIONER, ""), (COLLECTORS, OWN_MARK)] {
        if let Some(text) = hooks::text(family, hook) {
            let _ = writeln!(out, "  {mark}{hook}={text}");
            kept.retain(|kept| kept.name != hook);
        }
    }
    print_section(out, &family.settings.settled(), &kept, Section::ColumnFamily);
    if let Some((name, value)) = family.settings.noted() {
        let _ = writeln!(out, "  {OWN_MARK}{name}={value}");
    }
    let _ = writeln!(out, "\n[TableOptions/BlockBasedTable \"{name}\"]");
    print_section(out, &family.table, &family.kept, Section::Table);
}

/// Prints the settings of one section, with the values that were kept in place of the engine's own.
/// What some RocksDB would refuse stands in comments, behind what is in force.
fn print_section<T: Settings>(
    out: &mut String,
    settings: &T,
    kept: &[KeptSetting],
    section: Section,
) {
    let kept: Vec<_> = kept.iter().filter(|kept| kept.section == section).collect();
    for row in T::ROWS {
        let value = match kept.iter().find(|kept| kept.name == row.name && !kept.in_comment) {
            Some(kept) => kept.value.clone(),
            None => settings.text(row.name).expect("every row has a value"),
        };
        let mark = if known::OWN.contains(&row.name) { OWN_MARK } else { "" };
        let _ = writeln!(out, "  {mark}{}={value}", row.name);
    }
    let is_in_both =
        |kept: &KeptSetting| known::find(&kept.name).is_some_and(|known| known.in_both);
    for kept in kept {
        let mark = if kept.in_comment {
            OWN_MARK
        } else if is_in_both(kept) {
            ""
        } else {
            // Its row says it.
            continue;
        };
        let _ = writeln!(out, "  {mark}{}={}", kept.name, kept.value);
    }
}

/// Prints a section that is not known, in comments.
fn print_unknown(out: &mut String, section: &KeptSection) {
    let _ = writeln!(out, "\n{OWN_MARK}[{}]", section.header);
    for (name, value) in &section.settings {
        let _ = writeln!(out, "  {OWN_MARK}{name}={value}");
    }
}
