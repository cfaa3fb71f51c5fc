use super::*;
use crate::base::compression::{CompressionOptions, Compressor};
use crate::sst::block::BlockBuilder;

fn sample(seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut block = BlockBuilder::new(16, (seed.is_multiple_of(3)).then_some(0.75));
    for key in 0..random.u64(1..200) {
        let value: Vec<u8> = if random.bool() {
            (0..random.usize(0..50)).map(|_| random.u8(..)).collect()
        } else {
            vec![7; random.usize(0..90)]
        };
        block.add(&[&(key * 3).to_be_bytes()[..], &[1, 0, 0, 0, 0, 0, 0, 0]].concat(), &value);
    }
    block.finish().to_vec()
}

#[test]
fn the_end_of_a_block_is_found_whatever_follows() {
    for seed in 0..60 {
        let raw = sample(seed);
        for kind in CompressionType::ALL {
            let mut stored = Vec::new();
            match kind {
                CompressionType::None => stored.extend(&raw),
                _ => {
                    let mut compressor =
                        Compressor::new(kind, &CompressionOptions::default(), None).unwrap();
                    compressor.compress(&raw, &mut stored).unwrap();
                }
            }
            let size = stored.len();
            stored.push(kind.to_byte());
            let mut random = fastrand::Rng::with_seed(seed);
            stored.extend((0..3000).map(|_| random.u8(..)));
            let sizes = possible_sizes(&stored, true, &mut Effort::new());
            assert!(sizes.contains(&size), "{kind}, seed {seed}: {size} not in {sizes:?}");
            assert!(sizes.len() < 200, "{} guesses", sizes.len());
        }
    }
}

/// Each offset between intact blocks was followed through 16 MiB, if it claimed to be as long.
#[test]
fn what_begins_as_no_block_does_is_not_followed() {
    let mut compressor =
        Compressor::new(CompressionType::Lz4, &CompressionOptions::default(), None).unwrap();
    for (first, is_block) in [(0, true), (b'k', false)] {
        let raw = [&[first][..], &[b'x'; 5000]].concat();
        let mut stored = Vec::new();
        compressor.compress(&raw, &mut stored).unwrap();
        let size = stored.len();
        stored.extend([CompressionType::Lz4.to_byte(), 0, 0, 0, 0]);
        assert_eq!(
            possible_sizes(&stored, false, &mut Effort::new()).contains(&size),
            is_block,
            "{first}"
        );
    }
}

/// At every fourth of these bytes a block may begin that goes on to their end: 16 MiB of them took
/// days.
#[test]
fn what_begins_as_a_block_everywhere_is_not_followed_to_its_end_each_time() {
    let hostile = [0, 1, 0, b'k'].repeat(4096);
    let block = sample(7);
    let rest = [&block[..], &[CompressionType::None.to_byte(), 0, 0, 0, 0]].concat();
    let bytes = [&hostile[..], &rest].concat();
    let mut effort = Effort { left: 0, is_spent: false };
    for at in 0..hostile.len() {
        assert!(!possible_sizes(&bytes[at..], false, &mut effort).contains(&block.len()));
        effort.earn(1);
    }
    assert!(effort.is_spent, "{effort:?}");
    let sizes = possible_sizes(&bytes[hostile.len()..], false, &mut effort);
    assert!(sizes.contains(&block.len()), "a block behind them is found");
}

#[test]
fn bytes_of_any_kind_are_no_danger() {
    for seed in 0..2000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let bytes: Vec<u8> = (0..random.usize(0..300)).map(|_| random.u8(..)).collect();
        for size in possible_sizes(&bytes, true, &mut Effort::new()) {
            assert!(size + TRAILER_SIZE <= bytes.len());
        }
    }
}
