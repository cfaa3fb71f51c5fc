use super::*;

#[test]
fn a_snapshot_lives_until_its_last_clone() {
    let list = SnapshotList::new();
    list.published.store(7, Ordering::Release);
    let first = list.take(100);
    let second = list.take(200);
    list.published.store(9, Ordering::Release);
    let newer = list.take(300);
    let oldest = list.oldest().unwrap();
    assert_eq!(
        (oldest.sequence, oldest.since_unix_seconds, oldest.taken_at.file()),
        (7, 100, file!())
    );
    assert_eq!((list.sequences(), list.count()), (vec![7, 9], 3));
    drop(first);
    assert_eq!(list.oldest().unwrap().since_unix_seconds, 200, "the first of that number is gone");
    assert_eq!(list.sequences(), [7, 9]);
    let clone = second.clone();
    drop(second);
    assert_eq!(list.sequences(), [7, 9]);
    drop((clone, newer));
    assert_eq!((list.sequences(), list.oldest(), list.released()), (vec![], None, 9));
}
