use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use super::super::os::{OsFileSystem, open_unreadable};
use super::super::{Env, FileSystem, IoMode, RandomAccessFile};
use super::*;

/// What came of each place, as text: its bytes, or the error.
fn outcomes(
    places: &[Place<'_>],
    read: impl FnOnce(&mut dyn FnMut(usize, Result<&[u8]>)),
) -> Vec<String> {
    let mut outcomes = vec![None; places.len()];
    read(&mut |at, bytes| {
        let text = match bytes {
            Ok(bytes) => {
                format!("{} bytes, {:x}", bytes.len(), crate::base::checksum::crc32c(bytes))
            }
            Err(error) => format!("{error} (offset {:?})", error.offset()),
        };
        assert!(outcomes[at].replace(text).is_none(), "place {at} came twice");
    });
    outcomes.into_iter().map(|outcome| outcome.expect("every place comes")).collect()
}

fn files(directory: &Path) -> Vec<Arc<dyn RandomAccessFile>> {
    let content: Vec<u8> = (0..700_007u32).map(|n| (n % 251) as u8).collect();
    let path = directory.join("f");
    let written = OsFileSystem.create_writable(&path, IoMode::Buffered).unwrap();
    written.write_at(0, &content).unwrap();
    let fs = Env::memory().fs;
    fs.create_directory(Path::new("/d")).unwrap();
    let memory = fs.create_writable(Path::new("/d/f"), IoMode::Buffered).unwrap();
    memory.write_at(0, &content).unwrap();
    let direct = OsFileSystem.open_random_access(&path, IoMode::Direct).unwrap();
    vec![written, direct, memory, open_unreadable(&path)]
}

#[test]
fn all_ways_of_reading_give_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path());
    let mut random = fastrand::Rng::with_seed(1);
    for count in [0, 1, 2, 3, 64, 65, 300] {
        let places: Vec<Place<'_>> = (0..count)
            .map(|_| {
                let file = &*files[random.usize(..files.len())];
                // Some at and behind the end, some of no bytes, some too long to be shared.
                let offset =
                    random.choice([0, 4096, 8191, 699_000, 700_006, 700_007, 900_000]).unwrap();
                let length = random.choice([0, 1, 100, 4096, 5000, 20_000, 400_000]).unwrap();
                Place { file, offset: offset + random.u64(..2), length }
            })
            .collect();
        let together = outcomes(&places, |take| {
            read_together(&places, &mut |at, bytes| take(at, bytes));
        });
        let all: Vec<usize> = (0..count).collect();
        let alone =
            outcomes(&places, |take| one_by_one(&places, &all, &mut |at, bytes| take(at, bytes)));
        assert_eq!(together, alone);
        assert!(count < 64 || alone.iter().any(|outcome| outcome.contains("Bad file descriptor")));
    }
}

#[test]
fn one_that_gives_up_leaves_nothing_under_way() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path());
    let places: Vec<_> =
        (0..100).map(|at| Place { file: &*files[0], offset: at * 5000, length: 5000 }).collect();
    for _ in 0..3 {
        let given_up = catch_unwind(AssertUnwindSafe(|| {
            read_together(&places, &mut |_, _| panic!("enough"));
        }));
        assert!(given_up.is_err());
    }
    let mut nested = 0;
    read_together(&places[..10], &mut |_, _| {
        read_together(&places[10..20], &mut |_, bytes| nested += usize::from(bytes.is_ok()));
    });
    assert_eq!(nested, 100);
}
