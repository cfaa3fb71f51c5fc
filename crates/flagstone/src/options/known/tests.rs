use super::*;

#[test]
fn a_default_is_recognised_in_any_spelling() {
    let known = find("experimental_mempurge_threshold").unwrap();
    assert!(known.accepts("0.000000") && known.accepts("0") && !known.accepts("0.5"));
    let refusal = known.refusal().to_string();
    assert!(refusal.contains("known but not supported yet; only the default '0'"), "{refusal}");
}

#[test]
fn what_has_nothing_to_act_on_takes_any_number() {
    let known = find("max_write_buffer_number_to_maintain").unwrap();
    assert!(known.accepts("-1") && known.accepts("4") && !known.accepts("many"));
}

/// Every name that is passed over in silence is one that the engine knows and does not act on.
#[test]
fn what_is_inert_is_known() {
    INERT.iter().for_each(|name| assert!(find(name).is_some(), "{name}"));
    let kept = KNOWN.iter().filter(|known| known.kept);
    kept.for_each(|known| assert!(INERT.contains(&known.name), "{}", known.name));
}

#[test]
fn no_name_is_listed_twice() {
    let mut names: Vec<_> = KNOWN.iter().map(|known| known.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}
