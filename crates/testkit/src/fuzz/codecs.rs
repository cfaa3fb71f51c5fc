//! Compression.

use flagstone::base::compression::{
    CompressionOptions, CompressionType, Compressor, DecompressionDictionary, decompress as unfold,
};

use super::input::{Input, ok};

/// Decompresses bytes by each codec, and takes them through compression and back: codec, limit,
/// dictionary, bytes.
pub fn decompress(data: &[u8]) {
    let mut input = Input::new(data);
    let kind = input.choose(&CompressionType::ALL);
    let limit = (usize::from(input.u8()) << 12).max(1);
    let dictionary = input.piece();
    let stored = input.rest();
    let known = DecompressionDictionary::new(dictionary.to_vec());
    for dictionary in [None, Some(&known)] {
        if let Some(bytes) = ok(unfold(kind, stored, dictionary, limit)) {
            assert!(bytes.len() <= limit);
        }
    }
    // The size that the stored form claims must be checked against the limit before room is made
    // for it.
    if let Some(bytes) = ok(unfold(kind, stored, None, 1 << 30)) {
        assert!(bytes.len() <= 1 << 30);
    }
    round_trip(kind, dictionary, stored);
}

fn round_trip(kind: CompressionType, dictionary: &[u8], raw: &[u8]) {
    if kind == CompressionType::None {
        return;
    }
    let used = kind.uses_dictionary().then_some(dictionary).filter(|bytes| !bytes.is_empty());
    let Some(mut compressor) = ok(Compressor::new(kind, &CompressionOptions::default(), used))
    else {
        return;
    };
    let mut stored = Vec::new();
    compressor.compress(raw, &mut stored).expect("small input");
    let known = used.map(|bytes| DecompressionDictionary::new(bytes.to_vec()));
    assert_eq!(unfold(kind, &stored, known.as_ref(), raw.len()).expect("what was compressed"), raw);
}
