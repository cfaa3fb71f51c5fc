use super::*;

fn build(keys: &[(&str, u32)], extractor: &PrefixExtractor) -> (Vec<u8>, Vec<u8>) {
    let mut builder = PrefixHashBuilder::new(extractor.clone());
    for (key, block) in keys {
        builder.add(key.as_bytes(), *block);
    }
    let (prefixes, metadata) = builder.finish();
    (prefixes.to_vec(), metadata.to_vec())
}

#[test]
fn each_prefix_has_its_blocks() {
    let extractor = PrefixExtractor::FixedPrefix(2);
    let keys =
        [("a", 0), ("aa1", 0), ("aa2", 1), ("aa3", 2), ("ab1", 2), ("ac", 2), ("b", 3), ("bb", 3)];
    let (prefixes, metadata) = build(&keys, &extractor);
    assert_eq!(prefixes, b"aaabacbb");
    assert_eq!(metadata, [2, 0, 3, 2, 2, 1, 2, 2, 1, 2, 3, 1]);
    let hash = PrefixHash::decode(&prefixes, &metadata, 4, extractor).unwrap();
    assert_eq!(hash.blocks_of(b"aa7"), Some((0, 3)));
    assert_eq!(hash.blocks_of(b"ab"), Some((2, 3)));
    assert_eq!(hash.blocks_of(b"bbb"), Some((3, 4)));
    assert!(hash.blocks_of(b"zz").is_some_and(|(first, end)| first == end));
    assert_eq!(hash.blocks_of(b"b"), None);
}

#[test]
fn damaged_blocks_are_refused() {
    let extractor = PrefixExtractor::CappedPrefix(3);
    let (prefixes, metadata) = build(&[("", 0), ("a", 0), ("abcd", 1), ("abd", 1)], &extractor);
    let decode = |prefixes: &[u8], metadata: &[u8], blocks| {
        PrefixHash::decode(prefixes, metadata, blocks, PrefixExtractor::CappedPrefix(3))
    };
    assert_eq!(decode(&prefixes, &metadata, 2).unwrap().blocks_of(b""), Some((0, 1)));
    assert!(decode(&prefixes, &metadata, 1).is_err());
    for length in 0..metadata.len() {
        assert!(decode(&prefixes, &metadata[..length], 2).is_err(), "{length}");
    }
    assert!(decode(&prefixes[1..], &metadata, 2).is_err());
    for no_prefix in [&[][..], &[0, 0, 0]] {
        let empty = decode(&[], no_prefix, 0).unwrap();
        assert!(empty.blocks_of(b"a").is_some_and(|(first, end)| first == end));
    }
    assert!(decode(&[], &[0, 0, 0], 1).is_err());
    assert!(decode(b"a", &[1, 0, 0], 0).is_err());
    assert!(decode(&[], &[0, 1, 0], 0).is_err());
}
