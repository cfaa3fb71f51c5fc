use super::*;

#[test]
fn ranges_that_overlap_are_one() {
    let mut losses = Losses::default();
    for (first, last) in [("m", "p"), ("c", "d"), ("", "b"), ("n", "n"), ("o", "s"), ("x", "x")] {
        losses.add(Some((first.into(), last.into())));
    }
    losses.finish(&Comparator::Bytewise);
    assert_eq!(losses.ranges.len(), 4, "{losses:?}");
    let held = |key: &str| losses.hold(&Comparator::Bytewise, key.as_bytes());
    let keys: String = ('a'..='z').filter(|key| held(&key.to_string())).collect();
    assert_eq!(keys, "abcdmnopqrsx");
    let touched = |begin: &str, end: &str| {
        losses.touch(&Comparator::Bytewise, begin.as_bytes(), end.as_bytes())
    };
    assert!(touched("a", "z") && touched("p", "v") && touched("w", "y") && touched("e", "n"));
    assert!(!touched("e", "l") && !touched("t", "w") && !touched("y", "z"));
}

#[test]
fn nothing_is_lost_of_nothing_and_of_all_anything() {
    let mut losses = Losses::default();
    assert!(
        !losses.hold(&Comparator::Bytewise, b"k")
            && !losses.touch(&Comparator::Bytewise, b"", b"z")
    );
    losses.add(None);
    losses.finish(&Comparator::Bytewise);
    assert!(
        losses.hold(&Comparator::Bytewise, b"k") && losses.touch(&Comparator::Bytewise, b"", b"z")
    );
}

/// In the reverse order the empty key is the last.
#[test]
fn the_first_block_of_a_table_has_no_key_before_it() {
    let mut losses = Losses::default();
    losses.add(Some((Vec::new(), b"m".to_vec())));
    losses.finish(&Comparator::ReverseBytewise);
    let held = |key: &[u8]| losses.hold(&Comparator::ReverseBytewise, key);
    assert!(held(b"z") && held(b"m") && !held(b"a"));
}
