use super::*;

/// Tables as `key:bytes`, one after the other; where they are cut, as text.
fn cut(parts_max: usize, part_bytes_min: u64, tables: &[&str]) -> String {
    let anchors = tables.iter().flat_map(|table| table.split_whitespace()).map(|anchor| {
        let (user_key, size) = anchor.split_once(':').unwrap();
        TableAnchor { user_key: user_key.as_bytes().to_vec(), size: size.parse().unwrap() }
    });
    let cuts = subcompaction_boundaries(
        &Comparator::Bytewise,
        anchors.collect(),
        parts_max,
        part_bytes_min,
    );
    let cuts: Vec<_> = cuts.iter().map(|cut| cut.escape_ascii().to_string()).collect();
    cuts.join(" ")
}

#[test]
fn parts_have_about_equal_bytes() {
    let table = "a:10 b:10 c:10 d:10 e:10 f:10 g:10 h:10";
    assert_eq!(cut(2, 10, &[table]), "d");
    assert_eq!(cut(4, 10, &[table]), "b d f");
    assert_eq!(cut(3, 10, &[table]), "c f");
    assert_eq!(cut(8, 10, &[table]), "a b c d e f g");
    assert_eq!(cut(2, 10, &["a:1 b:1 c:1 d:90 e:1 f:1 g:1"]), "d");
    assert_eq!(cut(2, 10, &["a:90 b:1 c:1 d:1 e:1 f:1 g:1"]), "a");
}

#[test]
fn tables_that_overlap_are_counted_together() {
    assert_eq!(cut(2, 10, &["a:10 m:10", "n:10 z:10"]), "m");
    assert_eq!(cut(2, 10, &["a:10 z:10", "b:10 c:10", "d:10 e:10"]), "c");
    // Nobody knows where in a table the bytes before its only anchor lie.
    assert_eq!(cut(2, 10, &["m:30", "z:30"]), "m");
}

#[test]
fn no_part_is_smaller_than_a_table() {
    let table = "a:10 b:10 c:10 d:10 e:10 f:10 g:10 h:10";
    assert_eq!(cut(8, 40, &[table]), "d");
    assert_eq!(cut(8, 41, &[table]), "");
    assert_eq!(cut(8, 81, &[table]), "");
    assert_eq!(cut(1, 1, &[table]), "");
    assert_eq!(cut(0, 0, &[table]), "");
    assert_eq!(cut(4, 0, &[]), "");
    assert_eq!(cut(4, 1, &["a:0 b:0"]), "");
}

#[test]
fn a_key_is_never_cut() {
    // So many versions of `c` that they would be several parts.
    assert_eq!(cut(4, 10, &["a:10 c:10 c:10 c:10 c:10", "c:10 c:10 z:10"]), "c");
    assert_eq!(cut(4, 10, &["c:40", "c:40"]), "c");
    assert_eq!(cut(4, 10, &["a:10 b:1000 c:10 d:10"]), "b");
}

#[test]
fn the_largest_sizes_do_not_overflow() {
    let size = u64::MAX;
    assert_eq!(cut(3, u64::MAX, &[&format!("a:{size} b:{size} c:{size}")]), "a b");
}

#[test]
fn other_orders_of_keys_are_followed() {
    let anchor = |key: &[u8]| TableAnchor { user_key: key.to_vec(), size: 10 };
    let anchors = vec![anchor(b"a"), anchor(b"b"), anchor(b"c"), anchor(b"d")];
    let cuts = subcompaction_boundaries(&Comparator::ReverseBytewise, anchors, 2, 1);
    assert_eq!(cuts, [b"c".to_vec()]);
}
