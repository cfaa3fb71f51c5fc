use crate::db::jobs::punch;
use std::path::Path;

use super::*;
use crate::db::handle::Db;
use crate::env::Env;
use crate::manifest::BlobFile;
use crate::options::Options;

/// A database with one value in a blob file, and what a survey of that file is to do.
fn with_survey() -> (Db, Survey) {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.set_all("create_if_missing=true;enable_blob_files=true;min_blob_size=100").unwrap();
    let db = Db::open("/db", &options).unwrap();
    db.put("key", [7; 1000]).unwrap();
    db.flush_all().unwrap();
    let family = db.default_column_family().0.clone();
    let survey = Survey {
        current: family.current.load_full(),
        installed: 0,
        files: family.current.load().version.blob_files.keys().copied().collect(),
        block_size: 4096,
        family,
    };
    (db, survey)
}

fn blob_of(survey: &Survey) -> &BlobFile {
    &survey.current.version.blob_files.values().next().unwrap().file
}

/// Memory was taken for a map of as many blocks as the MANIFEST says that the file has, and it may
/// say anything.
#[test]
fn what_is_not_there_is_not_mapped() {
    let (db, survey) = with_survey();
    let (inner, blob) = (db.inner(), blob_of(&survey));
    assert!(!punch::survey(&inner.jobs, &survey).unwrap().is_fulfilled());
    inner.context.env.fs.reopen_writable(&blob.path()).unwrap().truncate(500).unwrap();
    assert!(punch::survey(&inner.jobs, &survey).unwrap().is_fulfilled());
    assert!(blob.holes.are_refused());
}

/// All tables that refer to it were read from end to end, once a minute for as long as the
/// checkpoint was there.
#[test]
fn no_tables_are_read_for_a_file_that_a_checkpoint_shares() {
    let (db, survey) = with_survey();
    let (inner, path) = (db.inner(), blob_of(&survey).path());
    let (_, table) = survey.current.version.files().next().unwrap();
    inner.context.env.fs.reopen_writable(&table.path()).unwrap().truncate(0).unwrap();
    assert!(punch::survey(&inner.jobs, &survey).is_err(), "it is read, and gone");
    inner.context.env.fs.link(&path, Path::new("/db/copy")).unwrap();
    assert!(punch::survey(&inner.jobs, &survey).unwrap().is_fulfilled());
}

/// What tables are read ahead by counted for as long as the holes were waited for.
#[test]
fn what_is_known_of_dead_blocks_is_all_that_a_promise_holds() {
    let (db, survey) = with_survey();
    let before = db.inner().tables.account().held(MemoryKind::Jobs);
    let promise = punch::survey(&db.inner().jobs, &survey).unwrap();
    let held = db.inner().tables.account().held(MemoryKind::Jobs) - before;
    assert!((1..1000).contains(&held), "{held} bytes for one block");
    drop(promise);
    assert_eq!(db.inner().tables.account().held(MemoryKind::Jobs), before);
}
