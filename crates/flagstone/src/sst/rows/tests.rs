use super::*;
use crate::base::ValueType;

fn row(versions: &[(u64, ValueType, &str)]) -> Row {
    let mut builder = BlockBuilder::new(VERSIONS_MAX, None);
    for &(sequence, kind, value) in versions {
        let key = InternalKeyBuf::new(b"key", sequence, kind);
        builder.add(key.as_key().as_bytes(), value.as_bytes());
    }
    Row(Block::small(builder.finish()).expect("a block"))
}

fn seen(row: &Row, snapshot: u64, at_most: usize) -> Vec<(u64, String)> {
    let mut seen = Vec::new();
    let target = InternalKeyBuf::for_seek(b"key", snapshot);
    row.visit(target.as_key(), |sequence, _, value| {
        seen.push((sequence, String::from_utf8(value.bytes().to_vec()).expect("text")));
        Ok(if seen.len() < at_most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })
    .expect("a sound row");
    seen
}

#[test]
fn a_row_answers_every_snapshot() {
    let row =
        row(&[(9, ValueType::Merge, "c"), (7, ValueType::Merge, "b"), (4, ValueType::Value, "a")]);
    let all = [(9, "c".to_string()), (7, "b".to_string()), (4, "a".to_string())];
    assert_eq!(seen(&row, 100, 9), all);
    assert_eq!(seen(&row, 9, 2), all[..2]);
    assert_eq!(seen(&row, 8, 9), all[1..]);
    assert_eq!(seen(&row, 4, 9), all[2..]);
    assert_eq!(seen(&row, 3, 9), []);
}

#[test]
fn a_row_of_another_key_with_the_same_hash_is_not_taken() {
    let row = row(&[(1, ValueType::Value, "a")]);
    assert!(row.is_of(b"key"));
    assert!(!row.is_of(b"ke") && !row.is_of(b"other"));
}

#[test]
fn a_small_row_takes_little_memory() {
    let row = row(&[(1, ValueType::Value, "value")]);
    assert!(row.0.memory_usage() < 200, "{}", row.0.memory_usage());
}
