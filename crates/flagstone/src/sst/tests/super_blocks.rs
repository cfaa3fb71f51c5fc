//! Data blocks that do not lie across the boundaries of super blocks.

use std::sync::Arc;

use super::fixtures::check_whole;
use super::support::{Built, Counted, build, entries};
use crate::base::compression::{CompressionOptions, CompressionType};
use crate::base::{InternalIterator, InternalKeyBuf, ValueType};
use crate::sst::cursor::IndexCursor;
use crate::sst::format::{BlockHandle, IndexType};
use crate::sst::{
    IterSettings, ReadSettings, SuperBlock, Table, TableBuilderSettings, TableReadSettings,
};

type Entries = Vec<(InternalKeyBuf, Vec<u8>)>;

const PAGE: u64 = 4096;

fn paged(compression: CompressionType, overhead_ratio: u64) -> TableBuilderSettings {
    let super_block = Some(SuperBlock { size: PAGE, overhead_ratio });
    TableBuilderSettings { super_block, compression, ..TableBuilderSettings::default() }
}

/// Values of `size` bytes that compress to about half, in each fifty another text.
fn half_compressible(count: u64, size: usize) -> Entries {
    let mut random = fastrand::Rng::with_seed(count);
    let mut value = || {
        let mut value = Vec::new();
        while value.len() < size {
            let start = value.len();
            value.extend((0..50).map(|_| random.u8(b' '..127)));
            value.extend_from_within(start..);
        }
        value.truncate(size);
        value
    };
    (0..count)
        .map(|n| (InternalKeyBuf::new(format!("{n:016}").as_bytes(), n, ValueType::Value), value()))
        .collect()
}

/// Where the data blocks lie, by the index.
fn handles(table: &Table) -> Vec<BlockHandle> {
    let read = ReadSettings::default();
    let mut cursor = IndexCursor::default();
    cursor.seek_to_first(table, &read).unwrap();
    let mut handles = Vec::new();
    while let Some(handle) = cursor.handle(table) {
        handles.push(handle);
        cursor.next(table, &read).unwrap();
    }
    handles
}

/// What the placement of a table's blocks looks like.
struct Placed {
    blocks: usize,
    across: usize,
    padding: u64,
    most_padding: u64,
    size: u64,
}

fn placed(built: &Built, page: u64) -> Placed {
    let (bytes, handles) = (built.bytes(), handles(&built.open()));
    let mut placed =
        Placed { blocks: handles.len(), across: 0, padding: 0, most_padding: 0, size: 0 };
    for BlockHandle { offset, size } in handles {
        assert!(offset >= placed.size, "blocks overlap at {offset}");
        let padding = &bytes[placed.size as usize..offset as usize];
        assert!(padding.iter().all(|&byte| byte == 0), "padding before {offset}");
        placed.padding += padding.len() as u64;
        placed.most_padding = placed.most_padding.max(padding.len() as u64);
        placed.size = BlockHandle { offset, size }.end();
        placed.across += usize::from(offset / page != (placed.size - 1) / page);
    }
    placed
}

#[test]
fn few_blocks_lie_across_pages() {
    for (compression, size, across_max, growth_max) in [
        (CompressionType::Lz4, 100, 0.04, 0.02),
        (CompressionType::Lz4, 400, 0.01, 0.05),
        (CompressionType::Lz4, 800, 0.03, 0.09),
        (CompressionType::Zstd, 100, 0.04, 0.05),
        (CompressionType::None, 100, 0.0, 0.04),
        (CompressionType::Snappy, 30, 0.01, 0.03),
    ] {
        let entries = half_compressible(6000, size);
        let before = build(
            TableBuilderSettings { super_block: None, ..paged(compression, 8) },
            &entries,
            &[],
        );
        let built = build(paged(compression, 8), &entries, &[]);
        let (before, after) = (placed(&before, PAGE), placed(&built, PAGE));
        let part = |placed: &Placed| placed.across as f64 / placed.blocks as f64;
        let what = format!("{compression}, {size} bytes");
        assert!(part(&before) > 0.3 && before.padding == 0, "{what}: {}", part(&before));
        assert!(part(&after) <= across_max, "{what}: {}", part(&after));
        assert!(after.most_padding <= PAGE / 8, "{what}: {}", after.most_padding);
        let growth = after.size as f64 / before.size as f64 - 1.0;
        assert!(growth < growth_max, "{what}: {growth}");
        assert!(check_whole(&built.open()) == entries, "{what}");
    }
}

