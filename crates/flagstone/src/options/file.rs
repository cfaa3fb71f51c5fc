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
//! The engine never needs the file: it says nothing about how to read the other files. Tools learn from it which
//! comparator, merge operator and prefix extractor a database uses. RocksDB refuses a file with a name that it does
//! not know, so only names that both RocksDB 7.8 and 11 know are written as such; what only this engine has stands in
//! comments of the form `# flagstone:name=value`. One of these, `left_open`, is no setting: it names those of the family whose
//! values above follow from others, since nobody has set them.
//!
//! That a file was cut off shows at its end: ours names its last line in its first, RocksDB's ends in the options of tables and
//! an empty line. (One of RocksDB that was cut between two families cannot be told from one that has no more of them, but by the
//! families that the MANIFEST has: the command line compares them, RocksDB refuses to open some families alone.) That end a
//! database's file must have, also if somebody has changed it: behind any of its lines it may have been cut. Text that a program
//! hands over ([`parse`]) may end as it likes, as RocksDB's example does, but what names a last line must have it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use crate::base::file_name::FileKind;
use crate::base::{DEFAULT_COLUMN_FAMILY_NAME, Error, FileNumber, Remedy, Result};
use crate::env::{self, Env};

use super::assembled::{ColumnFamilyOptions, Options};
use super::blob_defaults::BlobNotes;
use super::filters::{FILTER, FILTER_FACTORY};
use super::kept::KeptSetting;
use super::known::{self, OWN_MARK};
use super::missing::COMPONENTS;
use super::table::{Section, Settings};
use super::text::{escape, unescape};

/// The first line of a file, and the last one.
const FIRST_LINE: &str = "# Written by Flagstone in RocksDB's format. The last line is '# End of file.'";
const LAST_LINE: &str = "# End of file.";

/// How RocksDB begins its files, and how it ends them.
const FIRST_OF_ROCKSDB: &str = "# This is a RocksDB option file.";
const END_OF_ROCKSDB: &str = "the options of a family's tables and an empty line behind them";

/// The RocksDBs whose names are all known; files by older and newer ones may hold names that are not.
const VERSIONS_KNOWN: RangeInclusive<(u32, u32)> = (7, 8)..=(11, 9);

/// The version of a file that does not say any.
const NO_VERSION: (u32, u32) = (0, 0);

/// An OPTIONS file has some 4 KiB for each column family; anything larger than those of very many is something else.
const FILE_SIZE_MAX: u64 = 1 << 30;

/// So many families a file may name, whatever it says of them; of more it says so much, in the mean, in bytes. In memory they
/// would else be many times as large as the file.
const FAMILIES_ANYWAY: usize = 10_000;
const FAMILY_BYTES_MIN: usize = 1024;

/// So much of what is not known is told, and of each such name so many characters: a file may be made of them.
const UNKNOWN_TOLD: usize = 1000;
const NAME_TOLD: usize = 100;

/// Numbers that stay as they are: tables of another version than the engine has cannot be read.
const NEVER_FITTED: &[&str] = &["format_version"];

/// What an OPTIONS file says.
#[derive(Debug, Clone)]
pub struct LoadedOptions {
    /// The file.
    pub path: PathBuf,
    /// The database's settings, and in `cf` the default column family's.
    pub options: Options,
    /// Every column family by name, in the file's order, the default one first.
    pub families: Vec<(String, ColumnFamilyOptions)>,
    /// Names in a file by another RocksDB or a newer Flagstone that are not known here, as sentences.
    pub unknown: Vec<String>,
}

