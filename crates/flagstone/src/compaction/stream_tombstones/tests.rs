use std::sync::Arc;

use super::*;
use crate::iter::testing::{parse_entry, parse_tombstones, show_tombstone};

fn gathered(text: &str) -> StreamTombstones {
    let whole =
        Arc::new(FragmentedRangeTombstones::new(&Comparator::Bytewise, parse_tombstones(text)));
    StreamTombstones::new(&Comparator::Bytewise, &[whole.untruncated()], &[3, 5])
}

fn shown(tombstones: &[RangeTombstone]) -> String {
    tombstones.iter().map(show_tombstone).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_tombstone_survives_while_a_snapshot_or_a_deeper_file_needs_it() {
    let all = gathered("[a,c)@4 [e,g)@8");
    assert_eq!(shown(&all.surviving(&[], false, |_, _| false)), "[a,c)@4 [e,g)@8");
    assert_eq!(shown(&all.surviving(&[], true, |_, _| false)), "");
    assert_eq!(shown(&all.surviving(&[5], true, |_, _| false)), "[e,g)@8");
    assert_eq!(shown(&all.surviving(&[], false, |start, _| start == b"a")), "[e,g)@8");
}

#[test]
fn fragments_are_written_as_rocksdb_writes_them() {
    let all = gathered("[b,m)@3 [k,p)@4");
    assert_eq!(shown(&all.surviving(&[], false, |_, _| false)), "[b,k)@3 [k,m)@4 [m,p)@4");
    assert_eq!(shown(&all.surviving(&[3], false, |_, _| false)), "[b,k)@3 [k,m)@4 [k,m)@3 [m,p)@4");
}

#[test]
fn covering_follows_the_files_bounds() {
    let whole = Arc::new(FragmentedRangeTombstones::new(
        &Comparator::Bytewise,
        parse_tombstones("[a,z)@9"),
    ));
    let (from, to) = (parse_entry("c@5:PUT()").0, parse_entry("k@3:PUT()").0);
    let cut = whole.truncated(from.as_key(), to.as_key());
    let all = StreamTombstones::new(&Comparator::Bytewise, &[cut], &[]);
    let mut hint = 0;
    for (key, expected) in
        [("b@1", 0), ("c@6", 0), ("c@5", 9), ("d@1", 9), ("k@3", 9), ("k@2", 0), ("l@1", 0)]
    {
        let key = parse_entry(&format!("{key}:PUT()")).0;
        assert_eq!(all.covering(key.as_key(), 100, &mut hint), expected, "{key:?}");
    }
    assert_eq!(shown(&all.surviving(&[], false, |_, _| false)), "[c,k)@9");
}

/// The bounds of a file, and its tombstones, as text.
fn bounds(
    tombstones: &str,
    points: Option<(&str, &str)>,
    previous: bool,
    begin: &str,
    next: &str,
) -> String {
    let points = points.map(|(first, last)| {
        (parse_entry(&format!("{first}:PUT()")).0, parse_entry(&format!("{last}:PUT()")).0)
    });
    let file = OutputFile {
        points: points.as_ref().map(|(first, last)| (first.as_key(), last.as_key())),
        has_previous: previous,
        begin: (!begin.is_empty()).then_some(begin.as_bytes()),
        next: (!next.is_empty()).then_some(next.as_bytes()),
    };
    let found = bounds_of_output(&Comparator::Bytewise, &parse_tombstones(tombstones), file);
    let show = |key: Option<InternalKeyBuf>| {
        key.map_or("none".into(), |key| {
            let key = key.as_key();
            let sequence = match key.sequence() {
                MAX_SEQUENCE_NUMBER => "max".into(),
                sequence => sequence.to_string(),
            };
            format!("{}@{sequence}", key.user_key().escape_ascii())
        })
    };
    format!("{} {} | {}", show(found.smallest), show(found.largest), shown(&found.tombstones))
}

#[test]
fn bounds_take_in_tombstones_and_touch_the_next_file() {
    let points = Some(("d@5", "k@5"));
    assert_eq!(bounds("", points, false, "", ""), "d@5 k@5 | ");
    assert_eq!(bounds("[f,g)@9", points, false, "", ""), "d@5 k@5 | [f,g)@9");
    assert_eq!(
        bounds("[a,p)@9", points, false, "", ""),
        "a@9 pmax | [a,p)@9".replace("pmax", "p@max")
    );
    // The next file begins with `m`: it has the rest.
    assert_eq!(bounds("[a,p)@9", points, false, "", "m"), "a@9 m@max | [a,p)@9");
    assert_eq!(bounds("[a,l)@9 [m,p)@9", points, false, "", "m"), "a@9 l@max | [a,l)@9");
    // The next file begins with an older version of `k`.
    assert_eq!(bounds("[a,p)@9", points, false, "", "k"), "a@9 k@5 | [a,p)@9");
    assert_eq!(bounds("[k,p)@9", points, false, "", "k"), "d@5 k@5 | [k,p)@9");
    // That version is older than the tombstone, and what the file has of `k` is newer. RocksDB
    // 11.8, which goes to the last tombstone that begins up to `k` when it comes back into the
    // file, went on without any: what `[a,k)` covers was there.
    assert_eq!(bounds("[a,k)@9 [k,p)@4", points, false, "", "k"), "a@9 k@5 | [a,k)@9");
    assert_eq!(bounds("[k,p)@9 [k,p)@4", points, false, "", "k"), "d@5 k@5 | [k,p)@9");
    // The file before has what lies before `d`.
    assert_eq!(bounds("[a,p)@9", points, true, "", ""), "d@5 p@max | [a,p)@9");
    assert_eq!(bounds("[a,d)@9", points, true, "", ""), "d@5 k@5 | ");
    // A subcompaction from `b` to `n`.
    assert_eq!(bounds("[a,p)@9", points, false, "b", "n"), "b@9 n@max | [a,p)@9");
    // Nothing but tombstones, and nothing at all.
    assert_eq!(bounds("[a,p)@9 [q,r)@8", None, false, "", ""), "a@9 r@max | [a,p)@9 [q,r)@8");
    assert_eq!(bounds("", None, false, "", ""), "none none | ");
}
