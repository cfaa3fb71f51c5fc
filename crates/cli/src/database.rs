//! Opening databases as their own OPTIONS file says, changed by `--set`.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use flagstone::base::file_name::FileKind;
use flagstone::base::{Code, Comparator, Error, Remedy};
use flagstone::db::{ColumnFamily, Db, Follower, Secondary, check_no_follower};
use flagstone::env::Env;
use flagstone::manifest;
use flagstone::options::names::nearest;
use flagstone::options::{
    ColumnFamilyOptions, DEFAULT_COLUMN_FAMILY_NAME, LoadedOptions, Options, RecoveryMode,
    load_latest, load_readable,
};

use crate::arguments::Common;
use crate::beside_writer;
use crate::failure::{Failure, say};
use crate::opening;
use crate::text;
use crate::unreserved;
use crate::world;

/// What a command wants to do with the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read an existing one without changing its directory.
    Read,
    /// The same, even if files are missing or have the wrong size: that is for the command to find.
    Inspect,
    /// Change an existing one.
    Write,
    /// Change one, made if there is none.
    Create,
    /// The same; one that is made keeps values of 4 KiB and more in blob files.
    CreateForFiles,
}

impl Access {
    /// Whether the database may change.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::Inspect)
    }

    fn creates(self) -> bool {
        matches!(self, Self::Create | Self::CreateForFiles)
    }
}

/// Opens the database in `path` with all its column families.
pub fn open(common: &Common, path: &Path, access: Access) -> Result<Db, Failure> {
    let opened = match (&common.secondary_path, &common.leader_path) {
        (Some(own), _) => beside_writer::open(path, || open_secondary(common, path, own)),
        (None, Some(leader)) => beside_writer::open(leader, || open_follower(common, leader, path)),
        (None, None) => {
            let open = || open_with(options(common, path, access)?, path, access);
            if access.writes() { open() } else { beside_writer::open(path, open) }
        }
    };
    opened.map_err(|failure| of_setting(common, failure))
}

/// Reads the database in `path` as a secondary instance whose own directory is `own`.
fn open_secondary(common: &Common, path: &Path, own: &Path) -> Result<Db, Failure> {
    let (options, families) = options(common, path, Access::Read)?;
    let families: Vec<(&str, ColumnFamilyOptions)> =
        families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    Ok(Secondary::open_with_families(path, own, &options, &families)?.now())
}

/// Reads the database in `leader` as a follower instance whose own directory is `own`.
fn open_follower(common: &Common, leader: &Path, own: &Path) -> Result<Db, Failure> {
    let (mut options, families) = options(common, leader, Access::Read)?;
    options.db.follower_refresh_catchup_period_ms = 0;
    let families: Vec<(&str, ColumnFamilyOptions)> =
        families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    Ok(Follower::open_with_families(own, leader, &options, &families)?.now())
}

/// A setting that the engine refuses, as it does not go with this database, is wrong usage.
pub fn of_setting(common: &Common, failure: Failure) -> Failure {
    let Failure::Engine(error) = &failure else { return failure };
    let is_named = |name: &str| has_word(error.message(), name.rsplit('.').next().unwrap_or(name));
    // Of two values of one setting the last is in force.
    match common.settings.iter().rev().find(|(name, _)| is_named(name)) {
        Some((name, value)) if error.code() == Code::InvalidArgument => {
            Failure::Usage(format!("--set {name}={value}: {error}"))
        }
        _ => failure,
    }
}

/// Whether `word` stands in the text, and not as a part of another one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |neighbour: Option<&u8>| {
        neighbour.is_some_and(|neighbour| neighbour.is_ascii_alphanumeric() || *neighbour == b'_')
    };
    text.match_indices(word).any(|(start, _)| {
        let (before, after) = (&text.as_bytes()[..start], &text.as_bytes()[start + word.len()..]);
        !is_part(before.last()) && !is_part(after.first())
    })
}

/// [`open`] with these options.
pub fn open_with(options: OpenOptions, path: &Path, access: Access) -> Result<Db, Failure> {
    let (options, families) = options;
    let families: Vec<(&str, ColumnFamilyOptions)> =
        families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    Ok(match access {
        Access::Read | Access::Inspect => {
            Db::open_read_only_with_families(path, &options, &families)?
        }
        Access::Write | Access::Create | Access::CreateForFiles => {
            let is_new = will_be_new(access, &options, path)?;
            let db = Db::open_with_families(path, &options, &families)?;
            tell_if_new(is_new, path);
            unreserved::tell_if_short(&db, path);
            db
        }
    })
}

