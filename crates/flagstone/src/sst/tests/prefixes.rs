//! Prefixes and partitions may only ever rule out what is not there.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::fixtures::{check_whole, forward, open};
use super::forms::all_settings;
use super::support::{Built, build, entries, entry};
use crate::base::compression::CompressionType;
use crate::base::{
    InternalIterator, InternalKeyBuf, MAX_SEQUENCE_NUMBER, PrefixExtractor, ValueType,
};
use crate::cache::{Cache, CacheSettings};
use crate::sst::block::BlockIter;
use crate::sst::cursor::IndexCursor;
use crate::sst::filter::FilterPolicy;
use crate::sst::format::meta_name;
use crate::sst::index::PrefixHashBuilder;
use crate::sst::table::FilterKind;
use crate::sst::{
    IndexType, IterSettings, ReadSettings, Table, TableBuilderSettings, TableReadSettings,
};

type Entries = Vec<(InternalKeyBuf, Vec<u8>)>;

/// Keys of 1 to 8 letters from a small alphabet: many share prefixes of any length, many are
/// shorter than a prefix.
pub(super) fn words(count: usize) -> Entries {
    let mut random = fastrand::Rng::with_seed(count as u64);
    let mut keys = BTreeSet::new();
    while keys.len() < count {
        keys.insert((0..random.usize(1..9)).map(|_| random.char('a'..='d')).collect::<String>());
    }
    let mut entries = Vec::new();
    for key in &keys {
        for version in 0..random.u64(1..4) {
            entries.push(entry(key, 100 - version, ValueType::Value, &format!("{key} {version}")));
        }
    }
    entries
}

pub(super) fn settings(prefix_extractor: PrefixExtractor) -> TableBuilderSettings {
    TableBuilderSettings {
        block_size: 200,
        metadata_block_size: 100,
        filter_policy: Some(FilterPolicy::Bloom { bits_per_key: 10.0 }),
        prefix_extractor: Some(prefix_extractor),
        ..TableBuilderSettings::default()
    }
}

pub(super) fn open_by(built: &Built, extractor: &PrefixExtractor) -> Arc<Table> {
    built.open_with(TableReadSettings {
        prefix_extractor: Some(extractor.clone()),
        ..TableReadSettings::default()
    })
}

