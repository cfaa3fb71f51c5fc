use super::*;

/// Two scenarios were lived by the laboratory alone, when somebody asked for a long run.
#[test]
fn the_tests_live_all_scenarios() {
    let mut named =
        [WRITING, LEAVING_LOGS, BY_HAND, COMPACTING, ADMINISTERING, RECOVERING].concat();
    let mut known: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    named.sort_unstable();
    known.sort_unstable();
    assert_eq!(named, known);
}
