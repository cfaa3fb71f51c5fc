use super::*;

#[test]
fn a_prefix_becomes_a_range() {
    assert_eq!(after_prefix(b"ab"), Some(b"ac".to_vec()));
    assert_eq!(after_prefix(b"a\xff"), Some(b"b".to_vec()));
    assert_eq!(after_prefix(b"\xff"), None);
    assert_eq!(after_prefix(b""), None);
    let range = Range { prefix: Some("6162".into()), ..Range::default() };
    assert_eq!(range.bounds(Notation::Hex).unwrap(), (Some(b"ab".to_vec()), Some(b"ac".to_vec())));
}
