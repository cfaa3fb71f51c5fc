//! Opens tables: those named on the command line, and those found in a directory, which another
//! program may be writing.

use std::path::Path;
use std::sync::Arc;

use flagstone::base::file_name::FileKind;
use flagstone::base::{Comparator, PrefixExtractor};
use flagstone::db::another_owner;
use flagstone::env::{Env, IoMode};
use flagstone::manifest;
use flagstone::sst::{Table, TableKind, TableProperties, TableReadSettings, read_table_properties};

use crate::commands::kind;

/// An open table, and the bytes of its file.
pub(super) struct Opened {
    pub table: Arc<Table>,
    pub size: u64,
}

/// What there is where a directory has a table's name.
pub(super) enum Sight {
    Table(Opened),
    /// No table, and why that is no fault.
    Nothing(&'static str),
}

/// Opens a table named on the command line. The file may be of another kind by mistake.
pub(super) fn open_named(env: &Env, path: &Path) -> flagstone::base::Result<Opened> {
    open(env, path).map_err(|error| match kind::of(path) {
        Some(FileKind::Table(_)) => error,
        _ if error.is_corruption() && !ends_like_a_table(env, path) => {
            kind::mistaken(path, "table", "a table ends in the number 0x88e241b785f4cff7")
        }
        _ => error,
    })
}

fn ends_like_a_table(env: &Env, path: &Path) -> bool {
    // What cannot be read is told as that.
    claimed_kind(env, path).map_or(true, |kind| kind.is_some())
}

/// The kind of table that the end of a file claims, if it does.
pub(super) fn claimed_kind(env: &Env, path: &Path) -> flagstone::base::Result<Option<TableKind>> {
    let file = env.fs.open_random_access(path, IoMode::Buffered)?;
    let mut end = [0; 8];
    let read = file.read_at(file.size()?.saturating_sub(8), &mut end)?;
    Ok(TableKind::claimed(&end[..read]))
}

/// Opens a table of a database.
pub fn open_table(env: &Env, path: &Path) -> flagstone::base::Result<Arc<Table>> {
    open(env, path).map(|opened| opened.table)
}

/// Opens a table found in a directory. A program that has the database open may be writing it, or
/// may have removed it.
pub(super) fn open_listed(env: &Env, path: &Path) -> flagstone::base::Result<Sight> {
    match open(env, path) {
        Ok(opened) => Ok(Sight::Table(opened)),
        Err(_) if is_gone(env, path) => Ok(Sight::Nothing("was removed meanwhile")),
        Err(error) if error.is_corruption() && is_left_out(env, path) => Ok(Sight::Nothing(
            "is incomplete and not part of the database: it is being written, or was when a program ended",
        )),
        // The database has it: it may have been finished meanwhile.
        Err(_) => open(env, path).map(Sight::Table),
    }
}

fn is_gone(env: &Env, path: &Path) -> bool {
    env.fs.metadata(path).is_err_and(|error| error.is_not_found())
}

/// Whether the directory holds a database whose MANIFEST never listed this table; false if the
/// MANIFEST cannot be read.
fn is_left_out(env: &Env, path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let (Some(directory), Some(FileKind::Table(number))) =
        (path.parent(), name.and_then(FileKind::parse))
    else {
        return false;
    };
    // The file OWNER in a directory of db_paths or cf_paths names the database.
    let Ok(owner) = another_owner(&*env.fs, directory, directory) else { return false };
    let manifest = manifest::read_current(&*env.fs, owner.as_deref().unwrap_or(directory));
    let Ok(mut edits) = manifest.and_then(|manifest| manifest::dump(&*env.fs, &manifest)) else {
        return false;
    };
    edits.all(|(_, edit)| {
        edit.is_ok_and(|edit| edit.new_files.iter().all(|(_, file)| file.number != number))
    })
}

pub(super) fn open(env: &Env, path: &Path) -> flagstone::base::Result<Opened> {
    let file = env.fs.open_random_access(path, IoMode::Buffered)?;
    let size = file.size()?;
    let properties = read_table_properties(file.clone(), size)?;
    let settings = TableReadSettings {
        comparator: comparator_of(&properties),
        // A rule that is not built in only means that prefix filters stay unused.
        prefix_extractor: PrefixExtractor::from_option_text(&properties.prefix_extractor)
            .unwrap_or(None),
        ..TableReadSettings::default()
    };
    Ok(Opened { table: Table::open(file, size, settings)?, size })
}

pub(super) fn comparator_of(properties: &TableProperties) -> Comparator {
    match properties.comparator.as_str() {
        // RocksDB's tool assumes it, too; LevelDB's tables do not say.
        "" => Comparator::Bytewise,
        // One that is not built in leaves what can be seen without comparing keys.
        name => Comparator::from_name(name).unwrap_or_else(|_| Comparator::unknown(name)),
    }
}
