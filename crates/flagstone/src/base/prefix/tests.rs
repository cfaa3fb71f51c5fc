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
