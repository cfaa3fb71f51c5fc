use super::*;
use crate::base::file_name::FileKind;
use crate::env::Env;
use crate::options::Options;

/// Where missing families were no error, the file of a value whose family had been dropped
/// meanwhile stayed until the database was opened again; otherwise until a thread came by.
#[test]
fn a_value_of_a_family_that_is_gone_leaves_nothing() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.set("create_if_missing", "true").unwrap();
    let db = Db::open("/db", &options).unwrap();
    let blob_files = || {
        let names = options.env.fs.list(db.path()).unwrap();
        names.iter().filter(|name| matches!(FileKind::parse(name), Some(FileKind::Blob(_)))).count()
    };
    for ignore_missing_column_families in [true, false] {
        let family = db.create_column_family("photos", &options.cf).unwrap();
        let how = WriteOptions { ignore_missing_column_families, ..WriteOptions::default() };
        let mut writer = db.put_stream(&family, "key", &how).unwrap();
        writer.append(&[7; 3_000_000]).unwrap();
        db.drop_column_family(&family).unwrap();
        assert_eq!(blob_files(), 1);
        assert_eq!(writer.commit().is_ok(), ignore_missing_column_families);
        assert_eq!(blob_files(), 0);
    }
    // What the WAL says of it is passed over.
    db.close().unwrap();
    drop(db);
    assert!(Db::open("/db", &options).unwrap().verify(|_| {}).faults.is_empty());
}
