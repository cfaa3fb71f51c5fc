//! Varints, internal keys, wide-column entities.

use flagstone::base::coding::{
    Decoder, put_fixed32, put_fixed64, put_lps, put_varint32, put_varint64, put_varsigned64,
};
use flagstone::base::entity::{self as entities, StoredColumn};
use flagstone::base::{Comparator, InternalKey, InternalKeyBuf, InternalKeyComparator};

use super::input::{Input, ok};

/// Reads primitives in the order that the input asks for; what is read is written and read again.
pub fn coding(data: &[u8]) {
    let mut input = Input::new(data);
    let plan = input.piece();
    let mut decoder = Decoder::new(input.rest());
    for step in plan {
        let before = decoder.rest();
        let (mut out, read) = (Vec::new(), step % 8);
        let done = match read {
            0 => decoder.u8().map(|value| out.push(value)),
            1 => decoder.fixed16().map(|value| out.extend(value.to_le_bytes())),
            2 => decoder.fixed32().map(|value| put_fixed32(&mut out, value)),
            3 => decoder.fixed64().map(|value| put_fixed64(&mut out, value)),
            4 => decoder.varint32().map(|value| put_varint32(&mut out, value)),
            5 => decoder.varint64().map(|value| {
                put_varint64(&mut out, value);
                assert_eq!(
                    out.len() as u32,
                    (64 - (value | 1).leading_zeros()).div_ceil(7),
                    "the shortest form"
                );
            }),
            6 => decoder.varsigned64().map(|value| put_varsigned64(&mut out, value)),
            _ => decoder.lps().map(|value| put_lps(&mut out, value)),
        };
        if done.is_none() {
            continue;
        }
        // A varint may be padded; what it means must survive all the same.
        let taken = before.len() - decoder.rest().len();
        assert!(out.len() <= taken, "the shortest form is no longer than what was read");
        if read < 4 {
            assert_eq!(out, before[..taken]);
        }
    }
}

/// Parses two internal keys and compares them.
pub fn internal_key(data: &[u8]) {
    let mut input = Input::new(data);
    let (a, b) = (input.piece(), input.rest());
    let (Some(a), Some(b)) = (InternalKey::parse(a), InternalKey::parse(b)) else { return };
    let kind = a.value_type().expect("parsed keys have a type");
    let rebuilt = InternalKeyBuf::new(a.user_key(), a.sequence(), kind);
    assert_eq!(rebuilt.as_bytes(), a.as_bytes());
    for user in [Comparator::Bytewise, Comparator::ReverseBytewise] {
        let order = InternalKeyComparator::new(user);
        assert_eq!(order.compare(a, b), order.compare(b, a).reverse());
    }
    assert!(!format!("{a:?} {b:?}").is_empty());
}

/// Decodes a wide-column entity in both ways, and changes its default column.
pub fn entity(data: &[u8]) {
    let mut input = Input::new(data);
    let (value, stored) = (input.piece(), input.rest());
    let decoded = ok(entities::decode(stored));
    let default = ok(entities::default_column(stored));
    let Some(columns) = decoded else {
        assert!(ok(entities::with_default_column(stored, value)).is_none());
        return;
    };
    let none = StoredColumn { name: b"", value: b"", is_blob: false };
    let first = columns.first().filter(|first| first.name.is_empty()).unwrap_or(&none);
    let default = default.expect("both decoders agree");
    assert_eq!((&stored[default.range], default.is_blob), (first.value, first.is_blob));
    let encoded = entities::encode_stored(&columns);
    assert_eq!(entities::decode(&encoded).expect("what was encoded"), columns);
    let mut blobs = Vec::new();
    let visit = |index| {
        blobs.push(index);
        Ok(())
    };
    entities::visit_blobs(stored, visit).expect("a sound entity");
    let in_blobs = columns.iter().filter(|column| column.is_blob).map(|column| column.value);
    assert!(blobs.into_iter().eq(in_blobs));
    let changed = entities::with_default_column(stored, value).expect("a sound entity");
    let changed = entities::decode(&changed).expect("what was encoded");
    assert_eq!(changed[0], StoredColumn { value, ..none });
    assert_eq!(
        changed.len(),
        columns.len() + usize::from(columns.is_empty() || !columns[0].name.is_empty())
    );
}
