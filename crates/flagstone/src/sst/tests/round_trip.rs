//! What is built in any form is read back, by every way of reading.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::fixtures::check_whole;
use super::forms::{all_settings, base};
use super::support::{build, entries, entry, file};
use crate::base::compression::CompressionType;
use crate::base::{
    Comparator, InternalIterator, InternalKeyBuf, MAX_SEQUENCE_NUMBER, PrefixExtractor, ValueType,
};
use crate::cache::{Cache, CacheSettings};
use crate::sst::filter::FilterPolicy;
use crate::sst::{
    IndexType, IterSettings, LookupKey, Part, ReadSettings, SuperBlock, TableBuilder,
    TableBuilderSettings, TableProperties, TableReadSettings, plan, read_missing,
};

#[test]
fn tables_of_every_form_are_read_back() {
    let entries = entries(600);
    for (name, settings) in all_settings() {
        println!("{name}");
        let built = build(settings, &entries, &[("key0000100", "key0000200", 900), ("a", "b", 3)]);
        let table = built.open();
        assert!(check_whole(&table) == entries, "{name}");
        let tombstones = table.range_tombstones();
        assert_eq!(tombstones.covering_sequence(b"key0000150", MAX_SEQUENCE_NUMBER), 900, "{name}");
        let written = &built.summary.properties;
        assert!(written.uncompressed_data_size > written.raw_value_size, "{name}");
        let recorded = TableProperties { uncompressed_data_size: 0, ..written.clone() };
        assert_eq!(table.properties(), &recorded, "{name}");
        assert_eq!(built.summary.largest_sequence, 1_000_599);
        assert_eq!(built.summary.smallest_sequence, 3);
    }
}

#[test]
fn tables_in_reverse_order_are_read_back() {
    for index_type in [IndexType::BinarySearch, IndexType::TwoLevel] {
        let mut entries = entries(300);
        entries.sort_by(|(a, _), (b, _)| {
            b.user_key().cmp(a.user_key()).then(b.as_key().packed().cmp(&a.as_key().packed()))
        });
        let settings = TableBuilderSettings {
            comparator: Comparator::ReverseBytewise,
            index_type,
            block_size: 300,
            ..TableBuilderSettings::default()
        };
        let table = build(settings, &entries, &[]).open();
        assert!(check_whole(&table) == entries);
    }
}

#[test]
fn the_cache_changes_nothing_and_serves_without_the_file() {
    let entries = entries(600);
    let (_, settings) =
        all_settings().into_iter().find(|(name, _)| name == "v5 restart 4 TwoLevel").unwrap();
    let built = build(settings, &entries, &[]);
    let cache = Arc::new(Cache::new(&CacheSettings::with_capacity(16 << 20)));
    let read = TableReadSettings {
        cache_id: cache.new_owner().next_file(),
        cache: Some(cache),
        ..TableReadSettings::default()
    };
    let table = built.open_with(read);
    let cache_only = ReadSettings { cache_only: true, ..ReadSettings::default() };
    let mut seen = 0;
    let mut get = |settings: &ReadSettings| {
        table.get(entries[0].0.as_key(), settings, |_, _, _| {
            seen += 1;
            Ok(ControlFlow::Continue(()))
        })
    };
    let error = get(&cache_only).unwrap_err();
    assert_eq!(error.code(), crate::base::Code::Incomplete);
    get(&ReadSettings::default()).unwrap();
    get(&cache_only).unwrap();
    assert_eq!(seen, 6, "three versions, twice");
    assert!(check_whole(&table) == entries);
}

#[test]
fn absent_keys_are_not_found() {
    let entries = entries(600);
    for (name, settings) in all_settings() {
        let table = build(settings, &entries, &[]).open();
        for n in 0..1900 {
            let key = format!("key{n:07}");
            let target = InternalKeyBuf::for_seek(key.as_bytes(), MAX_SEQUENCE_NUMBER);
            let mut found = 0;
            let is_admitted = table
                .get(target.as_key(), &ReadSettings::default(), |_, _, _| {
                    found += 1;
                    Ok(ControlFlow::Continue(()))
                })
                .unwrap();
            let expected = if n % 3 != 0 || n >= 1800 {
                0
            } else if n % 39 == 0 {
                3
            } else {
                1
            };
            assert_eq!(found, expected, "{name} {key}");
            assert!(found == 0 || is_admitted);
            let old = InternalKeyBuf::for_seek(key.as_bytes(), 5);
            table
                .get(old.as_key(), &ReadSettings::default(), |sequence, _, _| panic!("{sequence}"))
                .unwrap();
        }
    }
}

