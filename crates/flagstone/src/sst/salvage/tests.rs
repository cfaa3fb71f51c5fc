//! Tables with damage of every kind: what is intact comes out, and nothing else.

mod beside_blocks;
mod within_values;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::base::ValueType;
use crate::base::compression::{CompressionOptions, CompressionType};
use crate::env::failing_pages::test_support::BadSector;
use crate::env::memory::MemoryFileSystem;
use crate::env::{FileSystem, IoMode, WritableFile};
use crate::sst::filter::FilterPolicy;
use crate::sst::{Footer, IndexShortening, SuperBlock, TableBuilder, TableBuilderSettings};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn file_of(bytes: &[u8]) -> Arc<dyn WritableFile> {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/db")).unwrap();
    let file = fs.create_writable(Path::new("/db/000009.sst"), IoMode::Buffered).unwrap();
    file.write_at(0, bytes).unwrap();
    file
}

fn table(settings: TableBuilderSettings, keys: u64) -> Vec<u8> {
    table_of(settings, keys, |random| (0..random.usize(..60)).map(|_| random.u8(..20)).collect())
}

fn table_of(
    settings: TableBuilderSettings,
    keys: u64,
    value: impl Fn(&mut fastrand::Rng) -> Vec<u8>,
) -> Vec<u8> {
    let file = file_of(b"");
    let mut builder = TableBuilder::new(file.clone(), settings).unwrap();
    let mut random = fastrand::Rng::with_seed(keys);
    for key in 0..keys {
        let internal =
            InternalKeyBuf::new(format!("key{key:05}").as_bytes(), 100 + key, ValueType::Value);
        builder.add(internal.as_key(), &value(&mut random)).unwrap();
    }
    builder.add_range_tombstone(b"m", b"n", 77);
    let size = builder.finish().unwrap().size as usize;
    let mut bytes = vec![0; size];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

fn survey(bytes: &[u8]) -> Arc<TableRemains> {
    let comparator = |_: Option<&_>| Ok(Comparator::Bytewise);
    let settings = SalvageSettings { comparator: &comparator, largest_sequence: None };
    Arc::new(TableRemains::survey(file_of(bytes), bytes.len() as u64, &settings).unwrap())
}

fn entries(remains: &Arc<TableRemains>) -> Entries {
    let mut walk = remains.entries();
    let mut found = Vec::new();
    while walk.advance().unwrap() {
        let (key, value) = walk.entry();
        found.push((key.as_bytes().to_vec(), value.to_vec()));
    }
    found
}

fn settings(compression: CompressionType, format_version: u32) -> TableBuilderSettings {
    TableBuilderSettings {
        compression,
        format_version,
        block_size: 400,
        db_identity: "db".to_string(),
        session_identity: "session".to_string(),
        ..TableBuilderSettings::default()
    }
}

/// From format version 6 on those without checksums gave nothing: what their trailers hold depends
/// on the block's place.
#[test]
fn a_sound_table_is_whole() {
    let kinds = [ChecksumType::None, ChecksumType::Crc32c, ChecksumType::Xxh3];
    for (kind, version, checksum) in CompressionType::ALL
        .into_iter()
        .flat_map(|kind| [2, 5, 6, 7].map(|version| (kind, version)))
        .flat_map(|(kind, version)| kinds.map(|checksum| (kind, version, checksum)))
    {
        let remains =
            survey(&table(TableBuilderSettings { checksum, ..settings(kind, version) }, 200));
        let what = format!(
            "{kind}, version {version}, {checksum:?}: {:?} {:?}",
            remains.faults, remains.harmless
        );
        assert!(
            remains.faults.is_empty() && remains.harmless.is_empty() && remains.is_sorted,
            "{what}"
        );
        assert_eq!((remains.entries, remains.tombstones.len()), (200, 1), "{what}");
        assert_eq!(remains.largest_sequence, 299, "{what}");
        assert_eq!(remains.bounds, Some((b"key00000".to_vec(), b"key00199".to_vec())), "{what}");
    }
}

/// Of a table of which a device had lost all but the index, each block was told by itself: of many,
/// in gigabytes of memory.
#[test]
fn damaged_blocks_in_a_row_are_told_together() {
    let mut bytes = table(settings(CompressionType::None, 5), 2000);
    let blocks = survey(&bytes).blocks.clone();
    assert!(blocks.len() > 100);
    let kept = &blocks[50];
    for block in blocks.iter().filter(|block| *block != kept) {
        bytes[block.offset as usize + 3] ^= 1;
    }
    let remains = survey(&bytes);
    assert_eq!(remains.blocks, [*kept]);
    let ranges: Vec<_> =
        remains.faults.iter().map(|fault| fault.key_range.clone().unwrap()).collect();
    assert_eq!(ranges.len(), 2 * TOLD_IN_A_ROW);
    let gaps = ranges.windows(2).filter(|pair| pair[0].1 != pair[1].0).count();
    assert_eq!(gaps, 1, "where the intact one is");
    assert_eq!(
        (&ranges[0].0[..], ranges[ranges.len() - 1].1 >= b"key01999".to_vec()),
        (&b""[..], true)
    );
    let told = remains.faults[TOLD_IN_A_ROW - 1].error.to_string();
    assert!(told.contains("the first of 35 damaged blocks in a row"), "{told}");
    assert!(!remains.faults[TOLD_IN_A_ROW - 2].error.to_string().contains("in a row"));
}

/// Behind the blocks of a lost part of the index a new row begins: its number was said of one of
/// its blocks, and that of the row before of none.
#[test]
fn rows_of_damaged_blocks_with_a_gap_between_are_told_apart() {
    let partitioned = TableBuilderSettings {
        index_type: IndexType::TwoLevel,
        metadata_block_size: 300,
        ..settings(CompressionType::None, 5)
    };
    let mut bytes = table(partitioned, 2000);
    let blocks = survey(&bytes).blocks.clone();
    blocks.iter().for_each(|block| bytes[block.offset as usize + 3] ^= 1);
    let end = blocks[blocks.len() - 1];
    let mut lost = 0;
    for at in ((end.offset + end.size) as usize..bytes.len()).step_by(60) {
        bytes[at] ^= 1;
        let remains = survey(&bytes);
        bytes[at] ^= 1;
        let ranges: Vec<_> =
            remains.faults.iter().filter_map(|fault| fault.key_range.as_ref()).collect();
        let gaps = ranges.windows(2).filter(|pair| pair[0].1 != pair[1].0);
        let gaps: Vec<_> = gaps.map(|pair| &pair[0].1[..]).collect();
        if let [before] = gaps[..]
            && (&b"key00700"[..]..&b"key01300"[..]).contains(&before)
        {
            lost += 1;
            let rows =
                remains.faults.iter().filter(|fault| fault.error.to_string().contains("in a row"));
            assert_eq!(rows.count(), 2, "one before {before:?}, and one behind");
        }
    }
    assert!(lost > 0);
}

/// The rest of the table was given up for a block that could not be read a second time, as of a
/// device that is failing.
#[test]
fn a_block_that_fails_when_it_is_read_again_costs_no_other() {
    let bytes = table(settings(CompressionType::None, 5), 300);
    let file = file_of(&bytes);
    let comparator = |_: Option<&_>| Ok(Comparator::Bytewise);
    let settings = SalvageSettings { comparator: &comparator, largest_sequence: None };
    let remains =
        Arc::new(TableRemains::survey(file.clone(), bytes.len() as u64, &settings).unwrap());
    let all = entries(&remains);
    assert!(remains.blocks.len() > 8);
    for block in [2, 3, 4, 7].map(|block| remains.blocks[block]) {
        file.write_at(block.offset + 3, &[0xff]).unwrap();
    }
    let (mut walk, mut errors, mut blocks) = (remains.entries(), Vec::new(), BTreeSet::new());
    let mut found = Vec::new();
    while walk.advance_past(&mut |error| errors.push(error.to_string())) {
        let (key, value) = walk.entry();
        found.push((key.as_bytes().to_vec(), value.to_vec()));
        blocks.insert(walk.block().unwrap().offset);
    }
    assert!(
        errors.len() == 2 && errors[0].contains("the first of 3 blocks in a row"),
        "{errors:?}"
    );
    assert_eq!(blocks.len(), remains.blocks.len() - 4);
    assert!(found.iter().all(|entry| all.contains(entry)) && found.last() == all.last());
}

#[test]
fn without_footer_all_blocks_are_found() {
    for kind in CompressionType::ALL {
        for version in [2, 4, 5, 6, 7] {
            for checksum in [ChecksumType::Crc32c, ChecksumType::Xxh3] {
                let bytes =
                    table(TableBuilderSettings { checksum, ..settings(kind, version) }, 200);
                let cut = survey(&bytes[..bytes.len() - 30]);
                assert_eq!(entries(&cut), entries(&survey(&bytes)), "{kind}, version {version}");
                assert_eq!(cut.tombstones.len(), 1, "{kind}, version {version}");
                assert!(cut.is_sorted && !cut.harmless.is_empty());
                assert!(cut.faults.is_empty(), "the properties count as many: {:?}", cut.faults);
            }
        }
    }
}

#[test]
fn blocks_with_padding_between_are_found_without_footer() {
    for kind in CompressionType::ALL {
        for version in [5, 7] {
            let super_block = Some(SuperBlock { size: 1024, overhead_ratio: 4 });
            let bytes = table(TableBuilderSettings { super_block, ..settings(kind, version) }, 300);
            let whole = survey(&bytes);
            assert!(
                whole.faults.is_empty() && whole.harmless.is_empty(),
                "{kind}: {:?}",
                whole.faults
            );
            let follow =
                whole.blocks.windows(2).filter(|pair| pair[0].end() == pair[1].offset).count();
            assert!(follow + 3 < whole.blocks.len(), "{kind}: {:?}", whole.blocks);
            let cut = survey(&bytes[..bytes.len() - 30]);
            assert_eq!(entries(&cut).len(), 300, "{kind}, version {version}");
            assert_eq!(entries(&cut), entries(&whole), "{kind}, version {version}");
            assert!(cut.faults.is_empty(), "{kind}: {:?}", cut.faults);
        }
    }
}

/// From format version 6 on those in front of the first two without padding between were lost: the
/// next block, by which one is known, was looked for right behind it.
#[test]
fn of_a_table_with_padding_that_is_cut_off_all_versions_yield_the_same() {
    let super_block = Some(SuperBlock { size: 4096, overhead_ratio: 4 });
    for kind in [
        CompressionType::None,
        CompressionType::Lz4,
        CompressionType::Snappy,
        CompressionType::Zstd,
    ] {
        let tables = [5, 6, 7].map(|version| {
            let made =
                TableBuilderSettings { super_block, block_size: 4000, ..settings(kind, version) };
            table_of(made, 200, |random| {
                let half: Vec<u8> = (0..450).map(|_| random.u8(..)).collect();
                [&half[..], &half].concat()
            })
        });
        let end = tables[0].len() / 2;
        let [of_5, of_6, of_7] = tables.map(|bytes| entries(&survey(&bytes[..end])));
        assert!(of_5.len() > 80, "{kind}: {}", of_5.len());
        assert!(
            of_6 == of_5 && of_7 == of_5,
            "{kind}: {} and {} of {}",
            of_6.len(),
            of_7.len(),
            of_5.len()
        );
    }
}

/// From format version 6 on those in front of the first two neighbours were lost: only these tell
/// what checksums depend on.
#[test]
fn intact_blocks_between_damaged_ones_are_found_by_what_later_ones_tell() {
    for version in [5, 6, 7] {
        for super_block in [None, Some(SuperBlock { size: 1024, overhead_ratio: 4 })] {
            let made =
                TableBuilderSettings { super_block, ..settings(CompressionType::None, version) };
            let bytes = table(made, 300);
            let mut blocks = survey(&bytes).blocks.clone();
            let mut damaged = bytes[..bytes.len() / 2].to_vec();
            for at in [1, 3, 5] {
                damaged[blocks[at].offset as usize + 20] ^= 0x55;
            }
            for at in [5, 3, 1] {
                blocks.remove(at);
            }
            blocks.retain(|block| block.end() <= damaged.len() as u64);
            assert!(blocks.len() > 6);
            assert_eq!(survey(&damaged).blocks, blocks, "version {version}, {super_block:?}");
        }
    }
}

#[test]
fn a_cut_off_table_yields_the_blocks_before_the_cut() {
    let bytes = table(settings(CompressionType::Lz4, 5), 300);
    let all = entries(&survey(&bytes));
    let mut sizes = BTreeSet::new();
    for length in (0..bytes.len()).step_by(97) {
        let cut = survey(&bytes[..length]);
        let found = entries(&cut);
        assert_eq!(found, all[..found.len()], "cut off at {length}");
        assert!(!cut.faults.is_empty() || found.len() == all.len());
        sizes.insert(found.len());
    }
    assert!(sizes.len() > 10, "{sizes:?}");
}

#[test]
fn every_flipped_byte_costs_at_most_its_block() {
    for kind in [CompressionType::None, CompressionType::Snappy, CompressionType::Zstd] {
        let bytes = table(settings(kind, 5), 60);
        let all = entries(&survey(&bytes));
        let blocks = survey(&bytes).blocks.clone();
        for at in (0..bytes.len()).step_by(3) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let remains = survey(&damaged);
            let intact: Vec<_> = blocks
                .iter()
                .filter(|block| !(block.offset..block.end()).contains(&(at as u64)))
                .copied()
                .collect();
            assert_eq!(remains.blocks, intact, "{kind}, byte {at}");
            assert!(entries(&remains).iter().all(|entry| all.contains(entry)), "{kind}, byte {at}");
            assert!(
                remains.blocks.len() == blocks.len() || !remains.faults.is_empty(),
                "{kind}, byte {at}"
            );
        }
    }
}

