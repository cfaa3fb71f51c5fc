//! Values that lie beside the blocks.

use std::ops::ControlFlow;
use std::path::Path;

use super::fixtures::{check_whole, open};
use super::forms::all_settings;
use super::support::{Built, build, entry};
use crate::base::checksum::ChecksumType;
use crate::base::entity::{self, Column};
use crate::base::{Code, InternalIterator, InternalKeyBuf, ValueType};
use crate::env::{Env, IoMode};
use crate::sst::filter::WrittenBy;
use crate::sst::{
    EmbeddedStats, IterSettings, ReadSettings, Table, TableBuilder, TableBuilderSettings,
    TableProperties, TableReadSettings,
};

pub(super) type Entries = Vec<(InternalKeyBuf, Vec<u8>)>;

/// What the table `embedded.sst` of RocksDB 11.8 was made of.
fn small() -> Entries {
    let columns: [Column<'_>; 3] = [(b"", &[b'd'; 20]), (b"large", &[b'E'; 30]), (b"tiny", b"t")];
    vec![
        entry("a", 0, ValueType::Value, "small"),
        entry("b", 0, ValueType::Value, &"B".repeat(40)),
        (InternalKeyBuf::new(b"c", 0, ValueType::WideColumnEntity), entity::encode(&columns)),
        entry("d", 0, ValueType::Deletion, ""),
        entry("e", 0, ValueType::Value, "12345678"),
    ]
}

fn embedding(from: u64, settings: TableBuilderSettings) -> TableBuilderSettings {
    TableBuilderSettings { format_version: 7, embedded_from: Some(from), ..settings }
}

fn small_settings() -> TableBuilderSettings {
    let settings = TableBuilderSettings {
        checksum: ChecksumType::Xxh3,
        written_by: WrittenBy::Other,
        ..TableBuilderSettings::default()
    };
    embedding(8, settings)
}

fn theirs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-11.8/embedded.sst")
}

#[test]
fn a_table_of_rocksdb_11_8_is_read_exactly() {
    let table = open(&theirs(), TableReadSettings::default());
    assert_eq!(check_whole(&table), small());
    let stats = EmbeddedStats::of(table.properties()).unwrap();
    assert_eq!(stats, Some(EmbeddedStats { count: 4, bytes: 40 + 20 + 30 + 8 }));
    assert_eq!(table.stored_range_deletions().unwrap().len(), 1);
}

/// Byte for byte, but for checksums: they depend on a number of the file's own.
#[test]
fn the_blocks_and_values_lie_where_rocksdb_11_8_writes_them() {
    let file = Env::os().fs.open_random_access(&self::theirs(), IoMode::Buffered).unwrap();
    let mut theirs = vec![0; file.size().unwrap() as usize];
    file.read_at(0, &mut theirs).unwrap();
    let table = build(small_settings(), &small(), &[("x", "y", 0)]);
    let ours = table.bytes();
    let data_end = table.summary.properties.tail_start_offset as usize;
    assert_eq!(data_end, 0xf0);
    // Four values, the data block, the index, the range deletions.
    let ends = [0x28, 0x41, 0x64, 0x71, 0xeb, 0xfe, 0x118];
    let mut at = 0;
    for end in ends {
        assert_eq!(ours[at..=end], theirs[at..=end], "{at:#x} to {end:#x}");
        at = end + 5;
    }
    let name = b"rocksdb.embedded.blob.stats".as_slice();
    let properties = &table.summary.properties;
    let of_theirs = open(&self::theirs(), TableReadSettings::default());
    for name in [
        name,
        b"rocksdb.index.value.is.delta.encoded",
        b"rocksdb.data.size",
        b"rocksdb.raw.value.size",
        b"rocksdb.raw.key.size",
        b"rocksdb.num.entries",
        b"rocksdb.compression",
    ] {
        let text = name.escape_ascii();
        assert_eq!(properties.raw.get(name), of_theirs.properties().raw.get(name), "{text}");
    }
}

