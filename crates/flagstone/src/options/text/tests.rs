use super::*;

#[test]
fn escapes_are_undone() {
    for raw in ["", "plain", "a:b#c\\d", "two\nlines\r", "\\"] {
        assert_eq!(unescape(&escape(raw)), raw);
    }
    assert_eq!(escape("/a:b"), "/a\\:b");
}

#[test]
fn pairs_nest() {
    let text = "block_size=8192; filter_policy={id=x;bits=10}; checksum=kXXH3;";
    let expected =
        [("block_size", "8192"), ("filter_policy", "{id=x;bits=10}"), ("checksum", "kXXH3")];
    assert_eq!(pairs(text).unwrap(), expected);
    assert_eq!(pairs("a=;b=1").unwrap(), [("a", ""), ("b", "1")]);
    assert_eq!(without_braces("{a=1;}"), "a=1;");
    for wrong in ["a", "=1", "a={1", "a=1}"] {
        assert!(pairs(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_slip_of_the_finger_is_recognised() {
    let names = ["write_buffer_size", "max_write_buffer_number", "block_size"];
    assert_eq!(nearest("write_bufer_size", names.into_iter()), Some("write_buffer_size"));
    assert_eq!(nearest("blocksize", names.into_iter()), Some("block_size"));
    assert_eq!(nearest("zzzzzz", names.into_iter()), None);
}
