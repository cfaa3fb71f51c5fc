//! How the lines of an OPTIONS file become options.
//!
//! RocksDB rejects a file that names an unknown option. Here files of other releases are read:
//!
//! 1. A known name with a supported value: the option is set.
//! 2. A name that RocksDB has or once had ([`known`], [`former`]): its default is ignored, and any
//!    other value is kept.
//! 3. Any other name, an unknown section, or an unknown choice: kept if another program wrote the
//!    file. In text of unknown origin it is an error.
//! 4. An unknown compression or checksum is an error, because tables could not be read. So is a
//!    malformed value.
//!
//! As in RocksDB, a malformed line is `InvalidArgument`, and a file that lacks a section is
//! `Corruption`.
//!
//! What is kept is written again ([`super::file::print`]). A comparator, merge operator or kind of
//! table that the engine does not have is kept too, and required when the database is opened.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::assembled::{ColumnFamilyOptions, Options};
use super::blob_defaults::BlobNotes;
use super::file::{FIRST_OF_ROCKSDB, LoadedOptions, check_last_line};
use super::former;
use super::kept::{KeptSection, KeptSetting};
use super::known::{self, OWN_MARK};
use super::names::unknown_name;
use super::table::{Section, Settings};
use super::text::unescape;
use crate::base::{
    Code, DEFAULT_COLUMN_FAMILY_NAME, Error, Remedy, Result, SubCode, counted, form,
};

/// The RocksDBs whose names are all known.
const VERSIONS_KNOWN: RangeInclusive<(u32, u32)> = (5, 0)..=(11, 9);

/// The last RocksDB that writes `wal_dir` in any case.
const LAST_TO_NAME_WAL_DIR: (u32, u32) = (6, 22);

/// The version of a file that does not say any.
const NO_VERSION: (u32, u32) = (0, 0);

/// A file may name this many families in any case. Beyond that it must have `FAMILY_BYTES_MIN`
/// bytes per family on average; otherwise the options would take many times the file's size in
/// memory.
const FAMILIES_ANYWAY: usize = 10_000;
const FAMILY_BYTES_MIN: usize = 1024;

/// The same for what is not known: RocksDB writes a name and its value in some 30 bytes.
const UNKNOWN_ANYWAY: usize = 10_000;
const UNKNOWN_BYTES_MIN: usize = 64;

/// Unknown names in one section. RocksDB has some 100 options in each.
const UNKNOWN_IN_SECTION: usize = 1000;

/// Numbers that stay as they are: tables of another version than the engine has cannot be read.
const NEVER_FITTED: &[&str] = &["format_version"];

/// Where the parser is.
pub(super) enum Place {
    Start,
    Version,
    Db,
    Family(usize),
    Table(usize),
    /// A section that is not known, the last of those that are kept.
    Unknown,
}

pub(super) struct Parser {
    pub(super) place: Place,
    version: (u32, u32),
    begins_as_rocksdb_s: bool,
    database_seen: bool,
    /// The line stands behind [`OWN_MARK`].
    is_own: bool,
    loaded: LoadedOptions,
    /// Where in `loaded` each family stands, and how many there may be.
    places: HashMap<String, usize>,
    families_max: usize,
    /// What the file says of single families that depends on what else it says of them.
    blob_notes: HashMap<usize, BlobNotes>,
    /// Unknown names and sections that may still be kept, in this section and at all, and how many
    /// were not.
    unknown_left_here: usize,
    unknown_left: usize,
    not_kept: usize,
}

/// What became of a line.
enum Outcome {
    /// It is in force.
    Set,
    /// It asks for nothing.
    PassedOver,
    /// It is to be kept; `in_comment` as in [`KeptSetting`].
    Kept { in_comment: bool },
    /// It is to be kept, and its value is one that only other releases have.
    OtherValue,
    /// Nothing is known of the name.
    Unknown,
}

impl Parser {
    fn new(text: &str) -> Self {
        let loaded = LoadedOptions {
            path: PathBuf::new(),
            options: Options::default(),
            families: Vec::new(),
            unknown: Vec::new(),
        };
        Self {
            place: Place::Start,
            version: NO_VERSION,
            begins_as_rocksdb_s: text.lines().next() == Some(FIRST_OF_ROCKSDB),
            database_seen: false,
            is_own: false,
            loaded,
            places: HashMap::new(),
            families_max: FAMILIES_ANYWAY.max(text.len() / FAMILY_BYTES_MIN),
            blob_notes: HashMap::new(),
            unknown_left_here: UNKNOWN_IN_SECTION,
            unknown_left: UNKNOWN_ANYWAY.max(text.len() / UNKNOWN_BYTES_MIN),
            not_kept: 0,
        }
    }

    pub(super) fn read(text: &str) -> Result<Self> {
        check_last_line(text)?;
        let mut parser = Self::new(text);
        for (index, line) in text.lines().enumerate() {
            let own = line.trim_start().strip_prefix(OWN_MARK);
            parser.is_own = own.is_some();
            let line = own.unwrap_or_else(|| without_comment(line)).trim();
            if !line.is_empty() {
                parser.line(line).map_err(|error| of_line(index, error))?;
            }
        }
        Ok(parser)
    }

