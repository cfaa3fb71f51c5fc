use std::path::Path;

use super::*;
use crate::base::{InternalKeyBuf, ValueType};
use crate::env::memory::MemoryFileSystem;
use crate::env::{Env, FileSystem, IoMode, read_file};
use crate::sst::{TableBuilder, TableBuilderSettings, TableSummary};

/// Nobody can have a thread.
struct Alone;

impl Spawn for Alone {
    fn spawn(&self, name: &str, _: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Join>> {
        Err(Error::not_supported(format!("no thread {name} here")))
    }
}

fn settings(compression: CompressionType) -> TableBuilderSettings {
    TableBuilderSettings { compression, ..TableBuilderSettings::default() }
}

/// Values of up to so many bytes, of which every third does not shrink.
fn entries(count: u64, size_max: usize) -> impl Iterator<Item = (InternalKeyBuf, Vec<u8>)> {
    let mut random = fastrand::Rng::with_seed(count);
    (0..count).map(move |number| {
        let mut value = vec![b'v'; random.usize(0..size_max)];
        if number % 3 == 0 {
            random.fill(&mut value);
        }
        (InternalKeyBuf::new(format!("{number:08}").as_bytes(), number, ValueType::Value), value)
    })
}

/// The bytes of the table.
fn table(
    settings: TableBuilderSettings,
    (spawner, threads): (Arc<dyn Spawn>, usize),
    entries: impl Iterator<Item = (InternalKeyBuf, Vec<u8>)>,
) -> Result<(Vec<u8>, TableSummary)> {
    let (fs, path) = (MemoryFileSystem::new(), Path::new("/d/000007.sst"));
    fs.create_directory(Path::new("/d"))?;
    let file = fs.create_writable(path, IoMode::Buffered)?;
    let builder = TableBuilder::new(file, settings)?;
    let mut builder = builder.compressing_in_parallel(&spawner, threads)?;
    for (key, value) in entries {
        builder.add(key.as_key(), &value)?;
    }
    let summary = builder.finish()?;
    Ok((read_file(&fs, path, u64::MAX)?, summary))
}

#[test]
fn a_table_is_the_same_as_without_a_thread() {
    for (count, size_max) in [(0, 1), (1, 10), (20_000, 100), (300, 20_000), (9, 3 << 20)] {
        for kind in [CompressionType::None, CompressionType::Lz4, CompressionType::Snappy] {
            let made = |threads| {
                let threads = (Env::os().spawner, threads);
                table(settings(kind), threads, entries(count, size_max)).unwrap()
            };
            let (none, summary) = made(0);
            for threads in [1, 2, 5] {
                let same = made(threads).0 == none;
                assert!(same, "{count} values of up to {size_max} bytes, {kind}, {threads}");
            }
            assert_eq!(summary.properties.num_entries, count);
        }
    }
    let with_index = |ratio| TableBuilderSettings {
        data_block_hash_ratio: Some(ratio),
        prefix_extractor: None,
        verify_compression: true,
        ..settings(CompressionType::Zstd)
    };
    let made = |threads| {
        table(with_index(0.75), (Env::os().spawner, threads), entries(5000, 200)).unwrap().0
    };
    assert!(made(0) == made(1) && made(0) == made(3));
}

#[test]
fn a_small_table_has_no_thread_and_a_large_one_says_that_it_can_have_none() {
    let made = |count| {
        table(settings(CompressionType::Lz4), (Arc::new(Alone), 1), entries(count, 1000)).map(drop)
    };
    made(100).unwrap();
    let error = made(2000).unwrap_err();
    assert!(error.to_string().contains("no thread flagstone-compress here"), "{error}");
}

/// What waits is counted: who cuts tables by their size would make them too large.
#[test]
fn blocks_that_wait_are_part_of_the_size() {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/d")).unwrap();
    let file = fs.create_writable(Path::new("/d/000007.sst"), IoMode::Buffered).unwrap();
    let builder = TableBuilder::new(file, settings(CompressionType::Lz4)).unwrap();
    let mut builder = builder.compressing_in_parallel(&Env::os().spawner, 1).unwrap();
    let (mut raw, most) = (0, (1 + BATCHES_WAITING + 2) * BATCH_SIZE + 100_000);
    for (number, (key, value)) in entries(3000, 2000).enumerate() {
        builder.add(key.as_key(), &value).unwrap();
        raw += value.len() as u64;
        let size = builder.estimated_size();
        assert!(size <= raw + 40 * (number as u64 + 2), "{number}: {size} of {raw}");
        assert!(size >= raw.min(most as u64) / 4, "{number}: {size} of {raw}");
    }
    assert!(builder.estimated_size() < raw * 3 / 4);
}

/// Dropped half way, it waits for its thread, and no longer.
#[test]
fn a_table_that_is_given_up_leaves_no_thread_behind() {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/d")).unwrap();
    let file = fs.create_writable(Path::new("/d/000007.sst"), IoMode::Buffered).unwrap();
    let builder = TableBuilder::new(file, settings(CompressionType::Lz4)).unwrap();
    let mut builder = builder.compressing_in_parallel(&Env::os().spawner, 1).unwrap();
    for (key, value) in entries(700, 2000) {
        builder.add(key.as_key(), &value).unwrap();
    }
    let shared =
        builder.codec.parallel.as_ref().map(|parallel| Arc::downgrade(&parallel.shared)).unwrap();
    drop(builder);
    assert_eq!(shared.strong_count(), 0);
}

#[test]
fn a_garbled_block_is_found_whoever_has_compressed_it() {
    for count in [1, 3, 400] {
        let fs = MemoryFileSystem::new();
        fs.create_directory(Path::new("/d")).unwrap();
        let file = fs.create_writable(Path::new("/d/000007.sst"), IoMode::Buffered).unwrap();
        let verifying =
            TableBuilderSettings { verify_compression: true, ..settings(CompressionType::Lz4) };
        let builder = TableBuilder::new(file, verifying).unwrap();
        let mut builder = builder.compressing_in_parallel(&Env::os().spawner, 1).unwrap();
        let parallel = builder.codec.parallel.as_mut().unwrap();
        for compressor in std::iter::once(&mut parallel.own).chain(&mut parallel.threads) {
            compressor.garble(b"vvvvvvvvvvvvvvvvvvvvvvvvv");
        }
        let mut values = entries(count + 1, 9000).skip(1);
        let added = values.try_for_each(|(key, value)| builder.add(key.as_key(), &value));
        let error = added.and_then(|()| builder.finish().map(drop)).unwrap_err();
        assert!(
            error.is_corruption() && error.to_string().contains("000007.sst"),
            "{count}: {error}"
        );
    }
}
