use super::*;

#[test]
fn a_fixed_prefix_needs_its_length_and_a_capped_one_does_not() {
    assert_eq!(PrefixExtractor::FixedPrefix(3).prefix(b"abcd"), Some(&b"abc"[..]));
    assert_eq!(PrefixExtractor::FixedPrefix(3).prefix(b"abc"), Some(&b"abc"[..]));
    assert_eq!(PrefixExtractor::FixedPrefix(3).prefix(b"ab"), None);
    assert_eq!(PrefixExtractor::CappedPrefix(3).prefix(b"abcd"), Some(&b"abc"[..]));
    assert_eq!(PrefixExtractor::CappedPrefix(3).prefix(b"ab"), Some(&b"ab"[..]));
    assert_eq!(PrefixExtractor::Noop.prefix(b"ab"), Some(&b"ab"[..]));
}

#[test]
fn names_and_option_texts_are_read_back() {
    for extractor in
        [PrefixExtractor::FixedPrefix(3), PrefixExtractor::CappedPrefix(17), PrefixExtractor::Noop]
    {
        let read = PrefixExtractor::from_option_text(&extractor.name()).unwrap();
        assert_eq!(read, Some(extractor));
    }
    let fixed = PrefixExtractor::from_option_text("fixed:3").unwrap().unwrap();
    assert_eq!(fixed.name(), "rocksdb.FixedPrefix.3");
    let capped = PrefixExtractor::from_option_text("capped:4").unwrap().unwrap();
    assert_eq!(capped.name(), "rocksdb.CappedPrefix.4");
    assert_eq!(PrefixExtractor::from_option_text("nullptr").unwrap(), None);
}

#[test]
fn an_unknown_text_is_an_error_that_names_it() {
    for text in ["fixed:x", "rocksdb.FixedPrefix", "my.Prefix", "fixed:-1"] {
        let error = PrefixExtractor::from_option_text(text).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[test]
fn a_range_is_covered_by_a_prefix_only_if_all_its_keys_have_it() {
    let covers = |extractor: &PrefixExtractor, first: &str, end: &str| {
        extractor.covers(first.as_bytes(), end.as_bytes(), &Comparator::Bytewise)
    };
    let fixed = PrefixExtractor::FixedPrefix(2);
    assert!(covers(&fixed, "ab", "ab"));
    assert!(covers(&fixed, "ab1", "ab9"));
    assert!(covers(&fixed, "ab1", "ac"));
    assert!(!covers(&fixed, "ab1", "ac1"), "keys that begin with ac lie between");
    assert!(!covers(&fixed, "ab1", "ad"));
    assert!(!covers(&fixed, "a", "ab"), "the first key has no prefix");
    assert!(!covers(&fixed, "ab1", "b"));
    let capped = PrefixExtractor::CappedPrefix(2);
    assert!(covers(&capped, "ab1", "ac"));
    assert!(!covers(&capped, "a", "b"), "prefixes that are not full may begin others");
    let reverse = Comparator::ReverseBytewise;
    assert!(fixed.covers(b"ab9", b"ab1", &reverse));
    assert!(!fixed.covers(b"ab9", b"ac", &reverse));
    assert!(!fixed.covers(b"a\xff7", b"b\x00", &Comparator::Bytewise), "b lies between");
    let three = PrefixExtractor::FixedPrefix(3);
    assert!(!three.covers(b"ab\xff", b"ac\x00", &Comparator::Bytewise), "ac lies between");
    assert!(three.covers(b"ab\xfe", b"ab\xff", &Comparator::Bytewise));
    assert!(!fixed.covers(b"\xff\xff", b"\x00\x00", &Comparator::Bytewise));
}
