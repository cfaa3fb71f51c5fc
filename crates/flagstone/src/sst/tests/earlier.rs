//! Tables as earlier versions of RocksDB wrote them: ours, with other meta blocks behind.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fixtures::check_whole;
use super::prefixes::{
    EXTRACTORS, check_gets, check_prefix_seeks, get_all, open_by, settings, words,
};
use super::support::{Built, build, entry, file};
use crate::base::{
    Comparator, InternalIterator, InternalKey, InternalKeyBuf, InternalKeyComparator,
    MAX_SEQUENCE_NUMBER, PrefixExtractor, ValueType,
};
use crate::sst::block::BlockBuilder;
use crate::sst::filter::WrittenBy;
use crate::sst::format::meta_name;
use crate::sst::index::IndexBlockWriter;
use crate::sst::properties::name;
use crate::sst::table::FilterKind;
use crate::sst::{
    BlockHandle, Footer, IndexType, IterSettings, ReadSettings, Table, TableBuilderSettings,
    TableProperties, TableReadSettings,
};

type Entries = Vec<(InternalKeyBuf, Vec<u8>)>;

/// A table on its way to one with other meta blocks.
pub(super) struct Rewritten {
    bytes: Vec<u8>,
    footer: Footer,
    pub properties: TableProperties,
    meta_blocks: BTreeMap<String, BlockHandle>,
}

impl Rewritten {
    pub fn of(built: &Built) -> Self {
        let table = built.open();
        let meta_blocks =
            table.meta_blocks().iter().filter(|(name, _)| name != "metaindex").cloned();
        Self {
            bytes: built.bytes(),
            footer: *table.footer(),
            properties: table.properties().clone(),
            meta_blocks: meta_blocks.collect(),
        }
    }

    fn append(&mut self, block: &[u8]) -> BlockHandle {
        let handle = BlockHandle { offset: self.bytes.len() as u64, size: block.len() as u64 };
        let checksum = self.footer.checksum_of(block, 0, handle.offset);
        self.bytes.extend_from_slice(block);
        self.bytes.push(0);
        self.bytes.extend_from_slice(&checksum.to_le_bytes());
        handle
    }

    pub fn set(&mut self, name: &str, block: &[u8]) {
        let handle = self.append(block);
        self.meta_blocks.insert(name.to_owned(), handle);
    }

    pub fn forget(&mut self, name: &str) {
        self.meta_blocks.remove(name);
    }

    /// The table with the properties as they are now.
    pub fn finish(mut self, built: Built) -> Built {
        let properties = self.properties.encode();
        self.set(meta_name::PROPERTIES, &properties);
        self.finish_bare(built)
    }

    /// The table with the meta blocks as they are now.
    pub fn finish_bare(mut self, built: Built) -> Built {
        let mut metaindex = BlockBuilder::new(1, None);
        for (name, handle) in &self.meta_blocks {
            let mut value = Vec::new();
            handle.encode(&mut value);
            metaindex.add(name.as_bytes(), &value);
        }
        let metaindex = self.append(metaindex.finish());
        let end = self.bytes.len() as u64;
        Footer { metaindex, ..self.footer }.encode(end, &mut self.bytes);
        let file = file();
        file.write_at(0, &self.bytes).unwrap();
        let mut rewritten = Built { file, ..built };
        rewritten.summary.size = self.bytes.len() as u64;
        rewritten
    }
}

/// Who wrote the filter partitions: one for each of the index's, until RocksDB 9.6.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Writer {
    /// A partition has the prefixes of its own keys and no other.
    BeforeOverlaps,
    /// A prefix is only in the first partition that has keys with it.
    Release5_14,
}