/// A footer that named another kind of checksum cost the whole table, or had damaged blocks
/// believed.
#[test]
fn the_kind_of_checksum_that_a_footer_names_need_not_be_right() {
    let checksums =
        [ChecksumType::Crc32c, ChecksumType::XxHash, ChecksumType::XxHash64, ChecksumType::Xxh3];
    for (checksum, version) in
        checksums.into_iter().flat_map(|kind| [5, 6, 7].map(|version| (kind, version)))
    {
        let bytes = table(
            TableBuilderSettings { checksum, ..settings(CompressionType::Lz4, version) },
            200,
        );
        let (all, blocks) = (entries(&survey(&bytes)), survey(&bytes).blocks.clone());
        let kind = bytes.len() - Footer::SIZE_MAX;
        assert_eq!(bytes[kind], checksum as u8);
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[kind] ^= 1 << bit;
            assert_eq!(
                entries(&survey(&damaged)),
                all,
                "{checksum:?}, version {version}, bit {bit}"
            );
            damaged[blocks[1].offset as usize + 9] ^= 0x20;
            let remains = survey(&damaged);
            assert_eq!(
                remains.blocks,
                [&blocks[..1], &blocks[2..]].concat(),
                "{checksum:?}, version {version}, bit {bit}"
            );
            assert!(!remains.faults.is_empty(), "{checksum:?}, version {version}, bit {bit}");
        }
    }
}

