use super::*;
use crate::base::{Code, SubCode};
use crate::db::Db;
use crate::env::{Env, IoMode};
use crate::options::DataPathList;

fn options() -> Options {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options.db.wal_dir = "/wals".to_string();
    options.db.db_paths = DataPathList::of(&[("/data", 1 << 30)]);
    options
}

fn is_there(options: &Options, path: &str) -> bool {
    options.env.fs.metadata(path.as_ref()).is_ok()
}

#[test]
fn nothing_is_left_of_a_database() {
    let options = options();
    let db = Db::open("/db", &options).unwrap();
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    let error = destroy("/db", &options, &[]).unwrap_err();
    assert_eq!((error.code(), error.subcode()), (Code::Busy, SubCode::LockHeld));
    assert_eq!(db.get("key").unwrap().unwrap(), "value");
    drop(db);
    destroy("/db", &options, &[]).unwrap();
    assert_eq!(["/db", "/wals", "/data"].map(|path| is_there(&options, path)), [false; 3]);
    destroy("/db", &options, &[]).unwrap();
}

#[test]
fn what_is_not_the_databases_stays() {
    let options = options();
    drop(Db::open("/db", &options).unwrap());
    let note = options.env.fs.create_writable("/db/note".as_ref(), IoMode::Buffered).unwrap();
    drop(note);
    // Named the same directories, but never opened with them.
    drop(Db::open("/other", &Options { db: Default::default(), ..options.clone() }).unwrap_err());
    let mut plain = Options { env: options.env.clone(), ..Options::default() };
    plain.create_if_missing = true;
    drop(Db::open("/other", &plain).unwrap());
    destroy("/other", &options, &[]).unwrap();
    assert!(!is_there(&options, "/other/CURRENT"));
    assert!(Db::open("/db", &options).is_ok());
    destroy("/db", &options, &[]).unwrap();
    assert_eq!(options.env.fs.list("/db".as_ref()).unwrap(), ["note"]);
}
