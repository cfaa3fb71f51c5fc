use super::*;

fn write(fs: &dyn FileSystem, path: &str, text: &[u8]) {
    fs.create_writable(Path::new(path), IoMode::Buffered).unwrap().write_at(0, text).unwrap();
}

#[test]
fn a_file_stays_readable_under_its_name_as_long_as_it_is_open() {
    let env = Env::memory();
    let files = FollowedFiles::new(&env);
    let followed: &dyn FileSystem = &files;
    env.fs.create_directory(Path::new("/db")).unwrap();
    write(&*env.fs, "/db/000007.sst", b"table");
    let path = Path::new("/db/000007.sst");
    let open = followed.open_random_access(path, IoMode::Buffered).unwrap();
    env.fs.remove(path).unwrap();
    assert_eq!(followed.list(Path::new("/db")).unwrap(), ["000007.sst"]);
    assert_eq!(followed.metadata(path).unwrap().size, 5);
    let again = followed.open_random_access(path, IoMode::Buffered).unwrap();
    assert!(Arc::ptr_eq(&open, &again));
    drop((open, again));
    assert!(followed.open_random_access(path, IoMode::Buffered).is_err());
    files.forget_closed();
    assert!(files.open.lock().is_empty());
}

#[test]
fn a_wal_is_not_in_place_once_its_name_is_gone() {
    let env = Env::memory();
    let files = FollowedFiles::new(&env);
    env.fs.create_directory(Path::new("/db")).unwrap();
    let path = Path::new("/db/000009.log");
    write(&*env.fs, "/db/000009.log", b"log");
    let wal = files.open_wal(path).unwrap();
    assert!(files.is_in_place(&*wal).unwrap());
    env.fs.remove(path).unwrap();
    assert!(!files.is_in_place(&*wal).unwrap());
}
