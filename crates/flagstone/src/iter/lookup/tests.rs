use super::super::testing::parse_entries;
use super::*;
use crate::base::merge::StringAppendOperator;

struct UpperCaseBlobs;

impl ValueResolver for UpperCaseBlobs {
    fn resolve_blob(&self, _user_key: &[u8], blob_index: &[u8]) -> Result<Bytes> {
        Ok(blob_index.to_ascii_uppercase().into())
    }
}

/// Sources are divided by `|`; a number alone is a source's covering tombstone.
fn looked_up(sources: &str) -> Option<String> {
    let mut lookup = Lookup::new();
    for source in sources.split('|') {
        let mut words = source.split_whitespace().peekable();
        if let Some(covering) = words.next_if(|word| !word.contains('@')) {
            lookup.cover(covering.parse().unwrap());
        }
        for (key, value) in parse_entries(&words.collect::<Vec<_>>().join(" ")) {
            let key = key.as_key();
            if lookup.add(key.sequence(), key.value_type().unwrap(), value).is_break() {
                break;
            }
        }
        if lookup.is_done() {
            break;
        }
    }
    let operator = StringAppendOperator::new(",");
    let value = lookup.finish().resolve(b"k", Some(&operator), &UpperCaseBlobs).unwrap();
    value.map(|value| String::from_utf8(value.as_ref().to_vec()).unwrap())
}

#[test]
fn the_newest_version_decides() {
    let cases = [
        ("", None),
        ("k@2:PUT(b) k@1:PUT(a)", Some("b")),
        ("k@3:DEL k@2:PUT(b)", None),
        ("k@3:SD k@2:PUT(b)", None),
        ("k@3:BLOB(at)", Some("AT")),
        ("k@3:ENTITY(dv)", Some("dv")),
        ("k@3:TIMED(v/1)", Some("v")),
        ("| k@1:PUT(a)", Some("a")),
    ];
    for (sources, expected) in cases {
        assert_eq!(looked_up(sources).as_deref(), expected, "{sources}");
    }
}

#[test]
fn operands_are_merged_over_what_lies_below() {
    let cases = [
        ("k@3:MERGE(z) k@2:MERGE(y) | k@1:PUT(x)", Some("x,y,z")),
        ("k@3:MERGE(z) k@2:DEL | k@1:PUT(x)", Some("z")),
        ("k@3:MERGE(z) k@2:SD | k@1:PUT(x)", Some("z")),
        ("k@3:MERGE(z)", Some("z")),
        ("k@3:MERGE(z) k@2:BLOB(b)", Some("B,z")),
        ("k@3:MERGE(z) k@2:ENTITY(e)", Some("e,z")),
        ("k@3:MERGE(z) k@2:TIMED(t/1)", Some("t,z")),
    ];
    for (sources, expected) in cases {
        assert_eq!(looked_up(sources).as_deref(), expected, "{sources}");
    }
}

#[test]
fn a_tombstone_hides_what_is_strictly_older() {
    let cases = [
        ("5 k@5:PUT(a)", Some("a")),
        ("5 k@4:PUT(a)", None),
        ("5 | k@4:PUT(a)", None),
        ("5 k@6:MERGE(b) k@4:MERGE(a) k@3:PUT(c)", Some("b")),
        ("k@6:MERGE(b) | 5 k@4:PUT(a)", Some("b")),
        ("k@6:MERGE(b) | 5 | k@4:PUT(a)", Some("b")),
    ];
    for (sources, expected) in cases {
        assert_eq!(looked_up(sources).as_deref(), expected, "{sources}");
    }
}

#[test]
fn operands_need_an_operator_and_short_values_are_corrupt() {
    let outcome = Outcome::Merge { base: None, operands: vec![b"x"] };
    let error = outcome.resolve(b"k", None, &UpperCaseBlobs).unwrap_err();
    assert_eq!(error.code(), crate::base::Code::InvalidArgument);
    for (kind, value) in
        [(ValueType::ValuePreferredSeqno, &b"1234567"[..]), (ValueType::WideColumnEntity, b"\x01")]
    {
        assert!(
            Outcome::Found(kind, value)
                .resolve(b"k", None, &UpperCaseBlobs)
                .unwrap_err()
                .is_corruption()
        );
    }
}