#[test]
fn many_lookups_at_once_find_what_single_ones_find() {
    let entries = entries(600);
    for (name, settings) in all_settings() {
        let built = build(settings, &entries, &[]);
        let cache = Arc::new(Cache::new(&CacheSettings::with_capacity(1 << 20)));
        let cached =
            TableReadSettings { cache_id: 1, cache: Some(cache), ..TableReadSettings::default() };
        let indexed =
            TableReadSettings { cache_index_and_filter: true, cache_id: 2, ..cached.clone() };
        for read in [TableReadSettings::default(), cached, indexed] {
            let table = built.open_with(read);
            let targets: Vec<_> = (0..300)
                .map(|n| {
                    InternalKeyBuf::for_seek(
                        format!("key{:07}", n * 7).as_bytes(),
                        MAX_SEQUENCE_NUMBER,
                    )
                })
                .collect();
            let sought: Vec<_> =
                targets.iter().map(|target| LookupKey::new(target.as_key())).collect();
            let batch: Vec<usize> = (0..targets.len()).collect();
            let mut found = vec![Vec::new(); targets.len()];
            let settings = ReadSettings::default();
            let mut planned = Vec::new();
            // As of two tables.
            let (some, others) = batch.split_at(100);
            let part = |keys| Part { place: 0, table: Some(&table), keys, planned: 0..0 };
            let mut parts = [part(some), part(others)];
            plan(&sought, &mut parts, &settings, &mut planned);
            for part in parts {
                assert!(part.table.is_some());
                assert!(planned[part.planned].iter().all(|one| part.keys.contains(&one.at)));
            }
            let mut missing: Vec<_> = planned.iter_mut().map(|one| (&*table, one)).collect();
            let (reads, _) = read_missing(&mut missing, &settings);
            assert!(reads > 0 && planned.iter().all(|one| !one.is_missing()), "{name}: {reads}");
            let ruled_out = targets.len() - planned.len();
            assert!(!table.filters_keys() || ruled_out > 150, "{name}: {ruled_out}");
            for one in planned {
                let at = one.at;
                table
                    .search_planned(one, &sought[at], &settings, |sequence, kind, value| {
                        let key = InternalKeyBuf::new(targets[at].user_key(), sequence, kind);
                        found[at].push((key, value.bytes().to_vec()));
                        Ok(ControlFlow::Continue(()))
                    })
                    .unwrap();
            }
            for (target, found) in targets.iter().zip(found) {
                let is_it =
                    |(key, _): &&(InternalKeyBuf, Vec<u8>)| key.user_key() == target.user_key();
                let expected: Vec<_> = entries.iter().filter(is_it).cloned().collect();
                assert_eq!(found, expected, "{name} {target:?}");
            }
        }
    }
}

