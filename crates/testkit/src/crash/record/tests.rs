use super::*;
use flagstone::env::{IoMode, read_file};

#[test]
fn a_dead_process_changes_nothing_and_the_next_one_goes_on() {
    let fs = CrashFs::new();
    let (directory, path) = (Path::new("/d"), Path::new("/d/f"));
    fs.create_directory(directory).unwrap();
    let file = fs.create_writable(path, IoMode::Buffered).unwrap();
    file.write_at(0, b"one").unwrap();
    let next = fs.kill();
    assert!(file.write_at(3, b"two").is_err() && fs.remove(path).is_err());
    let file = next.reopen_writable(path).unwrap();
    file.write_at(3, b"new").unwrap();
    assert_eq!(read_file(&next, path, 10).unwrap(), b"onenew");
    assert_eq!(next.changes(), 4);
    assert_eq!(next.describe(4), "write 3 bytes at 3 of file 0 (/d/f)");
}

/// Such writes were left out, as they change nothing that the process sees.
#[test]
fn what_a_failed_sync_has_lost_is_on_the_disk_once_it_is_written_again() {
    let fs = CrashFs::new();
    let (directory, path) = (Path::new("/d"), Path::new("/d/f"));
    fs.create_directory(directory).unwrap();
    fs.sync_directory(Path::new("/")).unwrap();
    let file = fs.create_writable(path, IoMode::Buffered).unwrap();
    fs.sync_directory(directory).unwrap();
    file.write_at(0, b"one").unwrap();
    fs.lose_unsynced(path);
    file.sync().unwrap();
    let found = || read_file(&fs.after_crash(fs.changes(), Survival::Kept), path, 10).unwrap();
    assert_eq!(found(), b"");
    file.write_at(0, b"one").unwrap();
    file.sync().unwrap();
    assert_eq!(found(), b"one");
}

#[test]
fn only_what_was_synced_is_sure_to_survive() {
    let fs = CrashFs::new();
    let (directory, path, new) = (Path::new("/d"), Path::new("/d/f"), Path::new("/d/g"));
    fs.create_directory(directory).unwrap();
    fs.sync_directory(Path::new("/")).unwrap();
    let file = fs.create_writable(path, IoMode::Buffered).unwrap();
    file.write_at(0, b"one").unwrap();
    file.sync().unwrap();
    let nameless = fs.changes();
    fs.sync_directory(directory).unwrap();
    file.write_at(3, b"two").unwrap();
    fs.rename(path, new).unwrap();
    let end = fs.changes();

    assert!(fs.after_crash(nameless, Survival::Lost).metadata(path).unwrap_err().is_not_found());
    let lost = fs.after_crash(end, Survival::Lost);
    assert_eq!(read_file(&lost, path, 10).unwrap(), b"one");
    let kept = fs.after_crash(end, Survival::Kept);
    assert_eq!(read_file(&kept, new, 10).unwrap(), b"onetwo");
    assert!(kept.metadata(path).is_err());
    let outcomes: std::collections::BTreeSet<_> = (0..100)
        .map(|seed| {
            let fs = fs.after_crash(end, Survival::Random(seed));
            let renamed = fs.metadata(new).is_ok();
            let survivor = if renamed { new } else { path };
            (renamed, read_file(&fs, survivor, 10).unwrap())
        })
        .collect();
    // With either name: the old bytes, the new ones, the new length with the old bytes and zeros.
    assert_eq!(outcomes.len(), 6);
}

#[test]
fn a_sync_after_a_failed_one_brings_nothing_back() {
    let fs = CrashFs::new();
    let (directory, path) = (Path::new("/d"), Path::new("/d/f"));
    fs.create_directory(directory).unwrap();
    fs.sync_directory(Path::new("/")).unwrap();
    let file = fs.create_writable(path, IoMode::Buffered).unwrap();
    fs.sync_directory(directory).unwrap();
    file.write_at(0, b"one").unwrap();
    fs.lose_unsynced(path);
    fs.rename(path, Path::new("/d/g")).unwrap();
    fs.lose_names(directory);
    file.write_at(3, b"two").unwrap();
    file.sync().unwrap();
    fs.sync_directory(directory).unwrap();
    let after = fs.after_crash(fs.changes(), Survival::Kept);
    assert_eq!(read_file(&after, path, 10).unwrap(), b"\0\0\0two");
}

#[test]
fn a_file_whose_name_was_lost_can_still_be_renamed() {
    let fs = CrashFs::new();
    fs.create_directory(Path::new("/d/e")).unwrap();
    fs.sync_directory(Path::new("/")).unwrap();
    fs.sync_directory(Path::new("/d")).unwrap();
    let (path, new) = (Path::new("/d/f"), Path::new("/d/e/g"));
    let file = fs.create_writable(path, IoMode::Buffered).unwrap();
    fs.lose_names(Path::new("/d"));
    file.write_at(0, b"one").unwrap();
    file.sync().unwrap();
    fs.rename(path, new).unwrap();
    fs.sync_directory(Path::new("/d/e")).unwrap();
    let after = fs.after_crash(fs.changes(), Survival::Lost);
    assert_eq!(read_file(&after, new, 10).unwrap(), b"one");
}

#[test]
fn what_lies_in_a_lost_directory_is_lost() {
    let fs = CrashFs::new();
    fs.create_directory(Path::new("/a/b")).unwrap();
    let path = Path::new("/a/b/f");
    fs.create_writable(path, IoMode::Buffered).unwrap().sync().unwrap();
    fs.sync_directory(Path::new("/a/b")).unwrap();
    fs.sync_directory(Path::new("/a")).unwrap();
    let end = fs.changes();
    assert!(fs.after_crash(end, Survival::Lost).files().is_empty());
    assert!(fs.after_crash(end, Survival::Kept).metadata(path).is_ok());
}

#[test]
fn pages_of_one_write_may_be_lost_one_by_one() {
    let fs = CrashFs::new();
    fs.create_directory(Path::new("/d")).unwrap();
    let path = Path::new("/d/f");
    let file = fs.create_writable(path, IoMode::Buffered).unwrap();
    fs.sync_directory(Path::new("/d")).unwrap();
    fs.sync_directory(Path::new("/")).unwrap();
    file.write_at(0, &[1; 8192]).unwrap();
    let has_hole = |seed| {
        let after = fs.after_crash(fs.changes(), Survival::Random(seed));
        let bytes = read_file(&after, path, 10_000).unwrap();
        bytes.len() == 8192 && bytes[0] == 0 && bytes[8191] == 1
    };
    assert!((0..100).any(has_hole));
}
