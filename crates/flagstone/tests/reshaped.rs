//! Databases that are opened with options that their trees do not fit.

#![allow(clippy::unwrap_used, reason = "a story that fails ends the test")]

use std::path::Path;
use std::sync::Arc;

use flagstone::options::CompactionStyle;
use flagstone::{Builder, Code, ColumnFamilyOptions, Db, SstPartitionerFixedPrefixFactory};

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A leveled family `users` of several tables in the last of seven levels, and some in level 0.
fn leveled(path: &Path) {
    let db = Db::builder(path)
        .column_family("users", |family| {
            family.target_file_size_base = 16 << 10;
            family.compression = flagstone::CompressionType::None;
            family.enable_blob_files = Some(false);
        })
        .open()
        .unwrap();
    let users = db.column_family("users").unwrap();
    for first in 0..2_u32 {
        for number in (first..2_000).step_by(2) {
            users.put(number.to_be_bytes(), [number as u8; 50]).unwrap();
        }
        users.flush().unwrap();
    }
    users.compact().unwrap();
    assert!(tables(&db).len() > 2 && tables(&db).iter().all(|level| *level == 6));
    users.put(5_u32.to_be_bytes(), "newer").unwrap();
    users.flush().unwrap();
    db.close().unwrap();
}

/// The levels of the tables of `users`.
fn tables(db: &Db) -> Vec<usize> {
    let files = db.live_files().into_iter();
    files.filter(|file| file.column_family == "users").filter_map(|file| file.level).collect()
}

fn opened(path: &Path, with: impl FnOnce(&mut ColumnFamilyOptions)) -> Builder {
    Db::builder(path).column_family("users", |family| {
        family.enable_blob_files = Some(false);
        family.disable_auto_compactions = true;
        with(family);
    })
}

fn has_all(db: &Db) {
    let users = db.column_family("users").unwrap();
    assert_eq!(users.iter().count(), 2_000);
    assert_eq!(users.get(5_u32.to_be_bytes()).unwrap().unwrap(), "newer");
    assert_eq!(users.get(1_999_u32.to_be_bytes()).unwrap().unwrap(), [1_999_u32 as u8; 50]);
}

#[test]
fn fewer_levels_take_all_tables() {
    for style in [CompactionStyle::Level, CompactionStyle::Universal] {
        let directory = temporary();
        leveled(directory.path());
        let few = |family: &mut ColumnFamilyOptions| {
            family.num_levels = 3;
            family.compaction_style = style;
        };
        let error = opened(directory.path(), few).open().unwrap_err();
        assert!(error.to_string().contains("more levels than num_levels"), "{error}");
        let db = opened(directory.path(), few).open_reshaped().unwrap();
        assert!(tables(&db).iter().all(|level| *level == 2), "{:?}", tables(&db));
        has_all(&db);
        db.close().unwrap();
        // Another time there is nothing to do.
        has_all(&opened(directory.path(), few).open_reshaped().unwrap());
    }
}

#[test]
fn one_level_takes_one_table() {
    let directory = temporary();
    leveled(directory.path());
    let one = |family: &mut ColumnFamilyOptions| {
        family.num_levels = 1;
        family.compaction_style = CompactionStyle::Universal;
    };
    let db = opened(directory.path(), one).open_reshaped().unwrap();
    assert_eq!(tables(&db), [0]);
    has_all(&db);
}

/// It became one table, and went as a whole when it passed the limit.
#[test]
fn a_family_with_deep_tables_is_not_compacted_for_fifo() {
    let directory = temporary();
    leveled(directory.path());
    let fifo = |family: &mut ColumnFamilyOptions| {
        family.compaction_style = CompactionStyle::Fifo;
        family.compaction_options_fifo.max_table_files_size = 1 << 30;
    };
    let error = opened(directory.path(), fifo).open_reshaped().unwrap_err();
    assert_eq!(error.code(), Code::NotSupported, "{error}");
    assert!(error.to_string().contains("column family 'users'"), "{error}");
    let db = opened(directory.path(), fifo).open().unwrap();
    let levels = tables(&db);
    assert!(levels.contains(&6), "{levels:?}");
    db.close().unwrap();
    drop(db);
    // It is FIFO by now, and its tables stay where they are.
    let db = opened(directory.path(), fifo).open_reshaped().unwrap();
    assert_eq!(tables(&db), levels);
    has_all(&db);
    db.close().unwrap();
    drop(db);
    has_all(&opened(directory.path(), |_| {}).open_reshaped().unwrap());
}

/// The newest OPTIONS file had a table size of a petabyte then, and an opening with stored options
/// took it up.
#[test]
fn after_a_failure_the_options_are_the_old_ones() {
    let directory = temporary();
    leveled(directory.path());
    let stored = || {
        let newest = flagstone::options::load_latest(&flagstone::Env::os(), directory.path());
        let families = newest.unwrap().unwrap().families;
        families.into_iter().find(|(name, _)| name == "users").unwrap().1
    };
    // Tables that a key parts from each other do not become one.
    let error = opened(directory.path(), |family| {
        family.num_levels = 1;
        family.sst_partitioner_factory = Some(Arc::new(SstPartitionerFixedPrefixFactory::new(3)));
    })
    .column_family("new", |_| {})
    .open_reshaped()
    .unwrap_err();
    assert_eq!(error.code(), Code::Aborted, "{error}");
    let family = stored();
    assert_eq!((family.target_file_size_base, family.num_levels), (16 << 10, 7));
    let db = Db::builder(directory.path()).stored_options().unwrap().open().unwrap();
    has_all(&db);
    assert!(db.column_family("new").is_err());
}

#[test]
fn a_new_database_is_made() {
    let directory = temporary();
    let db = opened(directory.path(), |family| family.num_levels = 2).open_reshaped().unwrap();
    assert_eq!(tables(&db), [0; 0]);
    drop(db);
    let error = Db::builder(directory.path())
        .options(|options| options.cf.num_levels = 65)
        .open_reshaped()
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
}