/// Seeks to every place, in keys that are prefixes of one another, share bytes with packed numbers,
/// or are empty.
#[test]
fn seeks_agree_with_a_sorted_list() {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..40 {
        let mut entries: Vec<(InternalKeyBuf, Vec<u8>)> = Vec::new();
        for _ in 0..200 {
            let key: Vec<u8> =
                (0..random.usize(0..6)).map(|_| [0, 1, b'a', 0xff][random.usize(0..4)]).collect();
            let sequence = [0, 1, 255, 256, 257, random.u64(..1 << 40)][random.usize(0..6)];
            entries.push((InternalKeyBuf::new(&key, sequence, ValueType::Value), key.clone()));
        }
        let comparator =
            if round % 4 == 3 { Comparator::ReverseBytewise } else { Comparator::Bytewise };
        let order = crate::base::InternalKeyComparator::new(comparator.clone());
        entries.sort_by(|(a, _), (b, _)| order.compare(a.as_key(), b.as_key()));
        entries.dedup_by(|(a, _), (b, _)| a == b);
        let settings = TableBuilderSettings {
            comparator,
            block_size: [1, 64, 400, 4000][round % 4],
            block_restart_interval: [1, 2, 16, 1000][(round / 4) % 4],
            index_block_restart_interval: 1 + round % 3,
            data_block_hash_ratio: (round % 2 == 0).then_some(0.75),
            index_type: if round % 5 == 0 { IndexType::TwoLevel } else { IndexType::BinarySearch },
            metadata_block_size: 50,
            ..TableBuilderSettings::default()
        };
        let table = build(settings, &entries, &[]).open();
        assert!(check_whole(&table) == entries);
        let mut iter = table.iter(IterSettings::default());
        for _ in 0..300 {
            let key: Vec<u8> =
                (0..random.usize(0..7)).map(|_| [0, 1, b'a', 0xff][random.usize(0..4)]).collect();
            let target = InternalKeyBuf::for_seek(
                &key,
                [0, 255, 256, MAX_SEQUENCE_NUMBER][random.usize(0..4)],
            );
            let at = entries
                .partition_point(|(key, _)| order.compare(key.as_key(), target.as_key()).is_lt());
            iter.seek(target.as_key());
            let found = iter.valid().then(|| iter.key().to_buf());
            assert_eq!(found.as_ref(), entries.get(at).map(|(key, _)| key), "seek {target:?}");
            iter.seek_for_prev(target.as_key());
            let found = iter.valid().then(|| iter.key().to_buf());
            // The target itself is never in the table: its type is one that only seeks use here.
            assert_eq!(
                found.as_ref(),
                at.checked_sub(1).map(|at| &entries[at].0),
                "seek_for_prev {target:?}"
            );
            let mut versions = Vec::new();
            table
                .get(target.as_key(), &ReadSettings::default(), |sequence, kind, _| {
                    versions.push(InternalKeyBuf::new(&key, sequence, kind));
                    Ok(ControlFlow::Continue(()))
                })
                .unwrap();
            let expected: Vec<InternalKeyBuf> = entries[at..]
                .iter()
                .map(|(key, _)| key.clone())
                .take_while(|k| k.user_key() == key)
                .collect();
            assert_eq!(versions, expected, "get {target:?}");
        }
    }
}

#[test]
fn an_upper_bound_spares_blocks_but_no_key_below_it() {
    let entries = entries(600);
    let table = build(
        TableBuilderSettings { block_size: 256, ..TableBuilderSettings::default() },
        &entries,
        &[],
    )
    .open();
    let bound = b"key0000900".to_vec();
    let mut iter =
        table.iter(IterSettings { upper_bound: Some(bound.clone()), ..IterSettings::default() });
    iter.seek_to_first();
    let mut count = 0;
    while iter.valid() && iter.key().user_key() < bound.as_slice() {
        count += 1;
        iter.next();
    }
    iter.status().unwrap();
    assert_eq!(count, entries.iter().filter(|(key, _)| key.user_key() < bound.as_slice()).count());
    let mut beyond = 0;
    while iter.valid() {
        beyond += 1;
        iter.next();
    }
    assert!(beyond < 30, "{beyond}");
}

#[test]
fn a_prefix_filter_rules_seeks_out() {
    let entries: Vec<_> = (0..400)
        .map(|n| entry(&format!("{:04}-{n}", n / 10 * 2), 9, ValueType::Value, "v"))
        .collect();
    let mut entries = entries;
    entries.sort_by(|(a, _), (b, _)| a.user_key().cmp(b.user_key()));
    for partition_filters in [false, true] {
        let settings = TableBuilderSettings {
            filter_policy: Some(FilterPolicy::Bloom { bits_per_key: 16.0 }),
            prefix_extractor: Some(PrefixExtractor::FixedPrefix(5)),
            index_type: if partition_filters {
                IndexType::TwoLevel
            } else {
                IndexType::BinarySearch
            },
            partition_filters,
            metadata_block_size: 64,
            block_size: 200,
            ..TableBuilderSettings::default()
        };
        let built = build(settings, &entries, &[]);
        let table = built.open_with(TableReadSettings {
            prefix_extractor: Some(PrefixExtractor::FixedPrefix(5)),
            ..TableReadSettings::default()
        });
        let mut iter =
            table.iter(IterSettings { prefix_same_as_start: true, ..IterSettings::default() });
        for n in 0..80 {
            iter.seek(
                InternalKeyBuf::for_seek(format!("{n:04}-").as_bytes(), MAX_SEQUENCE_NUMBER)
                    .as_key(),
            );
            assert_eq!(iter.valid(), n < 79, "keys with other prefixes are wanted, too: {n}");
        }
        iter.confine(true);
        let mut ruled_out = 0;
        for n in 0..80 {
            let prefix = format!("{n:04}-");
            iter.seek(InternalKeyBuf::for_seek(prefix.as_bytes(), MAX_SEQUENCE_NUMBER).as_key());
            let found = iter.valid() && iter.key().user_key().starts_with(prefix.as_bytes());
            assert_eq!(found, n % 2 == 0, "{prefix}");
            ruled_out += usize::from(!iter.valid());
        }
        assert!(ruled_out > 35, "{ruled_out}");
        let other = built.open_with(TableReadSettings {
            prefix_extractor: Some(PrefixExtractor::FixedPrefix(4)),
            ..TableReadSettings::default()
        });
        assert!(other.may_contain_prefix(b"nowhere", &ReadSettings::default()).unwrap());
    }
}