/// Where neither its blocks nor what lies between them and the index is intact, the index passed
/// for entries.
#[test]
fn keys_of_an_index_are_no_entries_whatever_else_is_lost() {
    let filter_policy = Some(FilterPolicy::Bloom { bits_per_key: 10.0 });
    // Shortened keys tell; of others the places must, which padding keeps from following one
    // another.
    let padded = Some(SuperBlock { size: 1024, overhead_ratio: 4 });
    let shortenings = [IndexShortening::Separators, IndexShortening::None];
    for (super_block, index_shortening) in
        [None, padded].into_iter().flat_map(|at| shortenings.map(|is| (at, is)))
    {
        let made = TableBuilderSettings {
            filter_policy,
            super_block,
            ..settings(CompressionType::None, 2)
        };
        let bytes = table(TableBuilderSettings { index_shortening, ..made }, 200);
        let sound = survey(&bytes);
        let mut damaged = bytes.clone();
        for block in &sound.blocks {
            damaged[block.offset as usize + 20] ^= 0x55;
        }
        let last = sound.blocks.last().expect("there are some").end() as usize;
        // The filter, and all from the properties on.
        damaged[last + 10] ^= 1;
        let name = |bytes: &[u8]| bytes == b"rocksdb.";
        let properties = bytes.windows(8).rposition(name).expect("properties");
        damaged[properties..].fill(0);
        let first = bytes[last..].windows(8).position(name).expect("properties") + last;
        damaged[first..properties].fill(0);
        assert_eq!(entries(&survey(&damaged)), [], "{super_block:?}, {index_shortening:?}");
    }
}

