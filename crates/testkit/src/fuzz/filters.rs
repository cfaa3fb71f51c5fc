//! Filter blocks: hostile ones, and ones that were built.

use flagstone::sst::FilterPolicy;
use flagstone::sst::filter::{Filter, FilterKey, WrittenBy};

use super::input::Input;

/// Asks a hostile filter for a few keys.
pub fn filter(data: &[u8]) {
    let mut input = Input::new(data);
    let keys = [input.piece(), b"", b"key", &[0xff; 40]];
    let bytes = input.rest();
    let filter = Filter::new(bytes);
    let answers = keys.map(|key| filter.may_contain(FilterKey::new(key)));
    // A filter without its metadata is the one of no keys at all; what is not understood must admit
    // everything.
    if bytes.len() > 5 && !matches!(bytes[bytes.len() - 5], 0xff | 0xfe | 1..=127) {
        assert_eq!(answers, [true; 4]);
    }
    assert_eq!(filter.bytes().len(), bytes.len());
}

/// Builds a filter of the keys given; it must admit each of them.
pub fn filter_build(data: &[u8]) {
    let mut input = Input::new(data);
    let bits = f64::from(input.u16()) / 64.0;
    let policy = match input.u8() % 2 {
        0 => FilterPolicy::Bloom { bits_per_key: bits },
        _ => FilterPolicy::Ribbon { bloom_equivalent_bits_per_key: bits, bloom_before_level: -1 },
    };
    let version = u32::from(input.u8() % 8);
    let Some(mut builder) = policy.builder(version, WrittenBy::Flush) else { return };
    let size = usize::from(input.u16());
    assert!(builder.keys_that_fit(size) >= 1);
    let (mut keys, repeat) = (Vec::new(), u32::from(input.u8()));
    while !input.is_empty() {
        keys.push(input.piece().to_vec());
    }
    // Many keys from few bytes, so that a filter has more than a line.
    keys.extend((0..repeat * repeat / 16).map(|n| n.to_le_bytes().to_vec()));
    keys.iter().for_each(|key| builder.add(key));
    builder.estimated_size();
    let filter = Filter::new(builder.finish());
    for key in &keys {
        assert!(filter.may_contain(FilterKey::new(key)), "{policy:?} lost {}", key.escape_ascii());
    }
}
