#![expect(clippy::disallowed_methods, reason = "other programs read and write lock files")]

use super::*;
use crate::env::os::OsFileSystem;
use crate::env::{FileSystem, IoMode};

/// A lock file in a directory of its own, which is removed at the end.
struct Scratch {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Scratch {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { path: directory.path().join("LOCK"), _directory: directory }
    }

    fn open(&self) -> File {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.path)
            .unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap()
    }
}

const ALL_MEANS: [Means; 2] = [Means::Description, Means::Record];

fn exclusive(path: &Path, means: Means) -> Result<OsLock> {
    lock(path, Share::Exclusive, means)
}

/// A record lock as RocksDB takes it, of this process.
fn try_record_lock(file: &File) -> bool {
    rustix::fs::fcntl_lock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[test]
fn a_lock_is_held_once() {
    for means in ALL_MEANS {
        let scratch = Scratch::new();
        let first = exclusive(&scratch.path, means).unwrap();
        let error = exclusive(&scratch.path, means).err().expect("the second lock must fail");
        assert_eq!((error.code(), error.subcode()), (Code::Busy, SubCode::LockHeld));
        assert!(error.to_string().contains("another handle of this process"), "{error}");
        drop(first);
        exclusive(&scratch.path, means).unwrap();
    }
}

/// The process had it twice, until the first one was closed: then it had none.
#[test]
fn a_lock_with_two_names_is_held_once() {
    for means in ALL_MEANS {
        let scratch = Scratch::new();
        let other = scratch.path.with_extension("of a copy");
        let first = exclusive(&scratch.path, means).unwrap();
        OsFileSystem.link(&scratch.path, &other).unwrap();
        for lock in [OsFileSystem.lock(&other), OsFileSystem.lock_for_reading(&other)] {
            assert_eq!(
                lock.err().expect("it is held under another name").subcode(),
                SubCode::LockHeld
            );
        }
        drop(first);
        OsFileSystem.lock(&other).unwrap();
    }
}

/// A program that copied its own database's directory had its lock no longer.
#[test]
fn closing_another_descriptor_of_the_file_keeps_the_lock() {
    let scratch = Scratch::new();
    let other = scratch.path.with_extension("of a copy");
    for share in [Share::Exclusive, Share::Shared] {
        drop(scratch.open());
        let held = lock(&scratch.path, share, Means::Description).unwrap();
        OsFileSystem.link(&scratch.path, &other).unwrap();
        for name in [&scratch.path, &other] {
            drop(OsFileSystem.open_random_access(name, IoMode::Buffered).unwrap());
            fs::read(name).unwrap();
        }
        // Both kinds of locks are refused, to this process too, and that changes nothing.
        for _ in 0..2 {
            let file = scratch.open();
            assert!(!try_record_lock(&file));
            assert_eq!(description_lock::take(&file, Share::Exclusive), Err(Errno::AGAIN));
        }
        drop(held);
        assert!(try_record_lock(&scratch.open()));
        fs::remove_file(&other).unwrap();
    }
}

/// Where there is nothing better, at least the engine does not give it up.
#[test]
fn a_file_with_a_record_lock_is_not_opened() {
    let scratch = Scratch::new();
    let held = exclusive(&scratch.path, Means::Record).unwrap();
    let other = scratch.path.with_extension("of a copy");
    OsFileSystem.link(&scratch.path, &other).unwrap();
    for name in [&scratch.path, &other] {
        let error = OsFileSystem
            .open_random_access(name, IoMode::Buffered)
            .err()
            .expect("it would release the lock");
        assert!(error.to_string().contains("reading it would release the lock"), "{error}");
        assert_eq!(error.path(), Some(name.as_path()));
    }
    drop(held);
    OsFileSystem.open_random_access(&other, IoMode::Buffered).unwrap();
}

/// RocksDB in this process: the attempt failed, and as it closed its descriptor, RocksDB's lock was
/// gone.
#[test]
fn an_attempt_leaves_a_record_lock_of_another_library() {
    let scratch = Scratch::new();
    let (rocksdb, looking) = (scratch.open(), scratch.open());
    assert!(try_record_lock(&rocksdb));
    for _ in 0..3 {
        for lock in [OsFileSystem.lock(&scratch.path), OsFileSystem.lock_for_reading(&scratch.path)]
        {
            let error = lock.err().expect("RocksDB has it");
            assert_eq!((error.code(), error.subcode()), (Code::Busy, SubCode::LockHeld));
            assert!(
                error.to_string().contains("in use by another library of this process"),
                "{error}"
            );
        }
        let holder = description_lock::holder(&looking).unwrap().expect("it is still locked");
        assert_eq!(holder.process.unsigned_abs(), process::id());
    }
    let id = id_of(&looking.metadata().unwrap());
    let kept = TABLE.lock().kept.iter().filter(|kept| kept.id == id).count();
    assert_eq!(kept, 2, "one of each share");
    drop(rocksdb);
    let held = OsFileSystem.lock(&scratch.path).unwrap();
    assert!(!try_record_lock(&looking), "RocksDB is kept out");
    drop(held);
    assert!(try_record_lock(&looking));
}

/// What a forked child does with a lock that it has inherited: a duplicate is a descriptor of the
/// same open file.
#[test]
fn only_the_process_that_took_a_lock_releases_it() {
    let scratch = Scratch::new();
    let taken = || description_lock::take(&scratch.open(), Share::Exclusive);

    let parents = exclusive(&scratch.path, Means::Description).unwrap();
    let inherited = parents.file.as_ref().unwrap().try_clone().unwrap();
    let childs = OsLock {
        file: Some(inherited),
        id: (0, 0),
        means: Means::Description,
        share: Share::Exclusive,
        process: process::id() + 1,
    };
    let text = scratch.text();
    drop(childs);
    assert_eq!(taken(), Err(Errno::AGAIN), "the child has taken the lock from its parent");
    assert_eq!(scratch.text(), text);

    // A child that lives on does not keep what its parent has released.
    let _inherited = parents.file.as_ref().unwrap().try_clone().unwrap();
    drop(parents);
    assert_eq!(taken(), Ok(()));
}

#[test]
fn a_program_that_is_started_does_not_inherit_the_lock() {
    let scratch = Scratch::new();
    for means in ALL_MEANS {
        let held = exclusive(&scratch.path, means).unwrap();
        let flags = rustix::io::fcntl_getfd(held.file.as_ref().unwrap()).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
}

#[test]
fn the_file_says_who_holds_it() {
    for means in ALL_MEANS {
        let scratch = Scratch::new();
        // What a process that was killed has left is longer.
        fs::write(&scratch.path, [b'x'; 1000]).unwrap();
        let held = exclusive(&scratch.path, means).unwrap();
        let (name, number) = (name_of(process::id()).unwrap(), process::id());
        assert_eq!(scratch.text(), format!("{name}, process {number}\n"));
        drop(held);
        assert_eq!(scratch.text(), "");
        // A reader may not write, and does not.
        fs::write(&scratch.path, "x").unwrap();
        drop(lock(&scratch.path, Share::Shared, means).unwrap());
        assert_eq!(scratch.text(), "x");
    }
}

#[test]
fn the_error_says_who_holds_the_lock() {
    let scratch = Scratch::new();
    for (share, text, said) in [
        (Share::Exclusive, "writer, process 17\n", "in use by writer, process 17;"),
        (Share::Exclusive, "", "in use by another process;"),
        (Share::Shared, "writer, process 17\n", "in use by another process that only reads it;"),
    ] {
        let other = scratch.open();
        description_lock::take(&other, share).unwrap();
        fs::write(&scratch.path, text).unwrap();
        for means in ALL_MEANS {
            let error = exclusive(&scratch.path, means).err().expect("it is locked");
            assert!(error.to_string().contains(said), "{error}");
            assert_eq!(scratch.text(), text);
        }
    }
}

#[test]
fn any_text_in_a_lock_file_is_survived() {
    let named = |name: &str, number| Some(Holder::Named(name.to_string(), number));
    let long = format!("{}, process 5", "n".repeat(200));
    let cases: [(&[u8], Option<Holder>); 14] = [
        (b"flagstone, process 12\n", named("flagstone", 12)),
        (b"a, process 7, process 12", named("a, process 7", 12)),
        (b", process 12\n", Some(Holder::Numbered(12))),
        (b"a\x1b[31m\nb, process 12\n", named("a\\u{1b}[31m\\nb", 12)),
        (b"\xff, process 12\n", named("\u{fffd}", 12)),
        (long.as_bytes(), named(&"n".repeat(NAME_MAX), 5)),
        (b"", None),
        (b"flagstone", None),
        (b"flagstone, process ", None),
        (b"flagstone, process 0", None),
        (b"flagstone, process -1", None),
        (b"flagstone, process +1", None),
        (b"flagstone, process 99999999999", None),
        (b"flagstone, process 1\0", None),
    ];
    for (text, expected) in cases {
        assert_eq!(Holder::parse(text), expected, "{}", text.escape_ascii());
    }
    let scratch = Scratch::new();
    fs::write(&scratch.path, vec![b'n'; 10_000]).unwrap();
    assert_eq!(Holder::written_in(&scratch.open()), Holder::Unknown);
}
