use super::*;
use crate::base::{InternalKeyBuf, MAX_SEQUENCE_NUMBER, ValueType};
use crate::sst::format::IndexType;
use crate::sst::settings::IndexShortening;

fn key(user: &[u8], sequence: u64) -> InternalKeyBuf {
    InternalKeyBuf::new(user, sequence, ValueType::Value)
}

fn builder(index_type: IndexType, restart_interval: usize) -> IndexBuilder {
    IndexBuilder::new(IndexBuilderSettings {
        comparator: Comparator::Bytewise,
        index_type,
        shortening: IndexShortening::Separators,
        restart_interval,
        partition_size: 100,
        user_keys: true,
        delta_values: true,
    })
}

fn decode(bytes: &[u8], flavor: IndexFlavor) -> Result<IndexBlock> {
    IndexBlock::decode(&Block::new(bytes)?, flavor, &Comparator::Bytewise, 1 << 40)
}

/// Blocks of two keys each; every key is found in its block.
fn check(user_keys: &[Vec<u8>], restart_interval: usize, index_type: IndexType) {
    let mut builder = builder(index_type, restart_interval);
    let blocks: Vec<_> = user_keys.chunks(2).collect();
    let mut offset = 0;
    let mut handles = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        let handle = BlockHandle { offset, size: 100 + (at as u64 * 37) % 50 };
        offset = handle.end();
        handles.push(handle);
        let first = key(&block[0], 5);
        let last = key(&block[block.len() - 1], 5);
        let next = blocks.get(at + 1).map(|next| key(&next[0], 5));
        builder.add_block(
            first.as_bytes(),
            last.as_key(),
            next.as_ref().map(InternalKeyBuf::as_key),
            handle,
        );
    }
    let mut written = Vec::new();
    builder
        .finish(|block| {
            written.extend_from_slice(block);
            Ok(BlockHandle { offset: 0, size: block.len() as u64 })
        })
        .unwrap();
    let index = decode(&written, builder.flavor()).unwrap();
    assert_eq!(index.len(), blocks.len());
    for (at, block) in blocks.iter().enumerate() {
        for user_key in *block {
            for sequence in [0, 5, MAX_SEQUENCE_NUMBER] {
                let found = index.seek(InternalKeyBuf::for_seek(user_key, sequence).as_key());
                let expected = if sequence < 5 && index.seek(key(user_key, 5).as_key()) != found {
                    found
                } else {
                    at
                };
                assert_eq!(
                    (found, index.handle(found)),
                    (expected, handles[expected]),
                    "{user_key:?}@{sequence}"
                );
            }
            assert_eq!(index.seek_user_key(user_key), at);
        }
    }
    assert_eq!(index.seek(key(b"\xff\xff\xff\xff\xff", 5).as_key()), blocks.len());
    assert_eq!(index.seek(key(b"", 5).as_key()), 0);
}

#[test]
fn every_key_is_led_to_its_block() {
    let numbered: Vec<Vec<u8>> =
        (0..200).map(|n| format!("common/prefix/{:06}", n * 11).into_bytes()).collect();
    let mut mixed: Vec<Vec<u8>> = Vec::new();
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..300 {
        mixed.push((0..random.usize(1..12)).map(|_| [0, b'a', 0xfe][random.usize(0..3)]).collect());
    }
    mixed.sort();
    mixed.dedup();
    for restart_interval in [1, 3, 16] {
        for index_type in [IndexType::BinarySearch, IndexType::BinarySearchWithFirstKey] {
            check(&numbered, restart_interval, index_type);
            check(&mixed, restart_interval, index_type);
        }
    }
}

/// Their keys take more than the block, and more than an allocator has in one piece of its heap.
#[test]
fn a_large_index_whose_keys_share_much_is_one_as_any() {
    let prefix = "p".repeat(100);
    let keys: Vec<Vec<u8>> =
        (0..4000).map(|n| format!("{prefix}{:06}", n * 7).into_bytes()).collect();
    for restart_interval in [1, 16] {
        check(&keys, restart_interval, IndexType::BinarySearch);
    }
}

