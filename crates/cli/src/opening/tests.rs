use testkit::HandClock;

use super::*;

#[test]
fn an_opening_is_shown_from_its_second_second_on() {
    let clock = Arc::new(HandClock::at(1_000));
    let opening = Opening::begins(clock.clone());
    let mut progress = OpenProgress::default();
    (progress.files_checked, progress.files_total) = (1000, 3000);
    assert_eq!(opening.look(&progress), None);
    clock.advance(1);
    let files = Seen { stage: Stage::Files, done: 1000, total: 3000, message: String::new() };
    assert_eq!(opening.look(&progress), Some(files));

    (progress.wal_bytes_replayed, progress.wal_bytes_total) = (5, 9);
    let seen = opening.look(&progress).unwrap();
    assert_eq!((seen.stage, seen.done, seen.total), (Stage::Wals, 5, 9));
    assert_eq!(seen.message, "replaying the WAL");
    (progress.tables_written, progress.blobs_checked) = (2, 70);
    let seen = opening.look(&progress).unwrap();
    assert_eq!(seen.message, "replaying the WAL, 2 tables written, 70 values checked");
}