/// Entries of every kind, with values and columns of up to so many bytes.
pub(super) fn mixed(count: u64, longest: usize) -> Entries {
    let mut random = fastrand::Rng::with_seed(count);
    let mut bytes = |most: usize| -> Vec<u8> {
        let first = random.u8(..);
        (0..random.usize(..=most)).map(|at| first.wrapping_add((at / 7) as u8)).collect()
    };
    let mut entries = Vec::new();
    for n in 0..count {
        let key = format!("key{n:06}");
        let (kind, value) = match n % 7 {
            2 => (ValueType::Deletion, Vec::new()),
            3 => (ValueType::Merge, bytes(longest)),
            5 => {
                let values = [bytes(longest), bytes(longest), bytes(8)];
                let columns: [Column<'_>; 3] =
                    [(b"", &values[0]), (b"large", &values[1]), (b"other", &values[2])];
                (ValueType::WideColumnEntity, entity::encode(&columns))
            }
            _ => (ValueType::Value, bytes(longest)),
        };
        entries.push((InternalKeyBuf::new(key.as_bytes(), n % 5, kind), value));
    }
    entries
}

#[test]
fn tables_of_every_form_keep_values_beside_their_blocks() {
    let entries = mixed(300, 400);
    for (name, settings) in all_settings() {
        if settings.block_align.is_some() || settings.super_block.is_some() {
            continue;
        }
        for from in [0, 100, 1 << 20] {
            let table = build(embedding(from, settings.clone()), &entries, &[("p", "q", 3)]);
            let stats = EmbeddedStats::of(&table.summary.properties).unwrap();
            assert_eq!(stats.is_some(), from < 1 << 20, "{name}, from {from}");
            assert_eq!(check_whole(&table.open()), entries, "{name}, from {from}");
        }
    }
}

#[test]
fn what_contradicts_values_beside_the_blocks_is_refused() {
    let base = TableBuilderSettings::default;
    for settings in [
        TableBuilderSettings { format_version: 6, ..embedding(8, base()) },
        TableBuilderSettings { block_align: Some(4096), ..embedding(8, base()) },
        TableBuilderSettings {
            super_block: Some(crate::sst::SuperBlock { size: 4096, overhead_ratio: 8 }),
            ..embedding(8, base())
        },
    ] {
        let refused = TableBuilder::new(super::support::file(), settings).err().unwrap();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    }
}

/// A value is read in its place also where the family's order pads keys, and numbers are given.
#[test]
fn an_ingested_table_shows_its_values_under_their_number() {
    let user_properties = TableProperties::external();
    let settings = TableBuilderSettings { user_properties, ..small_settings() };
    let table = build(settings, &small(), &[]);
    let read = TableReadSettings { largest_sequence: Some(77), ..TableReadSettings::default() };
    let shown = check_whole(&table.open_with(read));
    let numbered: Entries = small()
        .into_iter()
        .map(|(mut key, value)| {
            let kind = key.as_key().value_type().unwrap();
            key.set_version(77, kind);
            (key, value)
        })
        .collect();
    assert_eq!(shown, numbered);
}

#[test]
fn a_read_from_the_cache_alone_does_not_touch_the_file() {
    let table = build(small_settings(), &small(), &[]).open();
    let sought = InternalKeyBuf::for_seek(b"b", 9);
    let settings = ReadSettings { cache_only: true, ..ReadSettings::default() };
    let stop = |_, _, _: crate::sst::ValueRef<'_>| Ok(ControlFlow::Break(()));
    let error = table.get(sought.as_key(), &settings, stop).unwrap_err();
    assert_eq!(error.code(), Code::Incomplete, "{error}");
}

/// Whoever cuts work into parts counts the values, not only the addresses in the blocks.
#[test]
fn parts_of_a_table_are_cut_by_its_values() {
    let entries: Entries = (0..64)
        .map(|n| entry(&format!("key{n:02}"), 1, ValueType::Value, &"v".repeat(4000)))
        .collect();
    let settings = TableBuilderSettings { block_size: 64, ..TableBuilderSettings::default() };
    let table = build(embedding(100, settings), &entries, &[]).open();
    let anchors = table.anchors(8).unwrap();
    assert!((6..=8).contains(&anchors.len()), "{anchors:?}");
    let sum: u64 = anchors.iter().map(|anchor| anchor.size).sum();
    assert_eq!(sum, table.properties().tail_start_offset);
    let middle = InternalKeyBuf::for_seek(b"key32", 9);
    let offset = table.approximate_offset_of(middle.as_key()).unwrap();
    assert!((110_000..150_000).contains(&offset), "{offset}");
}

/// A value that outlives the cursor that showed it, and one that the cursor goes on from.
#[test]
fn a_pinned_value_stays() {
    let table = build(small_settings(), &small(), &[]).open();
    let mut iter = table.iter(IterSettings::default());
    let sought = InternalKeyBuf::for_seek(b"b", 9);
    iter.seek(sought.as_key());
    let pinned = iter.pin_value().unwrap();
    iter.next();
    assert_ne!(iter.value(), pinned.as_bytes());
    iter.rest();
    drop((iter, table));
    assert_eq!(pinned.as_bytes(), [b'B'; 40]);
}

pub(super) fn built() -> Built {
    build(small_settings(), &small(), &[])
}

pub(super) fn open_bytes(bytes: &[u8]) -> crate::base::Result<std::sync::Arc<Table>> {
    let file = super::support::file();
    file.write_at(0, bytes).unwrap();
    Table::open(file, bytes.len() as u64, TableReadSettings::default())
}
