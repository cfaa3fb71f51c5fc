use flagstone::options::Options;

use super::*;

/// Who could not read a file was told that it is damaged.
#[test]
fn a_file_that_this_user_may_not_read_comes_with_what_helps() {
    let refused = Error::io("open", "/db/000007.sst", std::io::ErrorKind::PermissionDenied.into());
    let fault = Fault { error: refused, key_range: Some((b"a".to_vec(), b"c".to_vec())) };
    assert!(
        describe(&fault).contains("keys from 'a' to 'c' are not checked"),
        "{}",
        describe(&fault)
    );
    assert!(
        describe(&fault).contains("000007.sst") && describe(&fault).contains("run it as the owner")
    );
    assert!(fault_json(&fault)["advice"].as_str().unwrap().contains("run it as the owner"));
    let damaged =
        Fault { error: Error::corruption("a checksum").at("/db/000007.sst"), key_range: None };
    assert!(!describe(&damaged).contains("owner") && fault_json(&damaged)["advice"].is_null());
    let found = [fault, damaged];
    assert_eq!(summary(&found[..1]), "no fault, but 1 not read");
    assert_eq!(summary(&found[1..]), "1 fault");
    assert_eq!(summary(&found), "1 fault, and 1 not read");
    assert_eq!(summary(&[]), "sound");
}

/// It lacked WALs and the MANIFEST, and passed 100 percent.
#[test]
fn the_progress_goes_just_as_far_as_is_read() {
    let scratch = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.create_if_missing = true;
    let db = Db::open(scratch.path(), &options).unwrap();
    for key in ["in a table", "in a WAL"] {
        db.put(key, [b'v'; 1000]).unwrap();
        if key == "in a table" {
            db.flush_all().unwrap();
        }
    }
    db.close().unwrap();
    let db = Db::open_read_only(scratch.path(), &options).unwrap();
    let report = db.verify(|_| {});
    assert_eq!((report.tables, report.wals), (1, 1));
    assert_eq!(report.bytes, bytes_to_read(&db, &options.env));
}
