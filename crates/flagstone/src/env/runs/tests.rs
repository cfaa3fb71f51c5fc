use super::*;
use crate::env::os::OsFileSystem;
use crate::env::{FileSystem, IoMode};

#[test]
fn zeros_are_written_up_to_the_end_of_a_run() {
    let mut runs = PageRuns::default();
    assert_eq!(runs.wanted(&(0..100), PAGE_RUN), Some(0..PAGE_RUN));
    assert_eq!(
        runs.wanted(&(PAGE_RUN - 1..PAGE_RUN + 1), PAGE_RUN),
        Some(PAGE_RUN - 1..2 * PAGE_RUN)
    );
    runs.note_sync(5);
    assert_eq!(
        runs.wanted(&(PAGE_RUN..PAGE_RUN + 9), PAGE_RUN),
        None,
        "who syncs once syncs again"
    );
    assert_eq!(
        runs.wanted(&(PAGE_RUN + 5..PAGE_RUN + 9), PAGE_RUN),
        Some(PAGE_RUN + 5..2 * PAGE_RUN)
    );
}

#[test]
fn runs_are_as_long_as_what_is_appended_has_use_for() {
    let run = |kib: u64, at_mib: u64| {
        let start = at_mib << 20;
        page_run(&(start..start + (kib << 10))).map(|run| run >> 10)
    };
    let runs = [1, 4, 9, 17, 36, 65, 127].map(|kib| run(kib, 8).unwrap());
    assert_eq!(runs, [32, 32, 32, 64, 128, 128, 128]);
    assert_eq!(
        [128, 1 << 20].map(|kib| run(kib, 8)),
        [None, None],
        "they make large pages by themselves"
    );
    let little = [(4, 0), (36, 0), (36, 1)].map(|(kib, mib)| run(kib, mib));
    assert_eq!(little, [Some(32), None, Some(128)], "in a small file little goes ahead");
}

#[test]
fn what_is_zeroed_is_not_zeroed_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let file = OsFileSystem.create_writable(&path, IoMode::Buffered).unwrap();
    let mut runs = PageRuns::default();
    let wanted = runs.wanted(&(PAGE_RUN + 5..PAGE_RUN + 9), PAGE_RUN).unwrap();
    runs.write(&*file, wanted, PAGE_RUN).unwrap();
    assert_eq!(file.size().unwrap(), 2 * PAGE_RUN);
    assert_eq!(runs.wanted(&(PAGE_RUN + 9..2 * PAGE_RUN), PAGE_RUN), None);
    let across = 2 * PAGE_RUN - 5..2 * PAGE_RUN + 5;
    assert_eq!(runs.wanted(&across, PAGE_RUN), Some(2 * PAGE_RUN..3 * PAGE_RUN));
}

#[test]
fn a_file_that_is_synced_often_gets_none() {
    let mut runs = PageRuns::default();
    runs.note_sync(0);
    for at in (0..9 * PAGE_RUN).step_by(1 << 14) {
        runs.note_sync(at);
        assert_eq!(runs.wanted(&(at..at + 4096), PAGE_RUN), None);
    }
}
