use super::super::live::ObsoleteFiles;
use super::*;
use crate::base::{InternalKeyBuf, ValueType};

/// Tables in level 1 (and, reversed in time, in level 0) with the given user key ranges.
fn version(comparator: Comparator, ranges: &[(&str, &str)]) -> Version {
    let file = |(index, (smallest, largest)): (usize, &(&str, &str))| {
        let meta = FileMetadata {
            number: FileNumber(index as u64),
            size: 10,
            smallest: InternalKeyBuf::new(smallest.as_bytes(), 9, ValueType::Value),
            largest: InternalKeyBuf::new(largest.as_bytes(), 5, ValueType::Value),
            ..FileMetadata::default()
        };
        Arc::new(TableFile::new(meta, &DataPaths::default(), Arc::new(ObsoleteFiles::default())))
    };
    let files: Vec<_> = ranges.iter().enumerate().map(file).collect();
    Version::new(
        InternalKeyComparator::new(comparator),
        Arc::default(),
        vec![files.clone(), files],
        BTreeMap::new(),
    )
}

fn found(version: &Version, key: &str, sequence: u64) -> Option<u64> {
    let key = InternalKeyBuf::for_seek(key.as_bytes(), sequence);
    version.levels[1].get(version.file_index_for_key(1, key.as_key())).map(|file| file.number().0)
}

#[test]
fn a_key_is_looked_for_in_one_table_of_a_level() {
    let version = version(Comparator::Bytewise, &[("b", "d"), ("f", "f"), ("h", "k")]);
    for (key, expected) in [
        ("a", Some(0)),
        ("d", Some(0)),
        ("e", Some(1)),
        ("f", Some(1)),
        ("g", Some(2)),
        ("l", None),
    ] {
        assert_eq!(found(&version, key, 9), expected, "{key}");
    }
    assert_eq!(
        found(&version, "d", 4),
        Some(1),
        "entries of d below sequence 5 are not in table 0"
    );
}

#[test]
fn long_common_prefixes_and_other_orders_are_searched_alike() {
    let long = [
        ("prefix-prefix-a", "prefix-prefix-b"),
        ("prefix-prefix-c", "prefix-prefix-c"),
        ("prefix-q", "prefix-r"),
    ];
    let bytewise = version(Comparator::Bytewise, &long);
    let mut reversed: Vec<_> = long.iter().map(|&(a, b)| (b, a)).collect();
    reversed.reverse();
    let reversed = version(Comparator::ReverseBytewise, &reversed);
    for (key, expected, in_reverse) in [
        ("prefix", Some(0), None),
        ("prefix-prefix-b", Some(0), Some(2)),
        ("prefix-prefix-bb", Some(1), Some(2)),
        ("prefix-prefix-d", Some(2), Some(1)),
        ("prefix-s", None, Some(0)),
    ] {
        assert_eq!(found(&bytewise, key, 9), expected, "{key}");
        assert_eq!(found(&reversed, key, 9), in_reverse, "{key} reversed");
    }
}

#[test]
fn prefix_search_agrees_with_comparing_every_key() {
    let mut random = fastrand::Rng::with_seed(3);
    let mut keys: Vec<String> = (0..200)
        .map(|_| {
            (0..random.usize(0..12)).map(|_| random.choice(['a', 'b', '\0']).unwrap()).collect()
        })
        .collect();
    keys.sort();
    keys.dedup();
    let ranges: Vec<_> = keys.iter().map(|key| (key.as_str(), key.as_str())).collect();
    let version = version(Comparator::Bytewise, &ranges);
    for key in &keys {
        let expected = keys.iter().position(|largest| largest >= key).map(|index| index as u64);
        assert_eq!(found(&version, key, 9), expected);
    }
}

#[test]
fn overlaps_include_both_ends() {
    let version = version(Comparator::Bytewise, &[("b", "d"), ("f", "f"), ("h", "k")]);
    for (begin, end, expected) in [
        (Some("d"), Some("f"), &[0, 1][..]),
        (Some("e"), Some("e"), &[]),
        (None, Some("a"), &[]),
        (None, Some("b"), &[0]),
        (Some("g"), None, &[2]),
        (Some("l"), None, &[]),
        (None, None, &[0, 1, 2]),
    ] {
        for level in [0, 1] {
            let files =
                version.files_overlapping(level, begin.map(str::as_bytes), end.map(str::as_bytes));
            let numbers: Vec<_> = files.iter().map(|file| file.number().0).collect();
            assert_eq!(numbers, expected, "{begin:?}..={end:?} in level {level}");
        }
    }
    assert_eq!((version.level_bytes(1), version.table_bytes(), version.num_files()), (30, 60, 6));
    assert_eq!(version.disjoint_table_bytes(), 30, "level 0 has the same keys");
}