#[test]
fn a_table_of_range_tombstones_only() {
    for index_type in [IndexType::BinarySearch, IndexType::TwoLevel] {
        let settings = TableBuilderSettings {
            index_type,
            filter_policy: Some(FilterPolicy::DEFAULT),
            ..TableBuilderSettings::default()
        };
        let built = build(settings, &[], &[("k", "p", 4), ("b", "m", 3), ("x", "x", 9)]);
        let table = built.open();
        assert!(check_whole(&table).is_empty());
        assert_eq!(table.properties().num_range_deletions, 2);
        assert_eq!(
            built.summary.smallest,
            Some(InternalKeyBuf::new(b"b", 3, ValueType::RangeDeletion))
        );
        let end = InternalKeyBuf::new(b"p", MAX_SEQUENCE_NUMBER, ValueType::RangeDeletion);
        assert_eq!(built.summary.largest, Some(end));
        assert_eq!((built.summary.smallest_sequence, built.summary.largest_sequence), (3, 4));
    }
}

#[test]
fn sizes_and_anchors_follow_the_keys() {
    let table = build(
        TableBuilderSettings { block_size: 512, ..TableBuilderSettings::default() },
        &entries(2000),
        &[],
    )
    .open();
    let offset = |key: &str| {
        let key = InternalKeyBuf::for_seek(key.as_bytes(), MAX_SEQUENCE_NUMBER);
        table.approximate_offset_of(key.as_key()).unwrap()
    };
    let whole = table.properties().data_size;
    assert_eq!((offset("a"), offset("z")), (0, whole));
    let half = offset("key0003000");
    assert!(half > whole * 4 / 10 && half < whole * 6 / 10, "{half} of {whole}");
    let anchors = table.anchors(8).unwrap();
    assert!((7..=8).contains(&anchors.len()));
    assert_eq!(anchors.iter().map(|anchor| anchor.size).sum::<u64>(), whole);
    assert!(anchors.is_sorted_by(|a, b| a.user_key < b.user_key));
    assert!(table.memory_usage() > 0 && table.memory_usage() < 100_000);
}

/// A block of more than 1 GiB that compresses well was written, and taken for damage by whoever
/// read it.
#[test]
fn a_value_of_more_than_a_gibibyte_is_read_back() {
    let large = (1 << 30) + 1;
    let mut entries =
        [("a", ""), ("b", ""), ("c", "last")].map(|(k, v)| entry(k, 1, ValueType::Value, v));
    entries[1].1 = vec![0; large];
    let settings = TableBuilderSettings { compression: CompressionType::Lz4, ..base() };
    let built = build(settings, &entries, &[]);
    assert!(built.summary.size < 8 << 20, "it is compressed");
    let table = built.open();
    let mut found = 0;
    let key = InternalKeyBuf::for_seek(b"b", MAX_SEQUENCE_NUMBER);
    table
        .get(key.as_key(), &ReadSettings::default(), |_, _, value| {
            found = value.bytes().len();
            Ok(ControlFlow::Break(()))
        })
        .unwrap();
    assert_eq!(found, large);
}