impl LoadedOptions {
    /// What the file says that is not acted on, as sentences.
    pub fn warnings(&self) -> Vec<String> {
        let database = self.options.kept.iter().map(ToString::to_string);
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
/// So a database is opened as it was, be it RocksDB's or ours:
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
/// let mut loaded = load_latest(&env, path)?.expect("no one has removed it"); // on a disk: Env::os()
/// for warning in loaded.warnings() {
///     eprintln!("not acted on: {warning}");
/// }
/// for (name, family) in &mut loaded.families {
///     // What is the program's own it gives again: family.merge_operator = Some(Arc::new(MyOperator)).
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
/// `IoError`; `Corruption` for a file that is malformed; `InvalidArgument` for a value that no RocksDB writes. A comparator,
/// merge operator or prefix extractor that is not built in is no error: opening will ask for it.
pub fn load_latest(env: &Env, directory: &Path) -> Result<Option<LoadedOptions>> {
    let newest = env.fs.list(directory)?.iter().filter_map(|name| options_number(name)).max();
    newest.map(|number| load(env, directory, number)).transpose()
}

/// Reads the newest OPTIONS file that can be read, for who saves what is left of a database: it differs from a newer one, which
/// is damaged, in what was changed last. Says what is wrong with those that are newer.
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
            Error::corruption("the file is not text").at_offset(error.utf8_error().valid_up_to() as u64)
        })
        .map_err(|error| error.at(&path))?;
    let mut loaded = parse_file(&text).map_err(|error| error.at(&path))?;
    loaded.options.env = env.clone();
    loaded.path = path;
    Ok(loaded)
}

fn options_number(name: &str) -> Option<FileNumber> {
    match FileKind::parse(name) {
        Some(FileKind::Options(number)) => Some(number),
        _ => None,
    }
}

/// Reads the text of an OPTIONS file, also of one that somebody has written: it is whole if nothing says that it was cut off.
///
/// # Errors
/// As [`load_latest`], with the line but without the path.
pub fn parse(text: &str) -> Result<LoadedOptions> {
    Parser::read(text)?.finish()
}

/// Reads the text of the OPTIONS file of a database: one by RocksDB must end as RocksDB ends it.
fn parse_file(text: &str) -> Result<LoadedOptions> {
    let is_by_rocksdb = text.lines().next() == Some(FIRST_OF_ROCKSDB);
    if is_by_rocksdb && !ends_in_empty_line(text) {
        return Err(cut_off(END_OF_ROCKSDB));
    }
    let parser = Parser::read(text)?;
    if is_by_rocksdb && !matches!(parser.place, Place::Table(_) | Place::OtherTable(_)) {
        return Err(cut_off(END_OF_ROCKSDB));
    }
    parser.finish()
}

/// Whether the last line is whole and has nothing. RocksDB indents it, as each name: without its end it may be the next name's.
fn ends_in_empty_line(text: &str) -> bool {
    text.ends_with('\n') && text.lines().next_back().is_some_and(|line| line.trim().is_empty())
}

/// Checks that a file that names its last line has it. Before it is read: what is left of a value may be none.
fn check_last_line(text: &str) -> Result<()> {
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    match text.lines().next() == Some(FIRST_LINE) && last != Some(LAST_LINE) {
        true => Err(cut_off(&format!("the line '{LAST_LINE}'"))),
        false => Ok(()),
    }
}

fn cut_off(end: &str) -> Error {
    Error::corruption(format!("the file was cut off: it does not end in {end}"))
        .advise(Remedy::EndOptionsFile)
}

/// The line up to a '#' that no backslash protects.
fn without_comment(line: &str) -> &str {
    let mut protected = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            _ if protected => protected = false,
            b'\\' => protected = true,
            b'#' => return &line[..at],
            _ => {}
        }
    }
    line
}

/// Where the parser is.
enum Place {
    Start,
    Version,
    Db,
    Family(usize),
    Table(usize),
    /// A section of a kind of table that is not supported.
    OtherTable(String),
}

