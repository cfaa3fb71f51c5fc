//! Whether the WALs are where they are looked for, before any is replayed or made.
//!
//! Acknowledged writes may be in WALs alone. A `wal_dir` that is not mounted, or is another than before, seems to hold none: what
//! they held would be gone without a word, and the new MANIFEST would let go of them. So an opening fails that misses the newest
//! WAL that the MANIFEST knows of. That WAL is there even if it is empty, or a newer one is, wherever a database was opened for
//! writing; which a LOCK tells, for copies have none. RocksDB's copies leave out a WAL that is empty.

use std::path::Path;

use crate::base::file_name::{self, FileKind};
use crate::base::{Error, Remedy, Result};
use crate::db::tree::directories::is_own;
use crate::env::FileSystem;
use crate::manifest::VersionSet;
use crate::wal::missing_wal;

/// A copy, such as a checkpoint, has its WALs in its own directory. With the original's `wal_dir` it would replay that one's,
/// and remove them; and what is in its own would be lost without a trace.
///
/// # Errors
/// `InvalidArgument`; `IoError`.
pub(in crate::db) fn check_wals_are_not_here(
    fs: &dyn FileSystem,
    path: &Path,
    wal_directory: &Path,
    versions: &VersionSet,
) -> Result<()> {
    if is_own(fs, path, wal_directory)? {
        return Ok(());
    }
    let oldest = versions.oldest_log_number();
    let names = fs.list(path)?;
    let is_needed =
        |name: &&String| matches!(FileKind::parse(name), Some(FileKind::Wal(number)) if number >= oldest);
    let Some(name) = names.iter().find(is_needed) else { return Ok(()) };
    Err(Error::invalid_argument(
        "the WAL lies in the database's own directory, but wal_dir names another: a copy, such as a checkpoint, has its WALs \
         here, and is opened without wal_dir; if the WALs are to be there from now on, move this one",
    )
    .at(path.join(name)))
}

/// That the newest WAL which the MANIFEST knows of is there, or a newer one.
///
/// # Errors
/// `Corruption` if it is missing; `IoError`, with subcode `PathNotFound` if there is no such directory.
pub(in crate::db) fn check_newest_wal(
    fs: &dyn FileSystem,
    wal_directory: &Path,
    versions: &VersionSet,
) -> Result<()> {
    let Some(newest) = versions.newest_wal() else { return Ok(()) };
    let names = match fs.list(wal_directory) {
        Err(error) if error.is_not_found() => {
            return Err(error.advise(Remedy::FindWalDirectory));
        }
        listed => listed?,
    };
    let is_newest = |name: &String| matches!(FileKind::parse(name), Some(FileKind::Wal(number)) if number >= *newest.start());
    if names.iter().any(is_newest) {
        return Ok(());
    }
    let is_it = newest.start() == newest.end();
    let what = if is_it { "this WAL" } else { "this WAL, or the one before" };
    Err(missing_wal(&file_name::wal(wal_directory, *newest.end()), what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::FileNumber;
    use crate::db::{Db, salvage};
    use crate::env::Env;
    use crate::manifest::VersionEdit;
    use crate::options::Options;

    fn newest_wal(options: &Options) -> FileNumber {
        let names = options.env.fs.list(Path::new("/db")).unwrap();
        let number = |name: &String| match FileKind::parse(name) {
            Some(FileKind::Wal(number)) => Some(number),
            _ => None,
        };
        names.iter().filter_map(number).max().unwrap()
    }

    /// As RocksDB 11.8 leaves it that closes it with `optimize_manifest_for_recovery`: of a family with an empty memtable the
    /// MANIFEST says that it needs the WAL behind the last, which there is not.
    fn closed_with_a_number_behind_its_last_wal(options: &Options, is_all_flushed: bool) -> FileNumber {
        let db = Db::open("/db", options).unwrap();
        let other = db.create_column_family("other", &options.cf).unwrap();
        db.put_cf(&other, "flushed", "1").unwrap();
        db.put("key", "flushed, too").unwrap();
        db.flush_all().unwrap();
        if !is_all_flushed {
            db.put("key", "logged").unwrap();
        }
        let last = newest_wal(options);
        let behind = Some(FileNumber(last.0 + 1));
        let noted = |id| VersionEdit { log_number: behind, ..VersionEdit::new(id) };
        let mut edits = vec![noted(other.id())];
        if is_all_flushed {
            let min_log_number_to_keep = behind;
            edits.push(VersionEdit { min_log_number_to_keep, ..noted(db.default_column_family().id()) });
        }
        let inner = db.inner();
        inner.tree.apply_edits(&mut inner.tree.lock(), edits, &[]).unwrap();
        db.close().unwrap();
        last
    }

    /// It did not open: the WAL was missed that there never was.
    #[test]
    fn a_number_that_rocksdb_notes_as_it_closes_a_database_is_no_wal_that_is_missing() {
        for is_all_flushed in [true, false] {
            let mut options = Options { env: Env::memory(), ..Options::default() };
            options.create_if_missing = true;
            let last = closed_with_a_number_behind_its_last_wal(&options, is_all_flushed);
            let expected = if is_all_flushed { "flushed, too" } else { "logged" };
            let check = |db: &Db, way: &str| {
                assert_eq!(db.get("key").unwrap().unwrap(), expected, "{way}");
                let other = db.column_family("other").unwrap();
                assert_eq!(db.get_cf(&other, "flushed").unwrap().unwrap(), "1", "{way}");
            };

            // The last there is must be there.
            let wal = |number| file_name::wal(Path::new("/db"), number);
            let (fs, behind, wal) = (options.env.fs.clone(), wal(FileNumber(last.0 + 1)), wal(last));
            fs.rename(&wal, Path::new("/away")).unwrap();
            let error = Db::open("/db", &options).unwrap_err();
            assert!(error.is_corruption() && error.path() == Some(&*behind), "{error}");
            assert!(error.to_string().contains("this WAL, or the one before, but it is missing"), "{error}");
            fs.rename(Path::new("/away"), &wal).unwrap();

            let read_only = Db::open_read_only("/db", &options).unwrap();
            check(&read_only, "read-only");
            let report = read_only.verify(|_| {});
            assert!(report.faults.is_empty() && report.notes.is_empty(), "{report:?}");
            drop(read_only);
            let report =
                salvage(Path::new("/db"), Path::new("/salvaged"), &options, &[], &mut |_| {}).unwrap();
            assert!(report.losses.is_empty(), "{:?}", report.losses);
            check(&Db::open("/salvaged", &options).unwrap(), "salvaged");
            check(&Db::open("/db", &options).unwrap(), "opened");
        }
    }
}
