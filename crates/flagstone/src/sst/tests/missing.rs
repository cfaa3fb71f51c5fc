//! Tables that lack what readers need not have, and tables with what is not known yet.
//!
//! Each property is taken away in turn: RocksDB then assumes something, or misreads the table. What
//! it would misread is refused.

use std::collections::BTreeSet;

use super::earlier::Rewritten;
use super::support::{Built, build, entries};
use crate::base::compression::CompressionType;
use crate::base::{
    Code, Comparator, Error, FileNumber, InternalIterator, InternalKeyBuf, PrefixExtractor,
    UniqueId,
};
use crate::sst::filter::FilterPolicy;
use crate::sst::format::{FOOTER_SIZE, meta_name};
use crate::sst::index::IndexFlavor;
use crate::sst::properties::name;
use crate::sst::{
    IndexType, IterSettings, ReadSettings, SalvageSettings, Table, TableBuilderSettings,
    TableProperties, TableReadSettings, TableRemains, read_table_properties,
};

const COUNT: u64 = 400;

fn settings(index_type: IndexType, format_version: u32) -> TableBuilderSettings {
    TableBuilderSettings {
        index_type,
        format_version,
        partition_filters: index_type == IndexType::TwoLevel,
        prefix_extractor: (index_type == IndexType::HashSearch)
            .then_some(PrefixExtractor::FixedPrefix(6)),
        filter_policy: Some(FilterPolicy::Bloom { bits_per_key: 10.0 }),
        block_size: 512,
        metadata_block_size: 256,
        compression: CompressionType::Lz4,
        db_identity: "identity".to_owned(),
        session_identity: "ABCDEFGHIJ0123456789".to_owned(),
        file_number: FileNumber(7),
        ..TableBuilderSettings::default()
    }
}

fn kinds() -> impl Iterator<Item = (IndexType, u32)> {
    let types = [
        IndexType::BinarySearch,
        IndexType::HashSearch,
        IndexType::TwoLevel,
        IndexType::BinarySearchWithFirstKey,
    ];
    types.into_iter().flat_map(|kind| [2, 3, 4, 5, 6, 7].map(|version| (kind, version)))
}

/// One version of each key, so that an index has user keys where it may.
fn stored() -> Vec<(InternalKeyBuf, Vec<u8>)> {
    let mut stored = entries(COUNT);
    stored.dedup_by(|(later, _), (key, _)| later.as_key().user_key() == key.as_key().user_key());
    stored
}

fn built(kind: IndexType, version: u32) -> Built {
    build(settings(kind, version), &stored(), &[("key0000100", "key0000101", 2_000_000)])
}

fn try_open(built: &Built, settings: TableReadSettings) -> Result<std::sync::Arc<Table>, Error> {
    Table::open(built.file.clone(), built.summary.size, settings)
}

/// All entries by cursor and by lookup.
fn read(built: &Built) -> Result<Vec<(InternalKeyBuf, Vec<u8>)>, Error> {
    let table = try_open(built, TableReadSettings::default())?;
    let mut iter = table.iter(IterSettings::default());
    let mut found = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        found.push((iter.key().to_buf(), iter.value().to_vec()));
        iter.next();
    }
    iter.status()?;
    for (key, value) in &found {
        let mut is_found = false;
        table.get(key.as_key(), &ReadSettings::default(), |_, _, stored| {
            is_found = stored.bytes() == value;
            Ok(std::ops::ControlFlow::Break(()))
        })?;
        assert!(is_found, "{key:?} is not found");
    }
    assert!(!table.range_tombstones().is_empty());
    let mut faults = Vec::new();
    assert!(table.verify(&mut |fault| faults.push(fault)), "{faults:?}");
    assert!(table.anchors(8)?.len() <= 9, "without the size of its data it is cut to pieces");
    Ok(found)
}

/// Whether RocksDB would misread the table without the property.
fn is_needed(built: &Built, property: &[u8]) -> bool {
    let table = built.open();
    let properties = table.properties();
    let is_set = |name: &str| properties.number(name).is_ok_and(|number| number == Some(1));
    match std::str::from_utf8(property).expect("a name") {
        // First keys stand between the changes in size, where nothing tells how long a value is.
        name::INDEX_TYPE => {
            table.index_type() == IndexType::BinarySearchWithFirstKey
                && is_set(name::INDEX_VALUE_IS_DELTA)
        }
        name @ (name::INDEX_KEY_IS_USER_KEY | name::INDEX_VALUE_IS_DELTA) => is_set(name),
        _ => false,
    }
}