/// It passed for entries, too, where the index was known, and only the metaindex was not: keys that
/// are not shortened say nothing, and a filter lies between the index and its blocks.
#[test]
fn an_index_that_is_known_is_not_taken_for_entries() {
    let filter_policy = Some(FilterPolicy::Bloom { bits_per_key: 10.0 });
    // Of three keys there is one block, and a filter behind it: what the index has for it came out
    // as an entry.
    for (keys, version) in
        [3, 10, 30, 200].into_iter().flat_map(|keys| [2, 5, 6].map(|version| (keys, version)))
    {
        let made =
            TableBuilderSettings { filter_policy, ..settings(CompressionType::None, version) };
        let bytes = table(made, keys);
        let sound = survey(&bytes);
        let mut damaged = bytes.clone();
        for block in &sound.blocks {
            damaged[block.offset as usize + 20] ^= 0x55;
        }
        let metaindex = sound.source.footer.metaindex;
        damaged[metaindex.offset as usize + 3] ^= 0x10;
        assert_eq!(entries(&survey(&damaged)), [], "{keys} keys, version {version}");
        // Where the properties are lost, too, its places follow one another up to the filter.
        let order = b"leveldb.BytewiseComparator";
        let properties =
            bytes.windows(order.len()).rposition(|window| window == order).expect("properties");
        damaged[properties] ^= 1;
        let remains = survey(&damaged);
        assert_eq!(entries(&remains), [], "{keys} keys, version {version}, no properties");
        assert!(!remains.faults.is_empty());
    }
}