/// Whether opening for this will make a database.
pub fn will_be_new(access: Access, options: &Options, path: &Path) -> Result<bool, Error> {
    Ok(access.creates() && !exists(&options.env, path)?)
}

/// Says that a database was made: a slip in `--db` would go unnoticed.
pub fn tell_if_new(is_new: bool, path: &Path) {
    if is_new {
        say(format_args!("note: created a new database in {}", text::path(path)));
    }
}

/// Options of the database and of each of its families, in the order of their creation.
pub type OpenOptions = (Options, Vec<(String, ColumnFamilyOptions)>);

/// The options to open a database with, which its OPTIONS file and `--set` say; if that takes long,
/// its progress is shown.
pub fn options(common: &Common, path: &Path, access: Access) -> Result<OpenOptions, Failure> {
    let env = world::env();
    let exists = exists(&env, path)?;
    if !exists && !access.creates() {
        return Err(no_database(&env, path).into());
    }
    let loaded = if exists { load(&env, path)? } else { None };
    options_by(common, path, access, loaded, exists)
}

/// What is wrong with the newest OPTIONS file, and options to look at the database with all the
/// same: those of an older OPTIONS file that can be read, otherwise the defaults; of families what
/// the MANIFEST says. `None` if nothing is wrong with it.
pub fn options_despite_file(
    common: &Common,
    path: &Path,
) -> Result<Option<(Error, OpenOptions)>, Failure> {
    let env = world::env();
    let (older, errors) = load_readable(&env, path)?;
    let Some(error) = errors.into_iter().next().filter(|error| error.code() != Code::IoError)
    else {
        return Ok(None);
    };
    let error =
        if error.remedies().is_empty() { error.advise(Remedy::MoveOptionsAway) } else { error };
    Ok(Some((error, options_by(common, path, Access::Inspect, older, true)?)))
}

/// The options to open a database with, by what an OPTIONS file says, if there is one.
fn options_by(
    common: &Common,
    path: &Path,
    access: Access,
    loaded: Option<LoadedOptions>,
    exists: bool,
) -> Result<OpenOptions, Failure> {
    let env = world::env();
    if let Some(loaded) = &loaded {
        warn(loaded);
    }
    let mut options =
        loaded.as_ref().map_or_else(Options::default, |loaded| loaded.options.clone());
    options.open_progress = Some(opening::shown(&env));
    options.env = env;
    options.create_if_missing = access.creates();
    options.create_missing_column_families = false;
    options.error_if_exists = false;
    if access == Access::Inspect {
        options.set_for_one_opening("paranoid_checks", "false")?;
    }

    let mut families = families_by(&options.env, path, loaded.as_ref(), exists)?;
    if !exists && access == Access::CreateForFiles {
        families.iter_mut().for_each(|(_, family)| keep_files_apart(family));
    }
    // Filters are an application's own, and so may be merge operators and prefix extractors.
    for (_, family) in &mut families {
        family.stand_in_for_filters();
        family.stand_in_for_components()?;
    }
    if let Some((_, default)) = families.first() {
        options.cf = default.clone();
    }
    let are_possible = |options: &Options, families: &[(String, ColumnFamilyOptions)]| {
        families
            .iter()
            .try_for_each(|(_, family)| family.validate())
            .and_then(|()| options.validate())
    };
    let were_possible = are_possible(&options, &families).is_ok();
    set_all(common, &mut options, &mut families, access)?;
    // What was so already the opening says.
    if were_possible {
        are_possible(&options, &families)
            .map_err(|error| Failure::Usage(format!("--set: {error}")))?;
    }
    Ok((options, families))
}

