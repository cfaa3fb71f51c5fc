use super::*;

fn operator(text: &str) -> Arc<dyn MergeOperator> {
    merge_operator_from_option_text(text).unwrap().unwrap()
}

fn merged(text: &str, existing: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
    full_merge(operator(text).as_ref(), b"key", existing, operands).unwrap()
}

#[test]
fn strings_are_joined_oldest_first() {
    assert_eq!(merged("stringappend", Some(b"1"), &[b"x", b"y"]), b"1,x,y");
    assert_eq!(merged("stringappend", None, &[b"x", b"y"]), b"x,y");
    assert_eq!(merged("stringappend", Some(b""), &[b"x"]), b",x");
    assert_eq!(merged("StringAppendTESTOperator", Some(b"1"), &[b"x"]), b"1,x");
    assert_eq!(operator("stringappendtest").partial_merge(b"k", &[b"a", b"b"]), None);
    assert_eq!(operator("stringappend").partial_merge(b"k", &[b"a", b"b"]).unwrap(), b"a,b");
}

#[test]
fn numbers_wrap_and_misfits_count_as_zero() {
    let number = |n: u64| n.to_le_bytes();
    assert_eq!(merged("uint64add", Some(&number(3)), &[&number(4), b"junk"]), number(7));
    assert_eq!(merged("uint64add", None, &[&number(u64::MAX), &number(2)]), number(1));
}

#[test]
fn the_small_ones() {
    assert_eq!(merged("max", Some(b"b"), &[b"a", b"c"]), b"c");
    assert_eq!(merged("max", None, &[b"a"]), b"a");
    assert_eq!(merged("put", Some(b"b"), &[b"a", b"c"]), b"c");
    assert_eq!(merged("bytesxor", Some(&[1, 2]), &[&[3, 2, 9]]), [2, 0, 9]);
    assert_eq!(merged("bytesxor", Some(&[1, 2, 7]), &[&[3]]), [2, 2, 7]);
}

#[test]
fn a_partial_merge_changes_no_result() {
    let operands: [&[u8]; 3] = [b"12345678", b"abcdefgh", b"short"];
    for text in ["stringappend", "uint64add", "max", "put", "bytesxor"] {
        let operator = operator(text);
        for existing in [None, Some(&b"87654321"[..])] {
            let whole = operator.full_merge(b"k", existing, &operands);
            let newest_two = operator.partial_merge(b"k", &operands[1..]).unwrap();
            assert_eq!(
                operator.full_merge(b"k", existing, &[operands[0], &newest_two]),
                whole,
                "{text}"
            );
        }
    }
}

#[test]
fn option_texts_name_operators_and_their_delimiter() {
    for (text, joined) in [
        ("StringAppendOperator", "a,b"),
        ("StringAppendOperator:;", "a;b"),
        ("StringAppendOperator:", "ab"),
        ("{id=StringAppendOperator;delimiter=,;}", "a,b"),
        ("{id=StringAppendOperator;delimiter=--;}", "a--b"),
        ("{delimiter={;};id=stringappend}", "a;b"),
        ("{id=StringAppendOperator;delimiter=\\:;}", "a:b"),
    ] {
        assert_eq!(merged(text, Some(b"a"), &[b"b"]), joined.as_bytes(), "{text}");
    }
    for name in ["UInt64AddOperator", "MaxOperator", "PutOperator", "BytesXOR", "{id=MaxOperator}"]
    {
        assert!(name.contains(operator(name).name()));
    }
    assert!(merge_operator_from_option_text("nullptr").unwrap().is_none());
}

/// A delimiter that was no text was written down as another one, and so was a brace: whoever opened
/// the database as its OPTIONS file says put the wrong bytes between what it merged.
#[test]
fn every_delimiter_is_read_as_it_was() {
    let texts = [
        ",", ";", ":", "", " ", "\n", "\r\n", "{", "}", "}{", "{};", "a=b", "\\;", "#", "\u{2028}",
    ];
    for delimiter in texts.map(str::as_bytes).into_iter().chain([&b"\xff"[..], b"\x00", b"a\xc3"]) {
        let text = StringAppendOperator::new(delimiter).option_text();
        assert_eq!(merged(&text, Some(b"1"), &[b"2"]), [b"1", delimiter, b"2"].concat(), "{text}");
    }
    for digits in ["f", "fg", "ff0"] {
        let text = format!("{{id=StringAppendOperator;delimiter_hex={digits};}}");
        assert!(merge_operator_from_option_text(&text).is_err(), "{text}");
    }
}

#[test]
fn what_is_not_built_in_is_an_error_that_names_it() {
    for text in ["my.Operator", "{id=my.Operator;x=1}", "{id=my.Operator}", "uint64add:,"] {
        assert!(merge_operator_from_option_text(text).is_err(), "{text}");
    }
    let error = merge_operator_from_option_text("my.Operator").unwrap_err();
    assert!(error.to_string().contains("my.Operator"), "{error}");
}

#[test]
fn a_refusal_is_a_corruption_that_says_whose() {
    struct Refuses;
    impl MergeOperator for Refuses {
        fn name(&self) -> &str {
            "Refuses"
        }
        fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Option<Vec<u8>> {
            None
        }
    }
    let error = full_merge(&Refuses, b"k1", None, &[b"x"]).unwrap_err();
    assert_eq!(error.subcode(), SubCode::MergeOperatorFailed);
    assert!(error.is_corruption() && error.to_string().contains("Refuses"), "{error}");
}