#[test]
fn blocks_between_damage_are_found_without_an_index() {
    for kind in [
        CompressionType::None,
        CompressionType::Lz4,
        CompressionType::Snappy,
        CompressionType::Zstd,
    ] {
        let bytes = table(settings(kind, 5), 300);
        let sound = survey(&bytes);
        let damaged_blocks = [0, 3, 4, 7];
        let mut damaged = bytes[..bytes.len() - 100].to_vec();
        for at in damaged_blocks {
            damaged[sound.blocks[at].offset as usize + 20] ^= 0x55;
        }
        let expected: Vec<_> = sound
            .blocks
            .iter()
            .enumerate()
            .filter(|(at, _)| !damaged_blocks.contains(at))
            .map(|(_, block)| *block)
            .collect();
        let remains = survey(&damaged);
        assert_eq!(remains.blocks, expected, "{kind}");
        assert!(!remains.faults.is_empty());
    }
}

#[test]
fn blocks_compressed_with_a_dictionary_are_read_by_it() {
    let options = CompressionOptions { max_dict_bytes: 1000, ..CompressionOptions::default() };
    let made =
        TableBuilderSettings { compression_options: options, ..settings(CompressionType::Zstd, 5) };
    let bytes = table(made, 300);
    let all = entries(&survey(&bytes));
    assert_eq!(entries(&survey(&bytes[..bytes.len() - 10])), all);
    let cut = survey(&bytes[..bytes.len() / 2]);
    assert!(
        entries(&cut).is_empty() && !cut.faults.is_empty(),
        "the dictionary is gone: blocks are reported"
    );
}

#[test]
fn random_bytes_are_no_table() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let bytes: Vec<u8> = (0..random.usize(..5000)).map(|_| random.u8(..)).collect();
        let remains = survey(&bytes);
        assert_eq!(remains.entries, 0);
        assert!(!remains.faults.is_empty());
    }
}

/// One sector of the footer or the index, and the whole table was given up; of blocks, none but
/// those that lie there.
#[test]
fn a_sector_that_cannot_be_read_costs_what_lay_there() {
    let partitioned = TableBuilderSettings {
        index_type: IndexType::TwoLevel,
        metadata_block_size: 300,
        ..settings(CompressionType::Lz4, 5)
    };
    let bytes = table(partitioned, 5000);
    let size = bytes.len() as u64;
    let all: BTreeSet<_> = entries(&survey(&bytes)).into_iter().collect();
    for bad in [size - 10..size, size - 5000..size - 4500, 20_000..20_512] {
        let file = Arc::new(BadSector(file_of(&bytes).into(), bad.clone()));
        let comparator = |_: Option<&_>| Ok(Comparator::Bytewise);
        let settings = SalvageSettings { comparator: &comparator, largest_sequence: None };
        let remains =
            Arc::new(TableRemains::survey(file, size, &settings).expect("what is left of it"));
        let found = entries(&remains);
        assert!(found.len() > all.len() * 9 / 10, "{bad:?}: {} of {}", found.len(), all.len());
        assert!(found.iter().all(|entry| all.contains(entry)), "{bad:?}");
        assert!(!remains.faults.is_empty() || found.len() == all.len(), "{bad:?}");
    }
}