/// The families of the database, with the options that an OPTIONS file has for them.
fn families_by(
    env: &Env,
    path: &Path,
    loaded: Option<&LoadedOptions>,
    exists: bool,
) -> Result<Vec<(String, ColumnFamilyOptions)>, Failure> {
    // There may be thousands.
    let recorded = loaded.iter().flat_map(|loaded| &loaded.families);
    let recorded: HashMap<_, _> = recorded.map(|(name, family)| (name.as_str(), family)).collect();
    let existing = existing_families(env, path, exists)?;
    if let Some(loaded) = loaded {
        let names = existing.iter().map(|(name, _)| name.as_str());
        warn_of_unnamed(
            &loaded.path,
            &names.filter(|name| !recorded.contains_key(name)).collect::<Vec<_>>(),
        );
    }
    let mut families = Vec::new();
    for (name, comparator) in existing {
        let family = match (recorded.get(name.as_str()), comparator) {
            (Some(recorded), _) => (*recorded).clone(),
            // The MANIFEST knows the order of keys, too.
            (None, Some(comparator)) => ColumnFamilyOptions {
                comparator: Comparator::from_name(&comparator)?,
                ..ColumnFamilyOptions::default()
            },
            (None, None) => ColumnFamilyOptions::default(),
        };
        families.push((name, family));
    }
    Ok(families)
}

/// Sets what `--set` says.
fn set_all(
    common: &Common,
    options: &mut Options,
    families: &mut [(String, ColumnFamilyOptions)],
    access: Access,
) -> Result<(), Failure> {
    for (name, value) in &common.settings {
        let set = match name.strip_prefix("db.").unwrap_or(name) {
            plain if PASSING_OVER_DAMAGE.contains(&plain) => {
                set_over_damage(options, plain, value, access)
            }
            _ => options.set_everywhere(families, name, value),
        };
        set.map_err(|error| Failure::Usage(format!("--set {name}={value}: {error}")))?;
    }
    Ok(())
}

/// Settings of which one value passes over damage at each opening.
const PASSING_OVER_DAMAGE: [&str; 2] = ["paranoid_checks", "wal_recovery_mode"];

/// Sets one of these. A value that passes over damage holds for this command: if every later one
/// had it, too, it would pass over later damage unnoticed.
fn set_over_damage(
    options: &mut Options,
    name: &str,
    value: &str,
    access: Access,
) -> Result<(), Error> {
    options.set_for_one_opening(name, value)?;
    let passes_over = match name {
        "paranoid_checks" => !options.paranoid_checks,
        _ => options.wal_recovery_mode == RecoveryMode::SkipAnyCorruptedRecords,
    };
    if !passes_over {
        return options.set(name, value);
    }
    if access.writes() {
        let kept = options.as_kept().get(name).unwrap_or_default();
        say(format_args!(
            "note: {name}={value} holds for this command; the OPTIONS file keeps {name}={kept}"
        ));
    }
    Ok(())
}

/// Whether there is one; an error where the system does not tell, as of a directory that others may
/// not read.
fn exists(env: &Env, path: &Path) -> Result<bool, Error> {
    match env.fs.metadata(&path.join("CURRENT")) {
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => check_no_file(env, path).and(Err(error)),
        Ok(_) => Ok(true),
    }
}

/// Whether there is a database in `path`.
pub fn is_there(path: &Path) -> Result<bool, Failure> {
    Ok(exists(&world::env(), path)?)
}

/// Checks that `path` is no file, nor below one.
///
/// # Errors
/// `InvalidArgument`.
pub fn check_no_file(env: &Env, path: &Path) -> Result<(), Error> {
    let is_file = |path: &Path| env.fs.metadata(path).is_ok_and(|found| !found.is_directory);
    if path.ancestors().any(is_file) {
        Err(none_here("a file, not a directory").at(path))
    } else {
        Ok(())
    }
}

/// Whether there is a database in `path`.
///
/// # Errors
/// What is there instead.
pub fn check_exists(path: &Path) -> Result<(), Failure> {
    let env = world::env();
    if exists(&env, path)? { Ok(()) } else { Err(no_database(&env, path).into()) }
}

/// Whether there is a database in `path`, or a new one would have that column family: none is made
/// for a mistake.
///
/// # Errors
/// What is there instead.
pub fn check_may_have(path: &Path, family: &str) -> Result<(), Failure> {
    let env = world::env();
    if family == DEFAULT_COLUMN_FAMILY_NAME || exists(&env, path)? {
        return Ok(());
    }
    match no_database(&env, path) {
        lost if lost.is_corruption() => Err(lost.into()),
        _ => {
            let path = path.display();
            Err(Failure::Usage(format!(
                "there is no database in {path} yet, and a new one has no column family '{family}'"
            )))
        }
    }
}

/// Settings for contents of files: each byte of a large one is then written to the tree once.
fn keep_files_apart(family: &mut ColumnFamilyOptions) {
    family.enable_blob_garbage_collection = true;
}