pub(super) fn get_all(table: &Table, user_key: &[u8]) -> (bool, Entries) {
    let mut found = Vec::new();
    let target = InternalKeyBuf::new(user_key, MAX_SEQUENCE_NUMBER, ValueType::FOR_SEEK);
    let lookup = table
        .get(target.as_key(), &ReadSettings::default(), |sequence, kind, value| {
            found.push((InternalKeyBuf::new(user_key, sequence, kind), value.bytes().to_vec()));
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    (lookup, found)
}

/// Every key that is there is found with all its versions, and none that is not.
pub(super) fn check_gets(table: &Table, entries: &Entries) {
    for word in words(300).iter().chain(entries).map(|(key, _)| key.user_key()) {
        let wanted: Entries =
            entries.iter().filter(|(key, _)| key.user_key() == word).cloned().collect();
        assert_eq!(get_all(table, word).1, wanted, "{:?}", String::from_utf8_lossy(word));
    }
}

pub(super) const EXTRACTORS: [PrefixExtractor; 4] = [
    PrefixExtractor::FixedPrefix(3),
    PrefixExtractor::FixedPrefix(1),
    PrefixExtractor::CappedPrefix(3),
    PrefixExtractor::Noop,
];

#[test]
fn the_hash_index_finds_every_key() {
    let entries = words(150);
    for extractor in EXTRACTORS {
        for compression in [CompressionType::None, CompressionType::Zstd] {
            for filter_policy in [None, Some(FilterPolicy::Bloom { bits_per_key: 10.0 })] {
                let settings = TableBuilderSettings {
                    index_type: IndexType::HashSearch,
                    index_block_restart_interval: 7,
                    compression,
                    filter_policy,
                    ..settings(extractor.clone())
                };
                let built = build(settings, &entries, &[]);
                let table = open_by(&built, &extractor);
                assert_eq!(table.index_type(), IndexType::HashSearch);
                assert!(table.index.hash.is_some());
                assert!(check_whole(&table) == entries);
                check_gets(&table, &entries);
                let other = open_by(&built, &PrefixExtractor::FixedPrefix(2));
                assert!(other.index.hash.is_none());
                check_gets(&other, &entries);
            }
        }
    }
}

#[test]
fn the_hash_index_needs_a_prefix_extractor() {
    let settings = TableBuilderSettings {
        index_type: IndexType::HashSearch,
        ..TableBuilderSettings::default()
    };
    let error =
        crate::sst::TableBuilder::new(super::support::file(), settings).err().expect("refused");
    assert!(error.to_string().contains("prefix extractor"), "{error}");
}

#[test]
fn the_hash_index_is_the_one_that_rocksdb_writes() {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-7.8/hashindex");
    let extractor = PrefixExtractor::FixedPrefix(9);
    for name in ["000018.sst", "000020.sst", "000021.sst"] {
        let settings = TableReadSettings {
            prefix_extractor: Some(extractor.clone()),
            ..TableReadSettings::default()
        };
        let table = open(&directory.join(name), settings);
        assert!(table.index.hash.is_some());
        check_whole(&table);
        let mut builder = PrefixHashBuilder::new(extractor.clone());
        let mut cursor = IndexCursor::default();
        cursor.seek_to_first(&table, &ReadSettings::default()).unwrap();
        let mut number = 0;
        while let Some((handle, seen)) = cursor.place(&table) {
            let block =
                table.source.data_block((handle, seen), &ReadSettings::default(), None).unwrap();
            let mut iter = BlockIter::new(block, table.comparator.clone(), None);
            iter.seek_to_first();
            while iter.valid() {
                builder.add(iter.key().user_key(), number);
                iter.next();
            }
            cursor.next(&table, &ReadSettings::default()).unwrap();
            number += 1;
        }
        let stored = |wanted: &str| {
            let (_, handle) = table.meta_blocks().iter().find(|(name, _)| name == wanted).unwrap();
            table.source.read(*handle, true, false).unwrap()
        };
        let (prefixes, metadata) = builder.finish();
        assert_eq!(prefixes, &*stored(meta_name::HASH_PREFIXES), "{name}");
        assert_eq!(metadata, &*stored(meta_name::HASH_METADATA), "{name}");
    }
}

#[test]
fn a_filter_made_by_another_rule_still_knows_whole_keys() {
    let entries = words(150);
    for partition_filters in [false, true] {
        for made_by in EXTRACTORS {
            let index_type = if partition_filters {
                IndexType::TwoLevel
            } else {
                IndexType::BinarySearchWithFirstKey
            };
            let settings =
                TableBuilderSettings { index_type, partition_filters, ..settings(made_by.clone()) };
            let built = build(settings, &entries, &[]);
            for read_by in EXTRACTORS {
                let table = open_by(&built, &read_by);
                assert_eq!(table.filter.prefixes.is_some(), made_by == read_by);
                check_gets(&table, &entries);
                check_prefix_seeks(&table, &read_by, &entries);
                assert!(!get_all(&table, b"no such key").0);
            }
        }
    }
}

/// From every target, in both directions: as long as the prefix is the target's, a prefix seek
/// finds what is there.
pub(super) fn check_prefix_seeks(
    table: &Arc<Table>,
    extractor: &PrefixExtractor,
    entries: &Entries,
) {
    let settings = IterSettings { prefix_same_as_start: true, ..IterSettings::default() };
    let mut iter = table.iter(settings);
    iter.confine(true);
    for word in words(200).iter().chain(entries).map(|(key, _)| key.user_key()) {
        let same =
            |key: &&InternalKeyBuf| extractor.prefix(key.user_key()) == extractor.prefix(word);
        if extractor.prefix(word).is_none() {
            continue;
        }
        let target = InternalKeyBuf::new(word, MAX_SEQUENCE_NUMBER, ValueType::FOR_SEEK);
        let mut wanted: Vec<_> = entries
            .iter()
            .map(|(key, _)| key)
            .filter(|key| key.user_key() >= word)
            .take_while(same)
            .collect();
        iter.seek(target.as_key());
        for key in wanted.drain(..) {
            assert!(iter.valid() && iter.key() == key.as_key(), "{word:?} forward to {key:?}");
            iter.next();
        }
        let target = InternalKeyBuf::new(word, 0, ValueType::Deletion);
        let mut wanted: Vec<_> = entries
            .iter()
            .rev()
            .map(|(key, _)| key)
            .filter(|key| key.user_key() <= word)
            .take_while(same)
            .collect();
        iter.seek_for_prev(target.as_key());
        for key in wanted.drain(..) {
            assert!(iter.valid() && iter.key() == key.as_key(), "{word:?} backward to {key:?}");
            iter.prev();
        }
    }
}

#[test]
fn prefix_seeks_miss_no_key_at_partition_boundaries() {
    let entries = words(150);
    for extractor in EXTRACTORS {
        for whole_key_filtering in [false, true] {
            for metadata_block_size in [1, 64, 1000] {
                let settings = TableBuilderSettings {
                    index_type: IndexType::TwoLevel,
                    partition_filters: true,
                    whole_key_filtering,
                    metadata_block_size,
                    ..settings(extractor.clone())
                };
                let table = open_by(&build(settings, &entries, &[]), &extractor);
                let FilterKind::Partitioned(top) = &table.filter.kind else {
                    panic!("no partitions")
                };
                assert!(metadata_block_size == 1000 || top.len() > 3);
                check_prefix_seeks(&table, &extractor, &entries);
                check_gets(&table, &entries);
            }
        }
    }
}

#[test]
fn prefix_filters_of_rocksdb_miss_no_key() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-7.8");
    let extractor = PrefixExtractor::FixedPrefix(9);
    let mut tables = 0;
    for name in std::fs::read_dir(fixtures.join("bloom-prefix")).unwrap() {
        let path = name.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "sst") {
            continue;
        }
        let settings = TableReadSettings {
            prefix_extractor: Some(extractor.clone()),
            ..TableReadSettings::default()
        };
        let table = open(&path, settings);
        assert!(table.filter.prefixes.is_some());
        let entries = forward(&mut table.iter(IterSettings::default()));
        check_whole(&table);
        for (key, _) in &entries {
            assert!(table.may_contain_prefix(key.user_key(), &ReadSettings::default()).unwrap());
        }
        tables += 1;
    }
    assert!(tables > 0);
}

#[test]
fn a_cache_that_holds_next_to_nothing_suffices() {
    let entries = entries(120);
    for (name, settings) in all_settings() {
        let built = build(settings, &entries, &[]);
        for capacity in [None, Some(0), Some(1 << 10), Some(64 << 10)] {
            for shard_bits in [None, Some(4)] {
                let settings = |capacity| CacheSettings {
                    shard_bits,
                    ..CacheSettings::with_capacity(capacity)
                };
                let cache = capacity.map(|capacity| Arc::new(Cache::new(&settings(capacity))));
                let table =
                    built.open_with(TableReadSettings { cache, ..TableReadSettings::default() });
                assert!(check_whole(&table) == entries, "{name}, cache of {capacity:?}");
            }
        }
    }
}