struct Parser {
    place: Place,
    version: (u32, u32),
    database_seen: bool,
    /// The line stands behind [`OWN_MARK`].
    is_own: bool,
    loaded: LoadedOptions,
    /// Where in `loaded` each family stands, and how many there may be.
    places: HashMap<String, usize>,
    families_max: usize,
    /// What the file says of single families that depends on what else it says of them.
    blob_notes: HashMap<usize, BlobNotes>,
    /// Unknown names beyond [`UNKNOWN_TOLD`].
    untold: usize,
}

impl Parser {
    fn new() -> Self {
        let loaded = LoadedOptions {
            path: PathBuf::new(),
            options: Options::default(),
            families: Vec::new(),
            unknown: Vec::new(),
        };
        Self {
            place: Place::Start,
            version: NO_VERSION,
            database_seen: false,
            is_own: false,
            loaded,
            places: HashMap::new(),
            families_max: FAMILIES_ANYWAY,
            blob_notes: HashMap::new(),
            untold: 0,
        }
    }

    fn read(text: &str) -> Result<Self> {
        check_last_line(text)?;
        let mut parser = Self::new();
        parser.families_max = FAMILIES_ANYWAY.max(text.len() / FAMILY_BYTES_MIN);
        for (index, line) in text.lines().enumerate() {
            let own = line.trim_start().strip_prefix(OWN_MARK);
            parser.is_own = own.is_some();
            let line = own.unwrap_or_else(|| without_comment(line)).trim();
            if !line.is_empty() {
                parser.line(line).map_err(|error| error.context(format!("line {}", index + 1)))?;
            }
        }
        Ok(parser)
    }

    fn line(&mut self, line: &str) -> Result<()> {
        if let Some(header) = line.strip_prefix('[') {
            let header = header
                .strip_suffix(']')
                .ok_or_else(|| Error::corruption(format!("section header '{line}' does not end with ']'")))?;
            return self.section(header.trim());
        }
        let (name, value) = line
            .split_once('=')
            .ok_or_else(|| Error::corruption(format!("expected name=value, found '{line}'")))?;
        self.pair(name.trim(), value.trim())
    }

    fn section(&mut self, header: &str) -> Result<()> {
        let (title, argument) = match header.split_once(char::is_whitespace) {
            Some((title, argument)) => (title, Some(family_name(argument.trim())?)),
            None => (header, None),
        };
        self.place = match (title, argument) {
            ("Version", None) => Place::Version,
            ("DBOptions", None) => {
                self.database_seen = true;
                Place::Db
            }
            ("CFOptions", Some(name)) => self.begin_family(name)?,
            ("TableOptions/BlockBasedTable", Some(name)) => {
                let index = self.places.get(&name).copied();
                let missing =
                    || Error::corruption(format!("table options of '{name}' without CFOptions before"));
                Place::Table(index.ok_or_else(missing)?)
            }
            (other, Some(_)) if other.starts_with("TableOptions/") => Place::OtherTable(other.to_string()),
            _ => return Err(Error::corruption(format!("unknown section [{header}]"))),
        };
        Ok(())
    }

    fn begin_family(&mut self, name: String) -> Result<Place> {
        let families = &mut self.loaded.families;
        if families.is_empty() && name != DEFAULT_COLUMN_FAMILY_NAME {
            return Err(Error::corruption(format!("the first column family is '{name}', not 'default'")));
        }
        if families.len() == self.families_max {
            return Err(Error::corruption(format!(
                "more than {} column families for its size",
                families.len()
            )));
        }
        if self.places.insert(name.clone(), families.len()).is_some() {
            return Err(Error::corruption(format!("column family '{name}' appears twice")));
        }
        // A writer that does not say whether it keeps values apart cannot read them where they are.
        let mut family = ColumnFamilyOptions::default();
        family.enable_blob_files = Some(false);
        families.push((name, family));
        Ok(Place::Family(families.len() - 1))
    }