#[test]
fn a_user_key_in_two_blocks_needs_internal_keys() {
    let mut builder = builder(IndexType::BinarySearch, 1);
    let handle = |offset| BlockHandle { offset, size: 5 };
    let (newer, older) = (key(b"k", 9), key(b"k", 3));
    builder.add_block(b"", newer.as_key(), Some(older.as_key()), handle(0));
    builder.add_block(b"", older.as_key(), None, handle(10));
    assert!(!builder.flavor().user_keys);
    let mut block = Vec::new();
    builder
        .finish(|bytes| {
            block = bytes.to_vec();
            Ok(handle(0))
        })
        .unwrap();
    let index = decode(&block, builder.flavor()).unwrap();
    assert_eq!(index.seek(key(b"k", 9).as_key()), 0);
    assert_eq!(index.seek(key(b"k", 8).as_key()), 1);
    assert_eq!(index.seek(key(b"k", 2).as_key()), 2);
    assert_eq!(index.seek_user_key(b"k"), 0);
}

#[test]
fn damaged_index_blocks_are_errors() {
    let flavor = IndexFlavor { user_keys: true, delta_values: true, first_keys: false };
    let mut writer = IndexBlockWriter::new(flavor, 4);
    for n in 0..20u64 {
        let separator = key(format!("k{n:02}").as_bytes(), 1);
        writer.add(separator.as_bytes(), BlockHandle { offset: n * 105, size: 100 }, &[]);
    }
    let block = writer.finish().to_vec();
    assert_eq!(decode(&block, flavor).unwrap().len(), 20);
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..2000 {
        let mut damaged = block.clone();
        let at = random.usize(0..damaged.len());
        damaged[at] = random.u8(..);
        for user_keys in [true, false] {
            for first_keys in [true, false] {
                let _ = decode(&damaged, IndexFlavor { user_keys, first_keys, ..flavor });
            }
        }
    }
    let beyond =
        IndexBlock::decode(&Block::new(&block).unwrap(), flavor, &Comparator::Bytewise, 1000);
    assert!(beyond.unwrap_err().to_string().contains("beyond the file"));
}

#[test]
fn an_index_of_any_size_is_searched_as_a_sorted_list_is() {
    let mut random = fastrand::Rng::with_seed(2);
    for count in [1, 2, 63, 64, 65, 127, 128, 129, 1000] {
        for shape in 0..4 {
            let mut draw = || match shape {
                0 => random.u64(..4 * count as u64).to_be_bytes().to_vec(),
                1 => format!("one/prefix/{:x}", random.u32(..)).into_bytes(),
                // Long runs of equal integers.
                2 => format!("{}/same/{:04}", ["a", "b"][random.usize(..2)], random.u32(..9999))
                    .into_bytes(),
                _ => {
                    (0..random.usize(..12)).map(|_| [0, 1, b'a', 0xff][random.usize(..4)]).collect()
                }
            };
            let mut keys: Vec<Vec<u8>> = (0..count).map(|_| draw()).collect();
            let wanted: Vec<Vec<u8>> =
                (0..300).map(|_| draw()).chain(keys.iter().cloned()).collect();
            keys.sort();
            keys.dedup();
            let mut builder = crate::sst::block::BlockBuilder::new(1, None);
            for (at, key) in keys.iter().enumerate() {
                let mut value = Vec::new();
                BlockHandle { offset: 100 * at as u64, size: 50 }.encode(&mut value);
                builder.add(key, &value);
            }
            let flavor = IndexFlavor { user_keys: true, ..IndexFlavor::default() };
            let index = decode(builder.finish(), flavor).unwrap();
            for wanted in wanted {
                let expected = keys.partition_point(|key| *key < wanted);
                assert_eq!(index.seek_user_key(&wanted), expected, "{wanted:?} among {keys:?}");
                let target = InternalKeyBuf::for_seek(&wanted, MAX_SEQUENCE_NUMBER);
                assert_eq!(index.seek(target.as_key()), expected, "{wanted:?} among {keys:?}");
            }
        }
    }
}

/// A place has 16 bits for a block's size and 36 for its offset: an index in which one block has
/// more keeps all handles apart.
#[test]
fn blocks_of_any_size_and_place_are_told() {
    let flavor = IndexFlavor { user_keys: true, ..IndexFlavor::default() };
    let small = |at: u64| BlockHandle { offset: 100 * at, size: 50 };
    let unusual = [
        BlockHandle { offset: 1 << 37, size: 50 },
        BlockHandle { offset: (1 << 36) - 1, size: 65_535 },
        BlockHandle { offset: 1000, size: 65_536 },
        BlockHandle { offset: 1000, size: u32::MAX.into() },
    ];
    for (unusual, at) in unusual.into_iter().flat_map(|handle| [0, 3, 9].map(|at| (handle, at))) {
        let mut handles: Vec<BlockHandle> = (0..10).map(small).collect();
        handles[at] = unusual;
        let mut builder = crate::sst::block::BlockBuilder::new(1, None);
        for (number, handle) in (b'a'..).zip(&handles) {
            let mut value = Vec::new();
            handle.encode(&mut value);
            builder.add(&[number], &value);
        }
        let index = decode(builder.finish(), flavor).unwrap();
        let told: Vec<BlockHandle> = (0..index.len()).map(|at| index.handle(at)).collect();
        assert_eq!(told, handles);
        let above = index.above(unusual).unwrap();
        assert_eq!((above.len(), above.handle(0), &above.key(0)[..]), (1, unusual, &b"j"[..]));
    }
}

