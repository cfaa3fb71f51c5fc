use super::*;

fn write(fs: &dyn FileSystem, path: &str, text: &[u8]) {
    fs.create_writable(Path::new(path), IoMode::Buffered).unwrap().write_at(0, text).unwrap();
}

fn read(fs: &dyn FileSystem, path: &str) -> Vec<u8> {
    super::super::read_file(fs, Path::new(path), 100).unwrap()
}

#[test]
fn what_was_opened_once_stays_as_it_was() {
    let env = Env::memory();
    let held = HeldFiles::new(&env, None);
    let held: &dyn FileSystem = &held;
    env.fs.create_directory(Path::new("/db")).unwrap();
    write(&*env.fs, "/db/000007.sst", b"table");
    write(&*env.fs, "/db/CURRENT", b"old");
    write(&*env.fs, "/db/LOG", b"old");
    for path in ["/db/000007.sst", "/db/CURRENT", "/db/LOG"] {
        read(held, path);
        env.fs.remove(Path::new(path)).unwrap();
    }
    write(&*env.fs, "/db/CURRENT", b"newer");
    write(&*env.fs, "/db/LOG", b"newer");
    assert_eq!(read(held, "/db/000007.sst"), b"table");
    assert_eq!(read(held, "/db/CURRENT"), b"old");
    assert_eq!(read(held, "/db/LOG"), b"newer", "it is no part of the state");
    assert_eq!(held.metadata(Path::new("/db/000007.sst")).unwrap().size, 5);
    assert_eq!(held.list(Path::new("/db")).unwrap(), ["000007.sst", "CURRENT", "LOG"]);
}

#[test]
fn the_next_attempt_finds_anew_what_may_have_changed() {
    let env = Env::memory();
    let first = HeldFiles::new(&env, None);
    env.fs.create_directory(Path::new("/db")).unwrap();
    for path in ["/db/000007.sst", "/db/000008.blob", "/db/000009.log", "/db/CURRENT"] {
        write(&*env.fs, path, b"old");
        read(&first, path);
    }
    let second = HeldFiles::new(&env, Some(&first));
    for path in ["/db/000007.sst", "/db/000008.blob"] {
        env.fs.remove(Path::new(path)).unwrap();
    }
    for path in ["/db/000009.log", "/db/CURRENT"] {
        write(&*env.fs, path, b"newer");
        assert_eq!(read(&second, path), b"newer");
    }
    assert_eq!(read(&second, "/db/000007.sst"), b"old");
    second.seal(FileNumber(0));
    assert_eq!(read(&second, "/db/000007.sst"), b"old");
    write(&*env.fs, "/db/000010.log", b"newer");
    let listed = FileSystem::list(&second, Path::new("/db")).unwrap();
    assert_eq!(listed, ["000007.sst", "000009.log", "CURRENT"]);
    assert!(second.open_random_access(Path::new("/db/000008.blob"), IoMode::Buffered).is_err());
}