    fn pair(&mut self, name: &str, value: &str) -> Result<()> {
        let (section, kept, result) = match &self.place {
            Place::Start => return Err(Error::corruption(format!("'{name}' stands before any section"))),
            Place::Version => return self.version_pair(name, value),
            Place::OtherTable(title) => {
                let (name, title) = (shortened(name), shortened(title));
                self.note_unknown(format!("'{name}' in [{title}]: only block-based tables are supported"));
                return Ok(());
            }
            Place::Db => {
                let options = &mut self.loaded.options;
                (Section::Db, &mut options.kept, named(name, options.db.assign(name, value)))
            }
            Place::Family(index) => {
                if self.is_own && self.blob_notes.entry(*index).or_default().takes(name, value) {
                    return Ok(());
                }
                let family = &mut self.loaded.families[*index].1;
                let result = family.try_set(name, value);
                (Section::ColumnFamily, &mut family.kept, result)
            }
            Place::Table(index) => {
                let family = &mut self.loaded.families[*index].1;
                (Section::Table, &mut family.kept, named(name, family.table.assign(name, value)))
            }
        };
        // What stands there last counts; a family that has taken it has seen to that.
        if section != Section::ColumnFamily || !matches!(result, Some(Ok(()))) {
            kept.retain(|kept| kept.section != section || kept.name != name);
        }
        let refused = match result {
            Some(Ok(())) => {
                self.fit(name, value);
                return Ok(());
            }
            Some(Err(error)) if error.code() == crate::base::Code::NotSupported => Some(error),
            Some(Err(error)) => return Err(error),
            None => None,
        };
        match known::find(name) {
            Some(known) if refused.is_none() && known.accepts(value) && !known.keeps(value) => Ok(()),
            None if refused.is_none() => self.unknown_name(name),
            _ => {
                let (name, value) = (name.to_string(), value.to_string());
                kept.push(KeptSetting { section, name, value, taken_for: None });
                Ok(())
            }
        }
    }

    /// RocksDB takes many numbers that make no sense for the nearest that do, and writes down what it was given.
    fn fit(&mut self, name: &str, value: &str) {
        if NEVER_FITTED.contains(&name) {
            return;
        }
        let (section, taken_for, kept) = match self.place {
            Place::Db => {
                let options = &mut self.loaded.options;
                (Section::Db, fitted(&mut options.db, name), &mut options.kept)
            }
            Place::Family(index) => {
                let family = &mut self.loaded.families[index].1;
                (Section::ColumnFamily, fitted(&mut family.settings, name), &mut family.kept)
            }
            Place::Table(index) => {
                let family = &mut self.loaded.families[index].1;
                (Section::Table, fitted(&mut family.table, name), &mut family.kept)
            }
            Place::Start | Place::Version | Place::OtherTable(_) => return,
        };
        if taken_for.is_some() {
            kept.push(KeptSetting { section, name: name.to_string(), value: value.to_string(), taken_for });
        }
    }

    /// Another RocksDB or a newer Flagstone may know what we do not; from any other it is a mistake.
    fn unknown_name(&mut self, name: &str) -> Result<()> {
        let author = match self.is_own {
            true => "a newer Flagstone",
            false if self.version > *VERSIONS_KNOWN.end() => "a newer RocksDB",
            false if self.version != NO_VERSION && self.version < *VERSIONS_KNOWN.start() => {
                "an older RocksDB"
            }
            false => return Err(Error::corruption(format!("there is no option '{name}'"))),
        };
        let name = shortened(name);
        self.note_unknown(format!("option '{name}' of {author} is not known and not acted on"));
        Ok(())
    }

    fn note_unknown(&mut self, sentence: String) {
        match self.loaded.unknown.len() < UNKNOWN_TOLD {
            true => self.loaded.unknown.push(sentence),
            false => self.untold += 1,
        }
    }

