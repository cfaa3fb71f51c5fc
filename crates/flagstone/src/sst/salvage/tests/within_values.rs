//! Tables that hold tables in their values.

use super::*;

/// A table with another as a value, whose block is damaged.
fn table_in_a_value() -> Vec<u8> {
    let kept = table(settings(CompressionType::None, 5), 50);
    let file = file_of(b"");
    let mut builder = TableBuilder::new(file.clone(), settings(CompressionType::None, 5)).unwrap();
    for (key, value) in [("a", &b"small"[..]), ("b", &kept), ("c", b"small")] {
        builder
            .add(InternalKeyBuf::new(key.as_bytes(), 7, ValueType::Value).as_key(), value)
            .unwrap();
    }
    let size = builder.finish().unwrap().size as usize;
    let mut bytes = vec![0; size];
    file.read_at(0, &mut bytes).unwrap();
    let sound = survey(&bytes);
    assert_eq!(sound.entries, 3);
    let holder = sound.blocks.iter().max_by_key(|block| block.size).expect("there are some");
    bytes[holder.offset as usize + 1] ^= 0x10;
    bytes
}

/// Where the metaindex was lost, its entries were taken for the table's own, although the index
/// says what lies there.
#[test]
fn a_table_in_a_value_does_not_come_out() {
    let mut bytes = table_in_a_value();
    let metaindex = survey(&bytes).source.footer.metaindex;
    bytes[metaindex.offset as usize + 3] ^= 0x10;
    let remains = survey(&bytes);
    let keys: Vec<_> = entries(&remains).into_iter().map(|(key, _)| key[0] as char).collect();
    assert!(keys.iter().all(|key| "abc".contains(*key)), "{keys:?}");
    assert!(!remains.faults.is_empty());
}

/// Its properties were taken for those that are lost: the table was given to the other one's column
/// family.
#[test]
fn a_table_in_a_value_does_not_tell_what_the_other_is() {
    let mut bytes = table_in_a_value();
    let own =
        bytes.windows(18).rposition(|window| window == b"data.block.restart").expect("properties");
    bytes[own] ^= 0x10;
    let metaindex = survey(&bytes).source.footer.metaindex;
    bytes[metaindex.offset as usize + 3] ^= 0x10;
    let remains = survey(&bytes);
    assert!(remains.properties.is_none(), "{:?}", remains.properties);
    assert!(!remains.faults.is_empty());
}

/// Where nothing was found in front of them, its properties were believed, and so was where data
/// ends by them: what lies behind that was taken for no data.
#[test]
fn a_table_in_a_value_does_not_cost_the_blocks_behind_it() {
    let kept = table(settings(CompressionType::None, 5), 10);
    let holder = [&[b'x'; 5000][..], &kept].concat();
    for (first, last) in [(&holder[..], &b"small"[..]), (&[b'x'; 5000], &holder)] {
        let file = file_of(b"");
        let mut builder =
            TableBuilder::new(file.clone(), settings(CompressionType::None, 5)).unwrap();
        let mut add = |key: String, value: &[u8]| {
            builder
                .add(InternalKeyBuf::new(key.as_bytes(), 7, ValueType::Value).as_key(), value)
                .unwrap();
        };
        add("a".to_string(), first);
        (0..100).for_each(|key| add(format!("key{key:03}"), &[b'v'; 50]));
        add("z".to_string(), last);
        let size = builder.finish().unwrap().size as usize;
        let mut bytes = vec![0; size];
        file.read_at(0, &mut bytes).unwrap();
        let blocks = survey(&bytes).blocks.clone();
        bytes[blocks[0].offset as usize + 1] ^= 0x10;
        bytes[blocks.last().expect("the last").offset as usize + 1] ^= 0x10;
        bytes.truncate(
            bytes
                .windows(18)
                .rposition(|window| window == b"data.block.restart")
                .expect("properties"),
        );
        let remains = survey(&bytes);
        let keys: BTreeSet<_> =
            entries(&remains).into_iter().map(|(key, _)| key[..6].to_vec()).collect();
        // The last few lie in a damaged block.
        let missing = (0..90).find(|key| !keys.contains(format!("key{key:03}").as_bytes()));
        assert_eq!(missing, None, "{:?}", remains.properties);
        assert!(!remains.faults.is_empty());
    }
}