/// The families with the names of their comparators, in the order of their creation.
fn existing_families(
    env: &Env,
    path: &Path,
    exists: bool,
) -> Result<Vec<(String, Option<String>)>, Failure> {
    if !exists {
        return Ok(vec![(DEFAULT_COLUMN_FAMILY_NAME.to_string(), None)]);
    }
    let listed = manifest::list_column_families(env, path)?;
    Ok(listed.into_iter().map(|family| (family.name, family.comparator)).collect())
}

fn no_database(env: &Env, path: &Path) -> Error {
    if let Err(follower) = check_no_follower(&*env.fs, path) {
        return follower;
    }
    let holds_data = |name: &String| {
        matches!(
            FileKind::parse(name),
            Some(FileKind::Table(_) | FileKind::Blob(_) | FileKind::Wal(_))
        ) && env.fs.metadata(&path.join(name)).is_ok_and(|file| file.size > 0)
    };
    match env.fs.list(path).unwrap_or_default().iter().find(|name| holds_data(name)) {
        Some(name) => Error::corruption(format!(
            "the database has lost its file CURRENT but still has {name}"
        ))
        .advise(Remedy::SalvageWithoutCurrent),
        None => {
            none_here(if env.fs.metadata(path).is_ok() { "no file CURRENT" } else { NO_DIRECTORY })
        }
    }
    .at(path)
}

/// What is said of a path where nothing is.
pub const NO_DIRECTORY: &str = "no such directory";

/// That there is no database, and what is there instead.
pub fn none_here(instead: &str) -> Error {
    Error::invalid_argument(format!("there is no database here ({instead})"))
        .advise(Remedy::CheckPath)
}

/// The OPTIONS file, if there is one; it is what names comparator, merge operator and prefix
/// extractor.
fn load(env: &Env, path: &Path) -> Result<Option<LoadedOptions>, Failure> {
    load_latest(env, path).map_err(|error| match error.code() {
        // It could not be read, and may say what it should.
        Code::IoError => Failure::Engine(error),
        _ => Failure::Advised(error.to_string(), Box::new(Remedy::MoveOptionsAway)),
    })
}

/// How many settings that are not acted on a warning lists.
const SETTINGS_LISTED: usize = 100;

/// Says once what the OPTIONS file asks for and does not get.
fn warn(loaded: &LoadedOptions) {
    let families = loaded.families.iter().flat_map(|(_, family)| &family.kept);
    let (mut ignored, mut seen) = (Vec::new(), HashSet::new());
    // What only RocksDB's log would show is no news, and in the way of what is.
    for kept in loaded.options.kept.iter().chain(families).filter(|kept| !kept.is_inert()) {
        if seen.insert((&kept.name, &kept.value)) {
            ignored.push(kept.in_short());
        }
    }
    ignored.extend(loaded.options.kept_sections.iter().map(ToString::to_string));
    let more = ignored.len().saturating_sub(SETTINGS_LISTED);
    if more > 0 {
        ignored.truncate(SETTINGS_LISTED);
        ignored.push(format!("{more} more"));
    }
    ignored.extend(loaded.unknown.iter().cloned());
    if !ignored.is_empty() {
        let path = loaded.path.display();
        say(format_args!(
            "warning: {path} has settings without effect here: {}",
            ignored.join(", ")
        ));
    }
}

/// Says which families the OPTIONS file leaves out: one by RocksDB that was cut off behind a family
/// looks like a whole one.
fn warn_of_unnamed(path: &Path, unnamed: &[&str]) {
    let Some((first, others)) = unnamed.split_first() else { return };
    let others =
        if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    say(format_args!(
        "warning: {} does not name the column family '{}'{others}, which is opened with default settings. If that file was cut \
         off, an older one may have its own",
        path.display(),
        text::name(first)
    ));
}

/// The name that was probably meant, as a question behind a refusal.
pub fn meant<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!("; did you mean '{near}'?"))
}

/// The column family of that name.
pub fn family(db: &Db, name: &str) -> Result<ColumnFamily, Failure> {
    db.column_family(name).ok_or_else(|| {
        let names: Vec<_> =
            db.column_families().iter().map(|family| text::name(family.name())).collect();
        let name = text::name(name);
        let meant = meant(&name, names.iter().map(String::as_str));
        let names = names.join(", ");
        Failure::Usage(format!("no column family '{name}'; the database has {names}{meant}"))
    })
}

#[cfg(test)]
mod tests;