    fn version_pair(&mut self, name: &str, value: &str) -> Result<()> {
        let version = parse_version(value).ok_or_else(|| {
            Error::corruption(format!("{name}: expected numbers and dots, found '{value}'"))
        })?;
        match name {
            "rocksdb_version" => self.version = version,
            "options_file_version" if version.0 < 1 => {
                return Err(Error::corruption(format!("options_file_version {value} is older than 1.0")));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self) -> Result<LoadedOptions> {
        if !self.database_seen {
            return Err(Error::corruption("section [DBOptions] is missing"));
        }
        for (index, notes) in &self.blob_notes {
            notes.act_on(&mut self.loaded.families[*index].1.settings);
        }
        let Some((_, default)) = self.loaded.families.first() else {
            return Err(Error::corruption("section [CFOptions \"default\"] is missing"));
        };
        self.loaded.options.cf = default.clone();
        if self.untold > 0 {
            self.loaded.unknown.push(format!("{} more names are not known and not acted on", self.untold));
        }
        Ok(self.loaded)
    }
}

/// A name as a sentence has it.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_TOLD) {
        Some((end, _)) => format!("{}..", &name[..end]),
        None => name.to_string(),
    }
}

/// The text of the nearest value in its range, which the setting called `name` is given, if it lay outside.
fn fitted<T: Settings>(settings: &mut T, name: &str) -> Option<String> {
    settings.fit(name).then(|| settings.text(name).expect("it has just been found"))
}

fn named(name: &str, result: Option<Result<()>>) -> Option<Result<()>> {
    result.map(|result| result.map_err(|error| error.context(format!("option '{name}'"))))
}

/// The first two components of `11.9.0`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

fn family_name(quoted: &str) -> Result<String> {
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.map(unescape).ok_or_else(|| {
        Error::corruption(format!("expected a column family's name in quotes, found {quoted}"))
    })
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
    let _ = writeln!(out, "\n{LAST_LINE}");
    out
}

/// Whether RocksDB opens the family only if one thread at a time inserts into memtables.
fn excludes_concurrent_writes(family: &ColumnFamilyOptions) -> bool {
    let updates_in_place = |kept: &KeptSetting| kept.name == "inplace_update_support";
    !family.memtable_factory.allows_concurrent_writes_in_rocksdb() || family.kept.iter().any(updates_in_place)
}

fn print_family(out: &mut String, name: &str, family: &ColumnFamilyOptions) {
    let name = escape(name);
    let _ = writeln!(out, "\n[CFOptions \"{name}\"]");
    for component in COMPONENTS {
        let _ = writeln!(out, "  {component}={}", family.component_text(component));
    }
    for filter in [FILTER, FILTER_FACTORY] {
        let _ = writeln!(out, "  {filter}={}", family.filter_text(filter));
    }
    out.push_str("  table_factory=BlockBasedTable\n");
    print_section(out, &family.settings.settled(), &family.kept, Section::ColumnFamily);
    if let Some((name, value)) = family.settings.noted() {
        let _ = writeln!(out, "  {OWN_MARK}{name}={value}");
    }
    let _ = writeln!(out, "\n[TableOptions/BlockBasedTable \"{name}\"]");
    print_section(out, &family.table, &family.kept, Section::Table);
}

/// Prints the settings of one section, with the values that were kept in place of the engine's own.
fn print_section<T: Settings>(out: &mut String, settings: &T, kept: &[KeptSetting], section: Section) {
    let kept: Vec<_> = kept.iter().filter(|kept| kept.section == section).collect();
    for row in T::ROWS {
        let value = match kept.iter().find(|kept| kept.name == row.name) {
            Some(kept) => kept.value.clone(),
            None => settings.text(row.name).expect("every row has a value"),
        };
        let mark = if known::OWN.contains(&row.name) { OWN_MARK } else { "" };
        let _ = writeln!(out, "  {mark}{}={value}", row.name);
    }
    // Names without a row are handed on if both RocksDBs know them.
    for kept in kept.iter().filter(|kept| known::find(&kept.name).is_some_and(|known| known.in_both)) {
        let _ = writeln!(out, "  {}={}", kept.name, kept.value);
    }
}