/// A table with filter partitions as somebody else made them.
fn build_by(writer: Writer, settings: TableBuilderSettings, entries: &Entries) -> Built {
    let settings = TableBuilderSettings {
        index_type: IndexType::TwoLevel,
        partition_filters: true,
        ..settings
    };
    let built = build(settings.clone(), entries, &[]);
    let table = built.open();
    let mut rewritten = Rewritten::of(&built);
    let flavor = table.index_flavor();
    let order = InternalKeyComparator::new(Comparator::Bytewise);
    let policy = settings.filter_policy.unwrap();
    let mut filter = policy.builder(settings.format_version, WrittenBy::Flush).unwrap();
    let mut top = IndexBlockWriter::new(flavor, settings.index_block_restart_interval);
    let mut rest = entries.as_slice();
    let mut last_prefix = None;
    for at in 0..table.index.top.len() {
        let separator = if flavor.user_keys {
            InternalKeyBuf::new(&table.index.top.key(at), 0, ValueType::Deletion)
        } else {
            InternalKey::parse(&table.index.top.key(at)).unwrap().to_buf()
        };
        let count = rest
            .partition_point(|(key, _)| order.compare(key.as_key(), separator.as_key()).is_le());
        let (own, behind) = rest.split_at(count);
        for user_key in own.iter().map(|(key, _)| key.user_key()) {
            let prefix =
                settings.prefix_extractor.as_ref().and_then(|extractor| extractor.prefix(user_key));
            if let Some(prefix) = prefix
                && (writer != Writer::Release5_14 || last_prefix.replace(prefix) != Some(prefix))
            {
                filter.add(prefix);
            }
            if settings.whole_key_filtering {
                filter.add(user_key);
            }
        }
        let handle = rewritten.append(&filter.finish());
        top.add(separator.as_bytes(), handle, &[]);
        rest = behind;
    }
    assert!(rest.is_empty());
    rewritten.set(meta_name::PARTITIONED_FILTER, top.finish());
    assert!(rewritten.properties.raw.remove(name::DECOUPLED_FILTERS.as_bytes()).is_some());
    if writer == Writer::Release5_14 {
        assert!(!flavor.user_keys && !flavor.delta_values);
        for later in [name::INDEX_KEY_IS_USER_KEY, name::INDEX_VALUE_IS_DELTA] {
            assert!(rewritten.properties.raw.remove(later.as_bytes()).is_some());
        }
    }
    rewritten.finish(built)
}

/// How many filter partitions a table has.
fn partitions(table: &Table) -> usize {
    let FilterKind::Partitioned(top) = &table.filter.kind else { panic!("no partitions") };
    top.len()
}

/// With one key in each block and partition.
fn one_by_one(extractor: PrefixExtractor, format_version: u32) -> TableBuilderSettings {
    TableBuilderSettings {
        block_size: 1,
        metadata_block_size: 1,
        format_version,
        ..settings(extractor)
    }
}

fn prefix_settings() -> IterSettings {
    IterSettings { prefix_same_as_start: true, ..IterSettings::default() }
}

fn values(keys: &[&str]) -> Entries {
    keys.iter().map(|key| entry(key, 9, ValueType::Value, key)).collect()
}

/// Went wrong: the partition that was asked is the one before the key, which lacks its prefix.
/// RocksDB asks the one behind the separator, whose sequence number is the largest, in format
/// version 2; in later ones the separator has none.
#[test]
fn a_prefix_that_a_separator_was_shortened_to_is_found() {
    let extractor = PrefixExtractor::FixedPrefix(4);
    for format_version in [2, 5] {
        let settings = one_by_one(extractor.clone(), format_version);
        let built = build_by(Writer::BeforeOverlaps, settings, &values(&["0001zzzz", "0002aaaa"]));
        let table = open_by(&built, &extractor);
        assert_eq!(partitions(&table), 2);
        assert_eq!(table.index.top.user_key(0), b"0002");
        let mut iter = table.iter(prefix_settings());
        iter.confine(true);
        iter.seek(InternalKeyBuf::for_seek(b"0002", MAX_SEQUENCE_NUMBER).as_key());
        assert!(iter.valid() && iter.key().user_key() == b"0002aaaa", "{format_version}");
    }
}

/// Went wrong with what RocksDB wrote before 9.5: the partition that was asked is the one behind
/// the key.
#[test]
fn a_prefix_that_ends_with_the_partition_before_is_found_backwards() {
    let extractor = PrefixExtractor::FixedPrefix(2);
    for format_version in [2, 5] {
        let settings = TableBuilderSettings {
            whole_key_filtering: false,
            ..one_by_one(extractor.clone(), format_version)
        };
        let built = build_by(Writer::BeforeOverlaps, settings, &values(&["ab", "ac"]));
        let table = open_by(&built, &extractor);
        assert_eq!(partitions(&table), 2);
        assert_eq!(table.index.top.user_key(0), b"ab");
        let mut iter = table.iter(prefix_settings());
        iter.confine(true);
        iter.seek_for_prev(InternalKeyBuf::for_seek(b"abx", MAX_SEQUENCE_NUMBER).as_key());
        assert!(iter.valid() && iter.key().user_key() == b"ab", "{format_version}");
    }
}

