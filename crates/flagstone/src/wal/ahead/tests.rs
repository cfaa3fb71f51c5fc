use std::thread;

use crate::env::FileSystem;
use crate::env::os::OsFileSystem;
use crate::wal::test_support::{NUMBER, contents_of, read_all};
use crate::wal::{FetchAhead, Writer, WriterOptions};

/// A log of which the first record has made that the next part is asked for; `None` where nothing
/// can be mapped.
fn half_full(directory: &tempfile::TempDir) -> Option<(Writer, FetchAhead)> {
    let file = OsFileSystem.create_log(&directory.path().join("log")).unwrap();
    if !file.is_mappable() {
        return None;
    }
    let options = WriterOptions { recyclable: true, ..WriterOptions::default() };
    let mut writer = Writer::of_log(file, NUMBER, options).unwrap();
    writer.map(4 << 20).unwrap();
    (0..3).for_each(|_| writer.add_record(&[1; 30_000]).unwrap());
    let ahead = writer.fetch_ahead().expect("more than half of the first window is full");
    assert!(writer.fetch_ahead().is_none(), "it is asked for once");
    Some((writer, ahead))
}

#[test]
fn records_go_on_in_what_was_made_ahead() {
    let directory = tempfile::tempdir().unwrap();
    let Some((mut writer, ahead)) = half_full(&directory) else { return };
    let first = writer.mapped_bytes();
    ahead.fetch();
    (0..3).for_each(|_| writer.add_record(&[2; 30_000]).unwrap());
    assert!(writer.mapped_bytes() > first);
    let (records, _) = read_all(&contents_of(&**writer.file()));
    assert_eq!(records, [vec![vec![1; 30_000]; 3], vec![vec![2; 30_000]; 3]].concat());
}

/// Zeros behind its end would make the log longer, or lie over a record.
#[test]
fn what_is_made_too_late_changes_nothing() {
    for cuts in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let Some((mut writer, ahead)) = half_full(&directory) else { return };
        writer.add_record(&[2; 600_000]).unwrap();
        if cuts {
            writer.cut().unwrap();
        }
        let before = contents_of(&**writer.file());
        ahead.fetch();
        assert!(contents_of(&**writer.file()) == before);
    }
}

/// What was to be made ahead lay over a record that had been written by a system call.
#[test]
fn nothing_is_made_ahead_where_a_record_lies() {
    let directory = tempfile::tempdir().unwrap();
    let Some((mut writer, ahead)) = half_full(&directory) else { return };
    drop(ahead);
    writer.add_record(&[2; 200_000]).unwrap();
    if let Some(ahead) = writer.fetch_ahead() {
        ahead.fetch();
    }
    let (records, _) = read_all(&contents_of(&**writer.file()));
    assert!(records == [vec![vec![1; 30_000]; 3], vec![vec![2; 200_000]]].concat());
}

/// Whoever makes a part is slow, or never comes round to it.
#[test]
fn whenever_the_next_part_is_made_the_log_is_right() {
    for seed in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let Some((mut writer, ahead)) = half_full(&directory) else { return };
        let mut random = fastrand::Rng::with_seed(seed);
        let mut records = vec![vec![1; 30_000]; 3];
        let mut asked = vec![ahead];
        thread::scope(|scope| {
            for _ in 0..200 {
                let size = [100, 3_000, 32_000, 50_000][random.usize(0..4)];
                records.push(vec![random.u8(..); size]);
                if random.u8(0..8) == 0 {
                    writer.gather_record(records.last().unwrap()).unwrap();
                } else {
                    writer.add_record(records.last().unwrap()).unwrap();
                }
                asked.extend(writer.fetch_ahead());
                if random.u8(0..4) == 0
                    && let Some(ahead) = asked.pop()
                {
                    scope.spawn(|| ahead.fetch());
                }
            }
            writer.cut().unwrap();
        });
        asked.into_iter().for_each(FetchAhead::fetch);
        assert_eq!(writer.file().size().unwrap(), writer.offset());
        let (read, damage) = read_all(&contents_of(&**writer.file()));
        assert!(read == records && damage.is_empty(), "seed {seed}");
    }
}
