use super::*;
use crate::Survival;
use flagstone::base::SubCode;
use flagstone::env::{IoMode, WritableFile, read_file};

fn disk_with_a_file() -> (CrashFs, FaultFs, Arc<dyn WritableFile>, &'static Path) {
    let disk = CrashFs::new();
    let fs = FaultFs::above(&disk);
    let (directory, path) = (Path::new("/d"), Path::new("/d/f"));
    fs.create_directory(directory).unwrap();
    let file = fs.create_writable(path, IoMode::Buffered).unwrap();
    fs.sync_directory(directory).unwrap();
    (disk, fs, file, path)
}

#[test]
fn the_second_write_is_torn_and_the_disk_fills_until_it_is_healed() {
    let (_, fs, file, path) = disk_with_a_file();
    fs.plan(Plan::Once { at: 1, injection: Injection::Io });
    file.write_at(0, b"ab").unwrap();
    assert!(file.write_at(2, b"cd").is_err());
    assert_eq!(file.size().unwrap(), 3);
    let (call, injection) = (Call::Write, Injection::Io);
    let failure = Failure { call, path: path.to_path_buf(), injection, takes_space: true };
    assert_eq!(fs.failed(), [failure]);

    fs.plan(Plan::Full { at: 0 });
    assert_eq!(file.allocate(100, true).unwrap_err().subcode(), SubCode::NoSpace);
    assert_eq!(file.read_at(0, &mut [0; 2]).unwrap(), 2);
    fs.heal();
    file.write_at(2, b"cd").unwrap();
}

/// A file system that reserves space for a file gives it to nobody else: nothing else is to be
/// expected of a full disk.
#[test]
fn a_full_disk_has_what_was_reserved() {
    let (_, fs, file, _) = disk_with_a_file();
    file.allocate(10, true).unwrap();
    fs.plan(Plan::Full { at: 0 });
    file.write_at(5, b"abcde").unwrap();
    assert_eq!(file.write_at(5, b"abcdef").unwrap_err().subcode(), SubCode::NoSpace);
    file.truncate(5).unwrap();
    assert!(file.write_at(5, b"a").is_err());
}

#[test]
fn a_fault_lasts_for_its_kind_of_call_or_for_all_that_change() {
    let (_, fs, file, path) = disk_with_a_file();
    fs.plan(Plan::Lasting { at: 1, injection: Injection::Io });
    file.truncate(2).unwrap();
    assert!(file.write_at(0, b"a").is_err() && file.write_at(0, b"a").is_err());
    file.truncate(2).unwrap();
    fs.plan(Plan::ReadOnly { at: 0 });
    assert!(file.truncate(1).is_err() && fs.remove(path).is_err());
    assert_eq!(file.size().unwrap(), 2);
    fs.plan(Plan::Twice { at: 0, injection: Injection::Late, gap: 2 });
    assert!(file.truncate(7).is_err());
    assert_eq!(file.size().unwrap(), 7, "it was done");
    assert!(file.size().is_err());
}

#[test]
#[should_panic(expected = "synced again")]
fn a_failed_sync_loses_the_data_and_must_not_be_tried_again() {
    let (disk, fs, file, path) = disk_with_a_file();
    file.write_at(0, b"ab").unwrap();
    fs.plan(Plan::Once { at: 0, injection: Injection::Io });
    assert!(file.sync().is_err());
    let after = disk.after_crash(disk.changes(), Survival::Kept);
    assert_eq!(read_file(&after, path, 10).unwrap(), b"");
    let _ = file.sync();
}