/// They were an assertion, though what a compaction reads may be in any order.
#[test]
fn entries_out_of_order_or_of_another_type_are_refused() {
    for (next, why) in [
        (entry("a", 1, ValueType::Value, ""), "out of order"),
        (entry("b", 1, ValueType::Value, ""), "out of order"),
        (entry("b", 2, ValueType::Value, ""), "out of order"),
        (entry("c", 1, ValueType::RangeDeletion, "d"), "does not belong"),
    ] {
        let mut builder = TableBuilder::new(file(), TableBuilderSettings::default()).unwrap();
        let (first, value) = entry("b", 1, ValueType::Value, "");
        builder.add(first.as_key(), &value).unwrap();
        let error = builder.add(next.0.as_key(), &next.1).unwrap_err();
        assert!(error.is_corruption() && error.path().is_none(), "{error}");
        assert!(error.message().contains(why), "{error}");
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    for settings in [
        TableBuilderSettings { format_version: 8, ..TableBuilderSettings::default() },
        TableBuilderSettings { format_version: 1, ..TableBuilderSettings::default() },
        TableBuilderSettings { block_align: Some(1000), ..TableBuilderSettings::default() },
        TableBuilderSettings {
            super_block: Some(SuperBlock { size: 1000, overhead_ratio: 8 }),
            ..TableBuilderSettings::default()
        },
        TableBuilderSettings {
            block_align: Some(4096),
            compression: CompressionType::Lz4,
            ..TableBuilderSettings::default()
        },
        TableBuilderSettings { partition_filters: true, ..TableBuilderSettings::default() },
    ] {
        let error = crate::sst::TableBuilder::new(super::support::file(), settings).err().unwrap();
        assert_eq!(error.code(), crate::base::Code::InvalidArgument);
    }
}

/// Index and filter come through the cache: the open table is small, and what was evicted is read
/// again.
#[test]
fn an_index_in_the_cache_is_evicted_and_read_again() {
    let entries = entries(3000);
    for (name, settings) in all_settings() {
        let built = build(TableBuilderSettings { block_size: 256, ..settings }, &entries, &[]);
        let held = built.open();
        let cache = Arc::new(Cache::new(&CacheSettings::with_capacity(4 << 20)));
        let table = built.open_with(TableReadSettings {
            cache_id: 1,
            cache: Some(cache.clone()),
            cache_index_and_filter: true,
            ..TableReadSettings::default()
        });
        assert_eq!(table.index_type(), held.index_type(), "{name}");
        if held.index_type() != crate::sst::IndexType::TwoLevel {
            assert!(table.index_memory_usage() < 1_000, "{name}: {}", table.index_memory_usage());
            assert!(held.index_memory_usage() > 5_000 && cache.usage() > 5_000, "{name}");
            assert_eq!(table.filter_memory_usage(), 0, "{name}");
        }
        check_whole(&table);
        for capacity in [4 << 20, 0, 4 << 20] {
            cache.set_capacity(capacity);
            let mut iter = table.iter(crate::sst::IterSettings::default());
            iter.seek_to_first();
            for (key, value) in &entries {
                assert_eq!((iter.key(), iter.value()), (key.as_key(), &value[..]), "{name}");
                iter.next();
            }
            assert!(!iter.valid(), "{name}");
            iter.status().unwrap();
            iter.seek_to_last();
            assert_eq!(iter.key(), entries.last().unwrap().0.as_key(), "{name}");
            for (key, value) in entries.iter().step_by(97) {
                let mut found = Vec::new();
                let lookup = table.get(key.as_key(), &ReadSettings::default(), |_, _, value| {
                    found.push(value.bytes().to_vec());
                    Ok(ControlFlow::Break(()))
                });
                lookup.unwrap();
                assert_eq!(found, std::slice::from_ref(value), "{name}");
            }
            assert_eq!(cache.is_empty(), capacity == 0, "{name}");
        }
        let cold = ReadSettings { cache_only: true, ..ReadSettings::default() };
        cache.set_capacity(0);
        let refused = table.get(entries[0].0.as_key(), &cold, |_, _, _| Ok(ControlFlow::Break(())));
        assert_eq!(refused.unwrap_err().code(), crate::base::Code::Incomplete, "{name}");
    }
}