/// How often the file is read in a scan of the whole table without a cache.
fn reads_of_a_scan(built: &Built, entries: &[(InternalKeyBuf, Vec<u8>)]) -> usize {
    let file = Arc::new(Counted::new(built.file.clone()));
    let table =
        Table::open(file.clone(), built.summary.size, TableReadSettings::default()).unwrap();
    let opened = file.reads();
    let mut iter = table.iter(IterSettings::default());
    iter.seek_to_first();
    for (key, value) in entries {
        assert!(iter.valid() && iter.key() == key.as_key() && iter.value() == value);
        iter.next();
    }
    assert!(!iter.valid());
    iter.status().unwrap();
    file.reads() - opened
}

/// A scan never read ahead: each block was a read of its own, where the one before ended in
/// padding.
#[test]
fn scans_read_ahead_past_padding() {
    let entries = half_compressible(6000, 800);
    let unpadded = TableBuilderSettings { super_block: None, ..paged(CompressionType::Lz4, 8) };
    let before = reads_of_a_scan(&build(unpadded.clone(), &entries, &[]), &entries);
    let aligned = TableBuilderSettings {
        block_align: Some(4096),
        compression: CompressionType::None,
        ..unpadded
    };
    for settings in [paged(CompressionType::Lz4, 8), aligned] {
        let built = build(settings, &entries, &[]);
        let blocks = handles(&built.open()).len();
        let reads = reads_of_a_scan(&built, &entries);
        assert!(reads * 20 < blocks, "{reads} reads of {blocks} blocks");
        let largest = 256 << 10;
        let more = built.summary.size / largest + 1;
        assert!(reads <= before + more as usize, "{reads} reads, {before} without padding");
    }
}

#[test]
fn no_more_is_padding_than_is_allowed() {
    let entries = half_compressible(3000, 300);
    for ratio in [4, 16, 128, 0] {
        let super_block = (ratio > 0).then_some(SuperBlock { size: PAGE, overhead_ratio: ratio });
        let settings = TableBuilderSettings { super_block, ..paged(CompressionType::Lz4, 8) };
        let placed = placed(&build(settings, &entries, &[]), PAGE);
        let most = PAGE.checked_div(ratio).unwrap_or(0);
        assert!(placed.most_padding <= most, "{ratio}: {}", placed.most_padding);
        assert_eq!(placed.padding > 0, most > 0, "{ratio}");
    }
}

#[test]
fn blocks_larger_than_a_page_are_not_moved() {
    let entries = half_compressible(200, 20_000);
    let built = build(paged(CompressionType::None, 4), &entries, &[]);
    assert_eq!(placed(&built, PAGE).padding, 0);
}

#[test]
fn blocks_held_back_for_a_dictionary_are_padded() {
    let compression_options =
        CompressionOptions { max_dict_bytes: 4096, ..CompressionOptions::default() };
    let settings = TableBuilderSettings { compression_options, ..paged(CompressionType::Zstd, 4) };
    let entries = half_compressible(3000, 100);
    let built = build(settings, &entries, &[]);
    assert!(placed(&built, PAGE).padding > 0);
    assert!(check_whole(&built.open()) == entries);
}

#[test]
fn whatever_the_settings_are_everything_is_read_back() {
    let entries = entries(400);
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let page = 1 << random.u32(6..14);
        let compressions = [CompressionType::None, CompressionType::Lz4, CompressionType::Zstd];
        let types =
            [IndexType::BinarySearch, IndexType::TwoLevel, IndexType::BinarySearchWithFirstKey];
        let settings = TableBuilderSettings {
            super_block: Some(SuperBlock { size: page, overhead_ratio: random.u64(4..200) }),
            block_size: random.usize(1..5000),
            block_size_deviation: random.usize(0..100),
            block_restart_interval: random.usize(1..20),
            index_block_restart_interval: random.usize(1..20),
            index_type: types[random.usize(..3)],
            metadata_block_size: random.usize(1..2000),
            format_version: random.u32(2..8),
            data_block_hash_ratio: random.bool().then_some(0.75),
            compression: compressions[random.usize(..3)],
            ..TableBuilderSettings::default()
        };
        let padding_max = page / settings.super_block.unwrap().overhead_ratio;
        let built = build(settings, &entries, &[]);
        assert!(placed(&built, page).most_padding <= padding_max, "seed {seed}");
        let table = built.open();
        assert!(check_whole(&table) == entries, "seed {seed}");
        assert!(table.verify(&mut |fault| panic!("seed {seed}: {fault:?}")), "seed {seed}");
    }
}