#[test]
fn prefix_seeks_miss_no_key_where_partitions_have_no_prefixes_of_others() {
    let entries = words(80);
    for extractor in EXTRACTORS {
        for whole_key_filtering in [false, true] {
            for (metadata_block_size, format_version) in [(1, 2), (64, 5)] {
                let settings = TableBuilderSettings {
                    whole_key_filtering,
                    metadata_block_size,
                    format_version,
                    ..settings(extractor.clone())
                };
                let table =
                    open_by(&build_by(Writer::BeforeOverlaps, settings, &entries), &extractor);
                assert!(partitions(&table) > 3);
                check_prefix_seeks(&table, &extractor, &entries);
                let may =
                    |key: &[u8]| table.may_contain_prefix(key, &ReadSettings::default()).unwrap();
                assert!(!may(b"0000") && !may(b"zzzz"), "it still rules out");
            }
        }
    }
}

/// Went wrong: RocksDB 5.14 left a prefix out of all partitions but the first that has keys with
/// it.
#[test]
fn prefixes_that_only_one_partition_has_are_found_in_others() {
    let extractor = PrefixExtractor::FixedPrefix(2);
    let keys: Vec<_> = (0..20).map(|n| format!("aa{n:02}")).collect();
    let entries = values(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    let table = open_by(
        &build_by(Writer::Release5_14, one_by_one(extractor.clone(), 2), &entries),
        &extractor,
    );
    assert!(partitions(&table) > 10);
    check_prefix_seeks(&table, &extractor, &entries);
    check_gets(&table, &entries);
    assert!(!get_all(&table, b"aa0").0, "the filter still knows whole keys");
}

/// Range deletions and nothing else, with one more meta block.
fn with_meta_block(settings: TableBuilderSettings, name: &str, block: &[u8]) -> Arc<Table> {
    let prefix_extractor = settings.prefix_extractor.clone();
    let built = build(settings, &[], &[("a", "c", 7)]);
    let mut rewritten = Rewritten::of(&built);
    rewritten.set(name, block);
    let built = rewritten.finish(built);
    built.open_with(TableReadSettings { prefix_extractor, ..TableReadSettings::default() })
}

fn check_only_range_deletions(table: &Arc<Table>) {
    assert!(check_whole(table).is_empty());
    assert_eq!(table.stored_range_deletions().unwrap().len(), 1);
    assert!(!table.has_points());
    assert!(get_all(table, b"abcd").1.is_empty());
    let mut iter = table.iter(prefix_settings());
    iter.confine(true);
    iter.seek(InternalKeyBuf::for_seek(b"abcd", MAX_SEQUENCE_NUMBER).as_key());
    assert!(!iter.valid() && iter.status().is_ok());
}

/// Could not be opened: earlier RocksDB noted the last prefix of a table also where there was none.
#[test]
fn a_hash_index_may_have_an_entry_for_no_prefix_where_there_are_no_keys() {
    let hashed = TableBuilderSettings {
        index_type: IndexType::HashSearch,
        ..settings(PrefixExtractor::FixedPrefix(3))
    };
    let table = with_meta_block(hashed, meta_name::HASH_METADATA, &[0, 0, 0]);
    assert!(table.index.hash.is_some());
    check_only_range_deletions(&table);
}

/// Could not be opened: earlier RocksDB wrote a block of no bytes for the level above the
/// partitions.
#[test]
fn a_filter_without_partitions_may_be_nothing_at_all() {
    let partitioned = TableBuilderSettings {
        index_type: IndexType::TwoLevel,
        partition_filters: true,
        ..settings(PrefixExtractor::FixedPrefix(3))
    };
    let table = with_meta_block(partitioned, meta_name::PARTITIONED_FILTER, &[]);
    assert!(matches!(table.filter.kind, FilterKind::None));
    check_only_range_deletions(&table);
}
