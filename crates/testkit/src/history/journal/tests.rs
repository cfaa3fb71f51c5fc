use super::*;

fn put(family: &str, key: &str) -> (String, Edit) {
    (family.to_string(), Edit::Put { key: key.into(), value: b"v".to_vec() })
}

/// Families with their keys.
fn holding(families: &[(&str, &str)]) -> Model {
    let mut model = Model::default();
    for (name, keys) in families {
        let family = model.families.entry((*name).to_string()).or_default();
        family.entries.extend(keys.chars().map(|key| (vec![key as u8], b"v".to_vec())));
    }
    model
}

/// Two families; `a` to both at moments 1-2, `b` to one at 3-4, `c` to two at 5-6, synced; `d` to
/// one at 7-8.
fn journal(logged: bool) -> Journal {
    let mut journal = Journal::new(holding(&[("one", ""), ("two", "")]), false);
    journal.wrote(1, 2, vec![put("one", "a"), put("two", "a")], logged);
    journal.wrote(3, 4, vec![put("one", "b")], logged);
    journal.wrote(5, 6, vec![put("two", "c")], true);
    journal.synced(6);
    journal.wrote(7, 8, vec![put("one", "d")], logged);
    journal.written(8);
    journal
}

fn none() -> BTreeSet<Vec<u8>> {
    BTreeSet::new()
}

fn may_be(journal: &Journal, at: usize, one: &str, two: &str) -> bool {
    journal
        .check(Crash { at, is_kept: false }, &holding(&[("one", one), ("two", two)]), &none())
        .is_ok()
}

#[test]
fn what_is_found_is_a_point_in_history() {
    let mut journal = journal(true);
    assert!(may_be(&journal, 1, "", ""));
    assert!(!may_be(&journal, 1, "a", "a"), "not yet begun");
    assert!(may_be(&journal, 2, "a", "a"), "kept by chance");
    assert!(!may_be(&journal, 2, "a", ""), "half a batch");
    assert!(may_be(&journal, 5, "", ""), "nothing was synced yet");
    assert!(may_be(&journal, 5, "ab", "a"));
    assert!(!may_be(&journal, 5, "b", ""), "a hole");
    assert!(!may_be(&journal, 6, "a", "a"), "the synced write and those before it");
    assert!(may_be(&journal, 6, "ab", "ac"));
    assert!(may_be(&journal, 8, "ab", "ac") && may_be(&journal, 8, "abd", "ac"));
    let killed = Crash { at: 8, is_kept: true };
    let after_kill = |journal: &Journal, one| {
        journal.check(killed, &holding(&[("one", one), ("two", "ac")]), &none()).is_ok()
    };
    assert!(!after_kill(&journal, "ab") && after_kill(&journal, "abd"));
    journal.wrote(8, 8, vec![put("one", "e")], true);
    assert!(after_kill(&journal, "abd"), "it waited in memory");
    assert!(after_kill(&journal, "abde") && !after_kill(&journal, "ab"));
}

#[test]
fn unlogged_writes_are_there_as_far_as_their_family_was_flushed() {
    let mut journal = journal(false);
    assert!(may_be(&journal, 8, "", "c"), "none was flushed");
    assert!(may_be(&journal, 8, "a", "c"), "one was, at once");
    assert!(may_be(&journal, 8, "abd", "ac"), "both were, in the end");
    assert!(!may_be(&journal, 8, "b", "c"), "a hole within a family");
    assert!(!may_be(&journal, 8, "ab", "a"), "the logged one was synced");
    journal.flushed(8, "one");
    assert!(!may_be(&journal, 9, "ab", "ac"), "the flush was acknowledged");
    assert!(may_be(&journal, 9, "abd", "c"));
}

/// It took what one family had of a batch without the other's part of it.
#[test]
fn with_atomic_flush_all_families_were_flushed_at_once() {
    let mut journal = journal(false);
    journal.flushes_together = true;
    assert!(
        may_be(&journal, 8, "", "c")
            && may_be(&journal, 8, "a", "ac")
            && may_be(&journal, 8, "ab", "ac")
    );
    assert!(!may_be(&journal, 8, "a", "c"), "half of an unlogged batch");
    assert!(!may_be(&journal, 8, "", "ac"), "the other half");
    journal.flushed(8, "two");
    assert!(!may_be(&journal, 9, "ab", "ac"), "who flushed one flushed all");
    assert!(may_be(&journal, 9, "abd", "ac"));
    journal.goes_on(false);
    assert!(may_be(&journal, 9, "ab", "ac"));
}

#[test]
fn families_come_and_go_when_that_is_acknowledged() {
    let mut journal = Journal::new(holding(&[("one", "")]), false);
    journal.wrote(1, 2, vec![put("one", "a")], true);
    journal.created(3, 5, BTreeMap::from([("new".to_string(), Family::default())]));
    journal.wrote(6, 7, vec![put("new", "b")], true);
    journal.dropped(8, 10, "new");
    let check = |at, found: &[(&str, &str)]| {
        journal.check(Crash { at, is_kept: false }, &holding(found), &none()).is_ok()
    };
    assert!(check(4, &[("one", "")]) && check(4, &[("one", ""), ("new", "")]));
    assert!(!check(5, &[("one", "a")]) && check(5, &[("one", ""), ("new", "")]));
    assert!(check(7, &[("one", "a"), ("new", "b")]) && !check(7, &[("one", ""), ("new", "b")]));
    assert!(check(9, &[("one", ""), ("new", "")]) && check(9, &[("one", "a")]));
    assert!(!check(10, &[("one", "a"), ("new", "b")]));
}

/// Prepared at 1-2 and committed at 5-6; in between `b` was written and synced.
#[test]
fn what_is_prepared_is_listed_until_its_decision() {
    let mut journal = Journal::new(holding(&[("one", "")]), false);
    journal.prepared(1, 2, b"x", &[put("one", "a")]);
    journal.wrote(3, 4, vec![put("one", "b")], true);
    journal.synced(4);
    journal.decided(5, 6, b"x", &[put("one", "a")]);
    let check = |at, found: &str, listed: &[&str]| {
        let listed = listed.iter().map(|name| name.as_bytes().to_vec()).collect();
        journal.check(Crash { at, is_kept: false }, &holding(&[("one", found)]), &listed).is_ok()
    };
    assert!(check(2, "", &["x"]) && check(2, "", &[]), "it was not synced");
    assert!(check(5, "b", &["x"]) && !check(5, "b", &[]), "a later write was");
    assert!(check(6, "b", &["x"]) && check(6, "ab", &[]));
    assert!(!check(6, "ab", &["x"]) && !check(6, "b", &[]));
    assert!(journal.undecided().is_empty());
    let names = BTreeSet::from([b"x".to_vec()]);
    assert_eq!(journal.prepared_as(&names)[&b"x"[..]], [put("one", "a")]);
}
