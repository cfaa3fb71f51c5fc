use super::*;
use crate::base::{Comparator, InternalKeyBuf, ValueType};
use crate::sst::tests::support::large_keys_in_few_bytes;

fn key(user: &str, sequence: u64) -> InternalKeyBuf {
    InternalKeyBuf::new(user.as_bytes(), sequence, ValueType::Value)
}

fn built(keys: &[InternalKeyBuf], restart_interval: usize, hash_ratio: Option<f64>) -> Vec<u8> {
    let mut builder = BlockBuilder::new(restart_interval, hash_ratio);
    for key in keys {
        builder.add(key.as_bytes(), key.user_key());
    }
    builder.finish().to_vec()
}

fn iter(bytes: &[u8]) -> BlockIter {
    BlockIter::new(Block::new(bytes).unwrap(), Comparator::Bytewise, None)
}

fn all(iter: &mut BlockIter) -> Vec<InternalKeyBuf> {
    let mut keys = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        assert_eq!(iter.value(), iter.key().user_key());
        keys.push(iter.key().to_buf());
        iter.next();
    }
    iter.status().unwrap();
    keys
}

#[test]
fn golden_block() {
    let bytes = built(&[key("ab", 1), key("ac", 1), key("b", 2)], 2, None);
    let expected = b"\x00\x0a\x02ab\x01\x01\0\0\0\0\0\0ab\
                     \x01\x09\x02c\x01\x01\0\0\0\0\0\0ac\
                     \x00\x09\x01b\x01\x02\0\0\0\0\0\0b\
                     \0\0\0\0\x1d\0\0\0\x02\0\0\0";
    assert_eq!(bytes, expected);
    assert_eq!(BlockBuilder::new(16, None).finish(), [0, 0, 0, 0, 1, 0, 0, 0]);
}

/// Who puts all keys of a small block together could need more memory than there is.
#[test]
fn keys_that_would_fill_the_memory_are_refused() {
    let block = Block::new(&large_keys_in_few_bytes(40_000)).unwrap();
    let keys_of = |mut walk: BlockWalk<'_>| {
        let mut sum = 0;
        loop {
            match walk.next() {
                Ok(entry) => assert!(entry.is_some(), "{sum} bytes of keys out of 1 MiB"),
                Err(error) => return error.is_corruption().then_some(sum),
            }
            sum += walk.key().len();
        }
    };
    assert!(keys_of(BlockWalk::new(&block).unwrap()).is_some_and(|sum| sum < 200 << 20));
    assert!(keys_of(BlockWalk::of_index(&block).unwrap()).is_some_and(|sum| sum <= 1 << 30));
}

/// A cursor that goes back keeps the keys that it passed on its way to the end, but not at any
/// price.
#[test]
fn a_walk_back_over_large_keys_keeps_few_of_them() {
    const COUNT: u64 = 200;
    let bytes = large_keys_in_few_bytes(COUNT);
    let mut iter = iter(&bytes);
    iter.seek_to_last();
    for n in (0..COUNT as usize).rev() {
        assert_eq!(iter.key().user_key().len(), (500 << 10) + n);
        assert!(iter.trail.bytes() <= 32 << 20);
        iter.prev();
    }
    assert!(!iter.valid() && iter.status().is_ok());
}

#[test]
fn the_builder_knows_its_size() {
    let mut builder = BlockBuilder::new(3, Some(0.75));
    for n in 0..50 {
        let key = key(&format!("{n:03}"), 1);
        let most = builder.estimated_size_after(key.as_bytes(), b"value");
        builder.add(key.as_bytes(), b"value");
        assert!(builder.estimated_size() <= most);
    }
    assert_eq!(builder.estimated_size(), builder.finish().len());
    builder.clear();
    assert!(builder.is_empty());
    assert_eq!(builder.finish().len(), 8);
}

#[test]
fn long_keys_outgrow_the_buffer() {
    let keys: Vec<_> =
        (0..20).map(|n| key(&format!("{}{n:02}", "long".repeat(n * 7)), 5)).collect();
    let mut keys = keys;
    keys.sort_by(|a, b| a.user_key().cmp(b.user_key()));
    let bytes = built(&keys, 16, None);
    assert_eq!(all(&mut iter(&bytes)), keys);
    let mut iter = iter(&bytes);
    for key in &keys {
        iter.seek(key.as_key());
        assert_eq!(iter.key(), key.as_key());
    }
}