    /// Whether the line is another program's: RocksDB's, or a newer Flagstone's. From any other it
    /// may be a mistake.
    fn is_by_another(&self) -> bool {
        let is_other_version =
            self.version != NO_VERSION && !VERSIONS_KNOWN.contains(&self.version);
        self.is_own || self.begins_as_rocksdb_s || is_other_version
    }

    fn line(&mut self, line: &str) -> Result<()> {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.strip_suffix(']').ok_or_else(|| {
                Error::invalid_argument(format!("section header '{line}' does not end with ']'"))
            })?;
            self.unknown_left_here = UNKNOWN_IN_SECTION;
            return self.section(header.trim());
        }
        let (name, value) = line.split_once('=').ok_or_else(|| {
            Error::invalid_argument(format!("expected name=value, found '{line}'"))
        })?;
        self.pair(name.trim(), value.trim())
    }

    fn section(&mut self, header: &str) -> Result<()> {
        let (title, argument) = match header.split_once(char::is_whitespace) {
            Some((title, argument)) => (title, Some(argument.trim())),
            None => (header, None),
        };
        self.place = match (title, argument) {
            ("Version", None) => Place::Version,
            ("DBOptions", None) => {
                self.database_seen = true;
                Place::Db
            }
            ("CFOptions", Some(name)) => self.begin_family(family_name(name)?)?,
            ("TableOptions/BlockBasedTable", Some(name)) => {
                let name = family_name(name)?;
                let index = self.places.get(&name).copied();
                let missing = || {
                    Error::invalid_argument(format!(
                        "table options of '{name}' without CFOptions before them"
                    ))
                };
                Place::Table(index.ok_or_else(missing)?)
            }
            (other, Some(_)) if other.starts_with("TableOptions/") => self.begin_unknown(header),
            _ if self.is_by_another() => self.begin_unknown(header),
            _ => return Err(Error::invalid_argument(format!("unknown section [{header}]"))),
        };
        Ok(())
    }

    fn begin_unknown(&mut self, header: &str) -> Place {
        if self.may_keep_unknown() {
            let header = header.to_owned();
            self.loaded.options.kept_sections.push(KeptSection { header, settings: Vec::new() });
        } else {
            // Nothing of it is kept.
            self.unknown_left_here = 0;
        }
        Place::Unknown
    }

    fn begin_family(&mut self, name: String) -> Result<Place> {
        let families = &mut self.loaded.families;
        if families.is_empty() && name != DEFAULT_COLUMN_FAMILY_NAME {
            return Err(Error::invalid_argument(format!(
                "the first column family is '{name}', not 'default'"
            )));
        }
        if families.len() == self.families_max {
            return Err(Error::corruption(format!(
                "more than {} column families for its size",
                families.len()
            )));
        }
        if self.places.insert(name.clone(), families.len()).is_some() {
            return Err(Error::invalid_argument(format!("column family '{name}' appears twice")));
        }
        // A writer that does not say whether it keeps values apart cannot read them where they are.
        let mut family = ColumnFamilyOptions::default();
        family.enable_blob_files = Some(false);
        // One that does not name its filters writes none.
        family.table.filter_policy = None;
        families.push((name, family));
        Ok(Place::Family(families.len() - 1))
    }

    fn pair(&mut self, name: &str, value: &str) -> Result<()> {
        let (section, result) = match &self.place {
            Place::Start => {
                return Err(Error::invalid_argument(format!("'{name}' comes before any section")));
            }
            Place::Version => return self.version_pair(name, value),
            Place::Unknown => {
                self.keep_in_unknown_section(name, value);
                return Ok(());
            }
            Place::Db => (Section::Db, named(name, self.loaded.options.db.assign(name, value))),
            Place::Family(index) => {
                if self.is_own && self.blob_notes.entry(*index).or_default().takes(name, value) {
                    return Ok(());
                }
                (Section::ColumnFamily, self.loaded.families[*index].1.try_set(name, value))
            }
            Place::Table(index) => (
                Section::Table,
                named(name, self.loaded.families[*index].1.table.assign(name, value)),
            ),
        };
        let outcome = self.outcome(name, value, result)?;
        let is_kept = match outcome {
            Outcome::Unknown => self.may_keep_unknown(),
            _ => true,
        };
        let (kept, text) = self.kept_here(name);
        // What stands there last counts; a family that has taken it has seen to that.
        if section != Section::ColumnFamily || !matches!(outcome, Outcome::Set) {
            kept.retain(|kept| kept.section != section || kept.name != name);
        }
        let mut setting = KeptSetting::new(section, name, value);
        match outcome {
            Outcome::Set => self.fit(name, value),
            Outcome::Kept { in_comment } => kept.push(KeptSetting { in_comment, ..setting }),
            Outcome::OtherValue => {
                setting.taken_for = text;
                kept.push(KeptSetting { in_comment: true, ..setting });
            }
            Outcome::Unknown if is_kept => kept.push(KeptSetting { in_comment: true, ..setting }),
            Outcome::Unknown | Outcome::PassedOver => {}
        }
        Ok(())
    }

    /// Decides about a line by what came of setting the option.
    fn outcome(&self, name: &str, value: &str, result: Option<Result<()>>) -> Result<Outcome> {
        let is_by_another = self.is_by_another();
        match result {
            Some(Ok(())) => Ok(Outcome::Set),
            Some(Err(error)) => {
                let is_other_release_s = error.subcode() == SubCode::OtherRelease;
                match error.code() {
                    Code::NotSupported => match known::find(name) {
                        Some(known) => Ok(Outcome::Kept { in_comment: !known.in_both }),
                        None => Ok(Outcome::Kept { in_comment: is_other_release_s }),
                    },
                    _ if is_other_release_s && is_by_another => Ok(Outcome::OtherValue),
                    _ => Err(error),
                }
            }
            None => match (known::find(name), former::find(name)) {
                (Some(known), _) if known.accepts(value) && !known.keeps(value) => {
                    Ok(Outcome::PassedOver)
                }
                (Some(known), _) => Ok(Outcome::Kept { in_comment: !known.in_both }),
                (None, Some(former)) if former.accepts(value) => Ok(Outcome::PassedOver),
                (None, Some(_)) => Ok(Outcome::Kept { in_comment: true }),
                (None, None) if is_by_another => Ok(Outcome::Unknown),
                (None, None) => Err(unknown_name(name)),
            },
        }
    }

    /// Where the present section keeps what is not acted on, and the text of its option `name` that
    /// is in force.
    fn kept_here(&mut self, name: &str) -> (&mut Vec<KeptSetting>, Option<String>) {
        match self.place {
            Place::Family(index) => {
                let family = &mut self.loaded.families[index].1;
                let text = family.settings.text(name);
                (&mut family.kept, text)
            }
            Place::Table(index) => {
                let family = &mut self.loaded.families[index].1;
                let text = family.table.text(name);
                (&mut family.kept, text)
            }
            _ => {
                let options = &mut self.loaded.options;
                let text = options.db.text(name);
                (&mut options.kept, text)
            }
        }
    }

    fn may_keep_unknown(&mut self) -> bool {
        let may = self.unknown_left > 0 && self.unknown_left_here > 0;
        if may {
            self.unknown_left -= 1;
            self.unknown_left_here -= 1;
        } else {
            self.not_kept += 1;
        }
        may
    }

    fn keep_in_unknown_section(&mut self, name: &str, value: &str) {
        if self.may_keep_unknown() {
            let section =
                self.loaded.options.kept_sections.last_mut().expect("its header was kept");
            section.settings.push((name.to_owned(), value.to_owned()));
        }
    }

    /// RocksDB takes many numbers that make no sense for the nearest that do, and writes down what
    /// it was given.
    fn fit(&mut self, name: &str, value: &str) {
        if NEVER_FITTED.contains(&name) {
            return;
        }
        let (section, taken_for) = match self.place {
            Place::Db => (Section::Db, fitted(&mut self.loaded.options.db, name)),
            Place::Family(index) => {
                (Section::ColumnFamily, fitted(&mut self.loaded.families[index].1.settings, name))
            }
            Place::Table(index) => {
                (Section::Table, fitted(&mut self.loaded.families[index].1.table, name))
            }
            Place::Start | Place::Version | Place::Unknown => return,
        };
        if taken_for.is_some() {
            let setting = KeptSetting { taken_for, ..KeptSetting::new(section, name, value) };
            self.kept_here(name).0.push(setting);
        }
    }

    fn version_pair(&mut self, name: &str, value: &str) -> Result<()> {
        let version = parse_version(value).ok_or_else(|| {
            Error::invalid_argument(format!("{name}: expected numbers and dots, found '{value}'"))
        })?;
        match name {
            "rocksdb_version" => self.version = version,
            "options_file_version" if version.0 < 1 => {
                return Err(Error::invalid_argument(format!(
                    "options_file_version {value} is older than 1.0"
                )));
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the file is from a RocksDB that writes `wal_dir` even if it is not set: it names the
    /// directory that the database was opened in, which may have changed.
    pub(super) fn names_wal_dir_anyway(&self) -> bool {
        self.begins_as_rocksdb_s && self.version <= LAST_TO_NAME_WAL_DIR
    }

    pub(super) fn finish(mut self) -> Result<LoadedOptions> {
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
        if self.not_kept > 0 {
            self.loaded.unknown.push(format!(
                "{} {} unknown, without effect and not written again",
                counted(self.not_kept, "more name"),
                form(self.not_kept, "is", "are")
            ));
        }
        Ok(self.loaded)
    }
}

/// What is wrong with a line of the file, which may be corrected; of a file that says too much none
/// is.
pub(super) fn of_line(index: usize, error: Error) -> Error {
    let error = error.context(format!("line {}", index + 1));
    if error.is_corruption() { error } else { error.advise(Remedy::CorrectLine) }
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

/// The text of the nearest value in its range, which the setting called `name` is given, if it lay
/// outside.
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
        Error::invalid_argument(format!(
            "expected a column family's name in quotes, found {quoted}"
        ))
    })
}
