//! Tables with values that lie beside their blocks.

use super::*;

fn embedding() -> TableBuilderSettings {
    TableBuilderSettings { embedded_from: Some(30), ..settings(CompressionType::None, 7) }
}

/// A table of such values, two of each three beside the blocks.
fn of_values(keys: u64) -> Vec<u8> {
    let value = |random: &mut fastrand::Rng| -> Vec<u8> {
        let size = if random.u8(..).is_multiple_of(3) { 10 } else { 50 };
        (0..size).map(|_| random.u8(b'a'..b'f')).collect()
    };
    table_of(embedding(), keys, value)
}

/// Where the first value beside the blocks lies, of a table that begins with one.
fn first_value(bytes: &[u8]) -> usize {
    assert!(bytes[..50].iter().all(u8::is_ascii_lowercase));
    10
}

#[test]
fn a_sound_table_gives_its_values() {
    let bytes = of_values(200);
    let remains = survey(&bytes);
    assert!(remains.faults.is_empty() && remains.harmless.is_empty(), "{:?}", remains.faults);
    let found = entries(&remains);
    assert_eq!((remains.entries, found.len()), (200, 200));
    let is_value = |(key, value): &(Vec<u8>, Vec<u8>)| {
        let key = InternalKey::parse(key).unwrap();
        key.value_type() == Some(ValueType::Value) && [10, 50].contains(&value.len())
    };
    assert!(found.iter().all(is_value));
}

/// The others of its block come out.
#[test]
fn a_damaged_value_costs_its_entry() {
    let mut bytes = of_values(200);
    let sound = entries(&survey(&bytes));
    let at = first_value(&bytes);
    bytes[at] ^= 0x10;
    let remains = survey(&bytes);
    assert_eq!((remains.entries, remains.faults.len()), (199, 1), "{:?}", remains.faults);
    let fault = &remains.faults[0];
    assert_eq!(fault.error.offset(), Some(0), "{}", fault.error);
    let lost = sound.iter().position(|(_, value)| value.len() == 50).unwrap();
    let (before, lost_key) = fault.key_range.clone().unwrap();
    assert_eq!(lost_key, sound[lost].0[..8]);
    assert!(before < lost_key);
    let mut left = sound;
    left.remove(lost);
    assert_eq!(entries(&remains), left);
}

#[test]
fn damaged_values_in_a_row_are_told_together() {
    let all = TableBuilderSettings { block_size: 1 << 20, ..embedding() };
    let mut bytes = table_of(all, 100, |_| vec![b'v'; 50]);
    // Of ten records, each with its trailer.
    (0..10).for_each(|n| bytes[n * 55] ^= 0x10);
    let remains = survey(&bytes);
    assert_eq!((remains.entries, remains.faults.len()), (90, 1), "{:?}", remains.faults);
    let told = remains.faults[0].error.to_string();
    assert!(told.contains("the first of 10 damaged values in a row"), "{told}");
    assert_eq!(entries(&remains).len(), 90);
}

/// The number of an ingested table, of which nothing is known, is given later.
#[test]
fn a_lost_value_stays_lost_when_the_table_is_dated() {
    let file = file_of(b"");
    let mut builder = TableBuilder::new(file.clone(), embedding()).unwrap();
    for key in ["a", "b", "c"] {
        let key = InternalKeyBuf::new(key.as_bytes(), 0, ValueType::Value);
        builder.add(key.as_key(), &[b'v'; 50]).unwrap();
    }
    let mut bytes = vec![0; builder.finish().unwrap().size as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes[60] ^= 0x10;
    let own =
        bytes.windows(18).rposition(|window| window == b"data.block.restart").expect("properties");
    bytes[own] ^= 0x10;
    let mut remains = Arc::into_inner(survey(&bytes)).unwrap();
    assert!(remains.properties.is_none());
    remains.date(77);
    let found = entries(&Arc::new(remains));
    let keys: Vec<_> = found.iter().map(|(key, _)| key[0]).collect();
    assert_eq!(keys, [b'a', b'c']);
    assert!(found.iter().all(|(key, _)| InternalKey::parse(key).unwrap().sequence() == 77));
}

/// Without the index, and also without the properties, all comes out that is intact.
#[test]
fn values_come_out_where_the_index_is_lost() {
    let sound = of_values(200);
    let whole = entries(&survey(&sound));
    for parts in [&["rocksdb.index"][..], &["rocksdb.index", "rocksdb.properties"]] {
        let mut bytes = sound.clone();
        let metaindex = super::super::read_metaindex(&survey(&sound).source, true).unwrap();
        for (name, handle) in metaindex {
            if parts.contains(&name.as_str()) {
                bytes[handle.offset as usize + 8] ^= 0x10;
            }
        }
        assert_eq!(entries(&survey(&bytes)), whole, "{parts:?}");
    }
}

/// A value is what somebody has written: also a block of entries, which then looks like one of the
/// table's own.
#[test]
fn a_value_that_is_a_block_is_none_of_the_table() {
    let inner = table(settings(CompressionType::None, 7), 5);
    let block = survey(&inner).blocks[0];
    let value = inner[block.offset as usize..][..block.size as usize].to_vec();
    let bytes = table_of(embedding(), 3, |_| value.clone());
    for lost in ["rocksdb.index", "rocksdb.properties"] {
        let mut damaged = bytes.clone();
        let metaindex = super::super::read_metaindex(&survey(&bytes).source, true).unwrap();
        let at = metaindex.iter().find(|(name, _)| name == lost).unwrap().1.offset;
        damaged[at as usize + 8] ^= 0x10;
        let found = entries(&survey(&damaged));
        let values: Vec<_> = found.iter().map(|(_, found)| found == &value).collect();
        assert_eq!(values, [true, true, true], "without {lost}");
    }
}