/// Values apart from keys, as RocksDB 11 may write data blocks: two intervals of two entries and
/// one.
#[test]
fn values_that_lie_apart_are_read() {
    let mut bytes = Vec::new();
    let entry = |bytes: &mut Vec<u8>, header: &[u8], suffix: &[u8]| {
        bytes.extend_from_slice(header);
        bytes.extend_from_slice(suffix);
    };
    let packed = b"\x01\x07\0\0\0\0\0\0";
    entry(&mut bytes, &[0, 10, 2, 0], &[b"ab", &packed[..]].concat());
    entry(&mut bytes, &[1, 9, 2], &[b"c", &packed[..]].concat());
    let second = bytes.len() as u8;
    entry(&mut bytes, &[0, 9, 1, 4], &[b"b", &packed[..]].concat());
    let values = bytes.len() as u8;
    bytes.extend_from_slice(b"abacb");
    bytes.extend_from_slice(&[0, 0, 0, 0, second, 0, 0, 0, values, 0, 0, 0, 2, 0, 0, 0x10]);
    let keys = [key("ab", 7), key("ac", 7), key("b", 7)];
    let mut iter = iter(&bytes);
    assert_eq!(all(&mut iter), keys);
    iter.seek_to_last();
    for key in keys.iter().rev() {
        assert_eq!((iter.key(), iter.value()), (key.as_key(), key.user_key()));
        iter.prev();
    }
    for key in &keys {
        iter.seek(key.as_key());
        assert_eq!((iter.key(), &*iter.value_ref().pin()), (key.as_key(), key.user_key()));
    }
    // The hint that keys are evenly spread changes nothing.
    let mut spread = bytes.clone();
    *spread.last_mut().unwrap() |= 0x20;
    assert_eq!(all(&mut self::iter(&spread)), keys);
}

#[test]
fn values_outlive_their_cursor() {
    let bytes = built(&[key("pinned", 1)], 16, None);
    let mut iter = iter(&bytes);
    iter.seek_to_first();
    let value = iter.value_ref().pin();
    drop(iter);
    assert_eq!(&*value, b"pinned");
}

#[test]
fn impossible_ends_are_refused() {
    for bytes in [
        &b""[..],
        b"\0\0\0",
        b"\x02\0\0\0",
        b"\0\0\0\0\xff\xff\xff\x0f",
        b"\0\0\0\0\x01\0\0\x40",
        b"\0\0\0\0\x01\0\0\x80",
        b"\0\0\0\0\x09\0\0\0\x01\0\0\x10",
        b"abc\0\0\0\0",
    ] {
        assert!(Block::new(bytes).is_err(), "{bytes:?}");
    }
    assert!(Block::new(&[0; 4]).unwrap().is_empty());
}

/// Whatever the bytes, walking ends, with an error or without.
#[test]
fn damaged_blocks_never_panic() {
    let mut random = fastrand::Rng::with_seed(3);
    let keys: Vec<_> = (0..60).map(|n| key(&format!("key{n:03}"), 100 + n)).collect();
    for round in 0..3000 {
        let hash_ratio = (round % 2 == 0).then_some(0.75);
        let mut bytes = built(&keys, 1 + round % 17, hash_ratio);
        for _ in 0..random.usize(1..5) {
            let at = random.usize(0..bytes.len());
            bytes[at] = random.u8(..);
        }
        if round % 3 == 0 {
            // Takes the block for one with values apart.
            *bytes.last_mut().unwrap() |= 0x10;
        }
        let Ok(block) = Block::new(&bytes) else { continue };
        let global = (round % 5 == 0).then_some(9);
        let comparator =
            if round % 7 == 0 { Comparator::ReverseBytewise } else { Comparator::Bytewise };
        let mut iter = BlockIter::new(block, comparator, global);
        for movement in [BlockIter::next, BlockIter::prev] {
            iter.seek_to_first();
            if !iter.valid() {
                iter.seek_to_last();
            }
            let mut steps = 0;
            while iter.valid() && steps < 2000 {
                let _ = (iter.key(), iter.value());
                iter.upcoming(&mut |_, _| steps % 8 != 0);
                movement(&mut iter);
                steps += 1;
            }
        }
        for target in keys.iter().step_by(7) {
            iter.seek(target.as_key());
            iter.seek_for_prev(target.as_key());
            iter.seek_for_get(target.as_key());
        }
    }
}

#[test]
fn what_comes_next_is_shown_until_it_is_enough() {
    let keys: Vec<_> = (0..40).map(|n| key(&format!("key{n:03}"), 100 + n)).collect();
    let mut cursor = iter(&built(&keys, 4, None));
    cursor.seek(keys[9].as_key());
    for most in [1, 5, 30, 100] {
        let mut shown = Vec::new();
        cursor.upcoming(&mut |kind, value| {
            assert_eq!(kind, ValueType::Value as u8);
            shown.push(value.to_vec());
            shown.len() < most
        });
        let behind = keys[10..].iter().map(|key| key.user_key().to_vec());
        assert_eq!(shown, behind.take(most).collect::<Vec<_>>(), "at most {most}");
    }
    cursor.seek_to_last();
    cursor.upcoming(&mut |_, value| panic!("nothing comes behind the last entry, but {value:?}"));
}
