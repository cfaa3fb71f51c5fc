use std::sync::Arc;

use super::*;
use crate::base::{Comparator, InternalKeyComparator};
use crate::memtable::MemTableSettings;

fn table(operations: &[(u64, ValueType, &str, &str)]) -> Arc<MemTable> {
    let order = InternalKeyComparator::new(Comparator::Bytewise);
    let table = MemTable::new(order, &MemTableSettings::default());
    for (number, value_type, key, value) in operations {
        table.add(*number, *value_type, key.as_bytes(), value.as_bytes());
    }
    Arc::new(table)
}

#[test]
fn rolled_back_ranges_join() {
    let mut counting = Counting { end: 5, ..Counting::default() };
    counting.undo_from(5);
    assert!(counting.undone.is_empty(), "nothing to roll back");
    counting.undo_from(3);
    assert_eq!(*counting.undone, std::slice::from_ref(&(3..5)));
    counting.end = 9;
    assert!([1, 2, 5, 8].into_iter().all(|number| counting.counts(number)));
    assert!([3, 4, 9].into_iter().all(|number| !counting.counts(number)));
    counting.undo_from(7);
    assert_eq!(*counting.undone, [3..5, 7..9]);
    counting.undo_from(2);
    assert_eq!(*counting.undone, std::slice::from_ref(&(2..9)));
}

#[test]
fn a_cursor_shows_each_key_once_whatever_was_rolled_back() {
    use ValueType::{Deletion, Merge, Value};
    // More versions of `b` than are stepped over.
    let mut operations = vec![(1, Value, "a", "1"), (2, Deletion, "c", ""), (3, Value, "d", "x")];
    operations.extend((4..30).map(|number| (number, Value, "b", "old")));
    operations.extend([(30, Merge, "e", "+"), (31, Value, "b", "new"), (32, Value, "0", "later")]);
    let mut counting = Counting { end: 4, ..Counting::default() };
    counting.undo_from(3);
    counting.end = 32;
    let mut cursor = DeltaCursor::new(table(&operations), counting);
    let mut seen = Vec::new();
    cursor.seek_to_first();
    while let Some(key) = cursor.key() {
        seen.push((String::from_utf8(key.to_vec()).unwrap(), cursor.delta().clone()));
        cursor.next();
    }
    let put = |text: &str| Base::Put(ValueType::Value, text.into());
    let value = |text: &str| Delta { base: put(text), operands: Vec::new() };
    let deleted = Delta { base: Base::Deleted, operands: Vec::new() };
    let merged = Delta { base: Base::Below, operands: vec![b"+".to_vec()] };
    let expected = [("a", value("1")), ("b", value("new")), ("c", deleted), ("e", merged)];
    assert_eq!(seen, expected.clone().map(|(key, delta)| (key.to_string(), delta)));
    let mut back = Vec::new();
    cursor.seek_to_last();
    while let Some(key) = cursor.key() {
        back.push((String::from_utf8(key.to_vec()).unwrap(), cursor.delta().clone()));
        cursor.prev();
    }
    back.reverse();
    assert_eq!(back, seen);
    cursor.seek(b"bb");
    assert_eq!(cursor.key(), Some(&b"c"[..]));
    cursor.prev();
    assert_eq!(cursor.key(), Some(&b"b"[..]));
    cursor.next();
    assert_eq!(cursor.key(), Some(&b"c"[..]));
    cursor.seek_for_prev(b"d");
    assert_eq!(cursor.key(), Some(&b"c"[..]), "`d` was rolled back");
}