#[test]
fn each_property_may_be_missing_that_rocksdb_does_not_need() {
    let (mut names, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for (kind, version) in kinds() {
        let sound = built(kind, version);
        let all = sound.open().properties().raw.keys().cloned().collect::<Vec<_>>();
        for property in all {
            let what = format!("{kind:?}, version {version}, without {}", property.escape_ascii());
            let sound = built(kind, version);
            let is_needed = is_needed(&sound, &property);
            let mut rewritten = Rewritten::of(&sound);
            rewritten.properties.raw.remove(&property);
            let changed = rewritten.finish(sound);
            match read(&changed) {
                Ok(found) => assert!(!is_needed && found == stored(), "{what}"),
                Err(error) => {
                    assert!(is_needed && error.is_corruption(), "{what}: {error}");
                    assert!(error.to_string().contains("/t/000007.sst"), "{error}");
                    refused.insert(property.clone());
                }
            }
            names.insert(property);
        }
    }
    assert!(names.len() > 25, "{names:?}");
    assert_eq!(refused.len(), 3, "{refused:?}");
}

#[test]
fn all_properties_may_be_missing_where_the_index_is_plain() {
    for version in [2, 6] {
        let sound = built(IndexType::BinarySearch, version);
        let is_plain = sound.open().index_flavor() == IndexFlavor::default();
        assert_eq!(is_plain, version == 2);
        let mut rewritten = Rewritten::of(&sound);
        rewritten.forget(meta_name::PROPERTIES);
        let bare = rewritten.finish_bare(sound);
        assert!(
            read_table_properties(bare.file.clone(), bare.summary.size).unwrap().raw.is_empty()
        );
        if !is_plain {
            assert!(read(&bare).unwrap_err().is_corruption());
            continue;
        }
        assert!(read(&bare).unwrap() == stored());
        let comparator = |_: Option<&TableProperties>| Ok(Comparator::Bytewise);
        let settings = SalvageSettings { comparator: &comparator, largest_sequence: None };
        let remains =
            TableRemains::survey(bare.file.clone(), bare.summary.size, &settings).unwrap();
        assert_eq!(remains.entries, stored().len() as u64);
        assert!(remains.faults.is_empty() && remains.harmless.is_empty(), "{:?}", remains.harmless);
    }
}

#[test]
fn a_property_that_is_no_number_counts_as_missing() {
    let sound = built(IndexType::BinarySearch, 5);
    let mut rewritten = Rewritten::of(&sound);
    for property in ["rocksdb.raw.key.size", "rocksdb.creation.time", name::COLUMN_FAMILY_ID] {
        rewritten.properties.set(property, b"\xff\xff");
    }
    let changed = rewritten.finish(sound);
    assert!(read(&changed).unwrap() == stored());
    let table = changed.open();
    assert_eq!((table.properties().raw_key_size, table.properties().column_family), (0, None));
}

#[test]
fn what_is_unknown_is_kept_or_passed_over() {
    for (kind, version) in kinds() {
        let sound = built(kind, version);
        let mut rewritten = Rewritten::of(&sound);
        rewritten.properties.set("rocksdb.zz.of.a.later.version", b"\x00\xff\xff");
        rewritten.properties.set("an application's", b"\xff");
        rewritten.set("rocksdb.zz.block.of.a.later.version", b"whatever");
        let changed = rewritten.finish(sound);
        assert!(read(&changed).unwrap() == stored(), "{kind:?}, version {version}");
        let table = changed.open();
        assert_eq!(table.properties().raw[&b"rocksdb.zz.of.a.later.version"[..]], b"\x00\xff\xff");
    }
}

#[test]
fn what_would_be_read_wrongly_is_refused_by_value_and_file() {
    let refused = |built: &Built| {
        let error = read(built).expect_err("it is not known").to_string();
        assert!(error.contains("/t/000007.sst"), "{error}");
        error
    };
    let sound = built(IndexType::BinarySearch, 5);
    let mut rewritten = Rewritten::of(&sound);
    rewritten.properties.set(name::INDEX_TYPE, &7u32.to_le_bytes());
    assert!(refused(&rewritten.finish(sound)).contains("index type is 7"));

    let end = |built: &Built| built.summary.size - FOOTER_SIZE as u64;
    let sound = built(IndexType::BinarySearch, 5);
    sound.file.write_at(end(&sound) + 41, &8u32.to_le_bytes()).unwrap();
    assert!(refused(&sound).contains("format version 8"));
    let sound = built(IndexType::BinarySearch, 5);
    sound.file.write_at(end(&sound), &[77]).unwrap();
    assert!(refused(&sound).contains("checksum type 77"));

    // A block whose type is not known, and whose checksum is right.
    let sound = built(IndexType::BinarySearch, 5);
    let (table, bytes) = (sound.open(), sound.bytes());
    let first = table.offset_of_entry(stored()[0].0.as_key()).unwrap();
    assert_eq!(first, Some(0));
    let size = (1..bytes.len() - 5).find(|&size| {
        let stored = u32::from_le_bytes(bytes[size + 1..size + 5].try_into().unwrap());
        table.footer().checksum_of(&bytes[..size], bytes[size], 0) == stored
    });
    let size = size.expect("a first block");
    let checksum = table.footer().checksum_of(&bytes[..size], 0x1f, 0);
    sound.file.write_at(size as u64, &[&[0x1f][..], &checksum.to_le_bytes()].concat()).unwrap();
    assert!(refused(&sound).contains("compression type 0x1f"));
}

#[test]
fn a_table_without_identity_is_not_the_one_that_the_manifest_names() {
    let sound = built(IndexType::BinarySearch, 5);
    let id = sound.open().properties().unique_id();
    let expecting = |unique_id: Option<UniqueId>| TableReadSettings {
        unique_id,
        ..TableReadSettings::default()
    };
    assert!(id.is_some() && try_open(&sound, expecting(id)).is_ok());
    for property in [
        "rocksdb.creating.db.identity",
        "rocksdb.creating.session.identity",
        "rocksdb.original.file.number",
    ] {
        let mut rewritten = Rewritten::of(&sound);
        rewritten.properties.raw.remove(property.as_bytes());
        let changed = rewritten.finish(built(IndexType::BinarySearch, 5));
        assert!(try_open(&changed, expecting(None)).is_ok());
        let error = try_open(&changed, expecting(id)).unwrap_err();
        assert!(
            error.code() == Code::Corruption && error.message().contains("unique id none"),
            "{error}"
        );
    }
}
