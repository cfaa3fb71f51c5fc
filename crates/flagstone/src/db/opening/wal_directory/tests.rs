use super::*;
use crate::base::FileNumber;
use crate::db::handle::Db;
use crate::db::salvage;
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

/// As RocksDB 11.8 leaves it that closes it with `optimize_manifest_for_recovery`: of a family with
/// an empty memtable the MANIFEST says that it needs the WAL behind the last, which there is not.
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
        edits
            .push(VersionEdit { min_log_number_to_keep, ..noted(db.default_column_family().id()) });
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
        assert!(
            error.to_string().contains("this WAL, or the one before, but it is missing"),
            "{error}"
        );
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