/// An index with an entry for each key, whose blocks lie side by side.
fn index_of(keys: &[Vec<u8>], user_keys: bool, comparator: &Comparator) -> IndexBlock {
    let mut builder = crate::sst::block::BlockBuilder::new(1, None);
    for (at, key) in keys.iter().enumerate() {
        let mut value = Vec::new();
        BlockHandle { offset: 4000 * at as u64, size: 3990 }.encode(&mut value);
        builder.add(key, &value);
    }
    let flavor = IndexFlavor { user_keys, ..IndexFlavor::default() };
    IndexBlock::decode(&Block::new(builder.finish()).unwrap(), flavor, comparator, 1 << 40).unwrap()
}

/// Keys are kept in parts: what all begin with, eight bytes, and the rest. Zeros at the end of the
/// eight may be the key's own.
#[test]
fn keys_are_told_and_compared_as_they_were_written() {
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..300 {
        let start = b"what all share"[..random.usize(..15)].to_vec();
        let letters: &[u8] = if round % 2 == 0 { &[0, 1] } else { b"ab" };
        let mut draw = || {
            let rest = (0..random.usize(..20)).map(|_| letters[random.usize(..2)]);
            start.iter().copied().chain(rest).collect::<Vec<u8>>()
        };
        let mut keys: Vec<Vec<u8>> = (0..40).map(|_| draw()).collect();
        let others: Vec<Vec<u8>> = (0..40).map(|_| draw()).collect();
        for comparator in [Comparator::Bytewise, Comparator::ReverseBytewise] {
            keys.sort_by(|a, b| comparator.compare(a, b));
            keys.dedup();
            let index = index_of(&keys, true, &comparator);
            // Each user key spans two blocks.
            let internal: Vec<InternalKeyBuf> =
                keys.iter().flat_map(|user| [7, 3].map(|sequence| key(user, sequence))).collect();
            let bytes: Vec<Vec<u8>> = internal.iter().map(|key| key.as_bytes().to_vec()).collect();
            let of_internal = index_of(&bytes, false, &comparator);
            for (at, user) in keys.iter().enumerate() {
                assert_eq!((&index.key(at), &index.user_key(at)), (user, user));
                for at in [2 * at, 2 * at + 1] {
                    assert_eq!(
                        (&of_internal.key(at), &of_internal.user_key(at)),
                        (&bytes[at], user)
                    );
                    assert_eq!(of_internal.seek(internal[at].as_key()), at);
                }
                assert_eq!(of_internal.seek_user_key(user), 2 * at);
                for other in keys.iter().chain(&others).chain([&start, &Vec::new()]) {
                    let order = comparator.compare(user, other);
                    assert_eq!(index.compare_user_key(at, other), order, "{user:?} and {other:?}");
                    assert_eq!(
                        of_internal.compare_user_key(2 * at, other),
                        order,
                        "{user:?} and {other:?}"
                    );
                }
            }
        }
    }
}

/// What a lookup needs of a block: there are as many as blocks, and they stay in memory. With whole
/// keys it was far more.
#[test]
fn an_entry_takes_few_bytes() {
    const COUNT: u32 = 10_000;
    let usage = |write: &dyn Fn(u32) -> Vec<u8>| {
        let keys: Vec<Vec<u8>> = (0..COUNT).map(write).collect();
        index_of(&keys, true, &Comparator::Bytewise).memory_usage() as f64 / f64::from(COUNT)
    };
    // The last key of a table is not shortened.
    let end = |number| if number == COUNT - 1 { "/and/more" } else { "" };
    let text = usage(&|number| {
        format!("some/prefix/{:012}{}", u64::from(number) * 9973, end(number)).into_bytes()
    });
    assert!(text < 24.2, "{text}: where it lies 16, its key's bytes 8, and every 64th again");
    let binary = usage(&|number| number.to_be_bytes().to_vec());
    assert!(binary < 25.2, "{binary}: the same, and 1 for how many of the bytes are the key's");
}
