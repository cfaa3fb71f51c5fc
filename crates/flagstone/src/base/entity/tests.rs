use super::*;

const ENTITY: &[u8] = b"\x01\x02\x00\x02\x02c1\x01dvx";

fn column<'a>(name: &'a [u8], value: &'a [u8]) -> StoredColumn<'a> {
    StoredColumn { name, value, is_blob: false }
}

fn default_value(entity: &[u8]) -> &[u8] {
    &entity[default_column(entity).unwrap().range]
}

#[test]
fn the_specified_bytes_are_two_columns() {
    assert_eq!(decode(ENTITY).unwrap(), [column(b"", b"dv"), column(b"c1", b"x")]);
    assert_eq!(default_value(ENTITY), b"dv");
    assert_eq!(encode(&[(b"", b"dv"), (b"c1", b"x")]), ENTITY);
}

#[test]
fn columns_come_in_any_order_but_no_name_twice() {
    assert_eq!(encode_unsorted([("c1", "x"), ("", "dv")]).unwrap(), ENTITY);
    let refused = encode_unsorted([("a", "1"), ("b", "2"), ("a", "3")]).unwrap_err();
    assert!(refused.to_string().contains("two columns named 'a'"), "{refused}");
}

#[test]
fn without_a_default_column_it_is_empty() {
    let entity = encode(&[(b"c1", b"x")]);
    assert!(default_value(&entity).is_empty());
    let changed = with_default_column(&entity, b"new").unwrap();
    assert_eq!(decode(&changed).unwrap(), [column(b"", b"new"), column(b"c1", b"x")]);
    assert_eq!(decode(&encode(&[])).unwrap(), []);
    assert!(default_value(&encode(&[])).is_empty());
}

#[test]
fn damaged_bytes_are_refused_and_never_panic() {
    for end in 0..ENTITY.len() {
        assert!(decode(&ENTITY[..end]).is_err());
        assert!(default_column(&ENTITY[..end]).is_err());
    }
    for at in 0..ENTITY.len() {
        for bit in 0..8 {
            let mut damaged = ENTITY.to_vec();
            damaged[at] ^= 1 << bit;
            let (all, default) = (decode(&damaged), default_column(&damaged));
            assert_eq!(all.is_ok(), default.is_ok(), "{damaged:?}");
        }
    }
    assert!(decode(b"\x01\xff\xff\xff\xff\x0f").is_err());
    assert!(decode(b"\x01\x02\x01a\x00\x01a\x00").is_err(), "the same column twice");
}