/// The entries were taken for the oldest that there are, and nothing was said.
#[test]
fn of_an_ingested_table_whose_own_sequence_number_is_damaged_the_manifest_says_it() {
    let ingested = |stored: u64, version: u32| {
        let property = |name: &str, value: &[u8]| (name.as_bytes().to_vec(), value.to_vec());
        let file = file_of(b"");
        let mut settings = settings(CompressionType::None, 5);
        settings.user_properties = vec![
            property("rocksdb.external_sst_file.global_seqno", &stored.to_le_bytes()),
            property("rocksdb.external_sst_file.version", &version.to_le_bytes()),
        ];
        let mut builder = TableBuilder::new(file.clone(), settings).unwrap();
        builder.add(InternalKeyBuf::new(b"key", 0, ValueType::Value).as_key(), b"value").unwrap();
        let size = builder.finish().unwrap().size;
        move |largest_sequence| {
            let comparator = |_: Option<&_>| Ok(Comparator::Bytewise);
            let settings = SalvageSettings { comparator: &comparator, largest_sequence };
            let remains = Arc::new(TableRemains::survey(file.clone(), size, &settings).unwrap());
            let mut walk = remains.entries();
            assert!(walk.advance().unwrap());
            let told = remains.faults.iter().map(|fault| &fault.error).chain(&remains.harmless);
            let told: Vec<String> = told.map(ToString::to_string).collect();
            (walk.entry().0.sequence(), remains.faults.len(), told.join(" "))
        }
    };
    assert_eq!(ingested(7, 2)(Some(7)), (7, 0, String::new()));
    assert_eq!(ingested(0, 2)(Some(7)), (7, 0, String::new()));
    assert_eq!(ingested(7, 2)(None), (7, 0, String::new()));
    let (sequence, faults, told) = ingested(6, 2)(Some(7));
    assert_eq!((sequence, faults), (7, 0));
    assert!(told.contains("the MANIFEST says 7") && told.contains("000009.sst"), "{told}");
    let (sequence, faults, told) = ingested(7, 3)(Some(7));
    assert_eq!((sequence, faults), (7, 0), "{told}");
    assert!(told.contains("version"), "{told}");
    // Then nothing says it, and that is a loss.
    let (sequence, faults, told) = ingested(7, 3)(None);
    assert_eq!((sequence, faults), (0, 1), "{told}");
}

/// Its entries were taken for the oldest that there are: what is older came out in their place.
#[test]
fn of_an_ingested_table_that_has_lost_its_properties_the_manifest_says_how_new_it_is() {
    let remains_of = |stored: u64, keeps_properties: bool| {
        let mut settings = settings(CompressionType::None, 5);
        settings.user_properties =
            vec![(b"rocksdb.external_sst_file.version".to_vec(), 2u32.to_le_bytes().to_vec())];
        let file = file_of(b"");
        let mut builder = TableBuilder::new(file.clone(), settings).unwrap();
        builder
            .add(InternalKeyBuf::new(b"key", stored, ValueType::Value).as_key(), b"value")
            .unwrap();
        builder.add_range_tombstone(b"m", b"n", stored);
        let mut bytes = vec![0; builder.finish().unwrap().size as usize];
        file.read_at(0, &mut bytes).unwrap();
        let name = b"external_sst_file";
        let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
        bytes[at] ^= u8::from(!keeps_properties);
        let mut remains = Arc::into_inner(survey(&bytes)).unwrap();
        remains.date(7);
        let tombstones: Vec<_> =
            remains.tombstones.iter().map(|tombstone| tombstone.sequence).collect();
        let remains = Arc::new(remains);
        let mut walk = remains.entries();
        assert!(walk.advance().unwrap());
        (walk.entry().0.sequence(), tombstones, remains.is_ingested())
    };
    assert_eq!(remains_of(0, false), (7, vec![7], true));
    assert_eq!(remains_of(5, false), (5, vec![5], false), "they have their own");
    assert_eq!(remains_of(0, true), (0, vec![0], false), "the properties say");
}
