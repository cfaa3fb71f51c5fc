use std::collections::BTreeSet;

use super::{History, Level, judge};

mod simulated;

use self::simulated::{Fault, simulate};

const CASES: &str = include_str!("testdata/anomalies.txt");

fn says(history: &History) -> String {
    judge(history).iter().map(|anomaly| format!("{anomaly}\n")).collect()
}

#[test]
fn hand_written_histories_are_judged() {
    let cases: Vec<&str> = CASES.split("history: ").skip(1).collect();
    assert!(cases.len() > 20, "there are some of each kind");
    for case in cases {
        let (name, case) = case.split_once('\n').expect("a name");
        let (history, expected) = case.split_once("says:\n").expect("what the judge says");
        let history: History = history.parse().expect("a history");
        assert_eq!(says(&history).trim_end(), expected.trim_end(), "{name}");
    }
}

#[test]
fn every_level_is_violated_by_a_hand_written_history() {
    for level in [
        Level::ReadCommitted,
        Level::SnapshotIsolation,
        Level::Serializable,
        Level::StrictSerializable,
    ] {
        assert!(CASES.contains(&format!("; not {level}:\n")), "{level}");
    }
}

#[test]
fn a_history_is_the_same_as_text() {
    let history = simulate(1, 300, None);
    let text = history.to_string();
    assert_eq!(text.parse::<History>().as_ref(), Ok(&history));
    for wrong in ["p1", "p1 3-7 well: append 1 1", "p1 3-7 ok: locked 1 5", "1 3-7 ok:"] {
        assert!(wrong.parse::<History>().is_err(), "{wrong}");
    }
}

/// Histories as a sound database may show them, with write skew between snapshots, conflicts and
/// processes that died.
#[test]
fn sound_histories_pass() {
    for seed in 0..100 {
        let history = simulate(seed, 300, None);
        assert_eq!(says(&history), "", "seed {seed}:\n{history}");
    }
}

/// A database with one fault shows it in every history of some length.
#[test]
fn broken_histories_fail() {
    for (fault, names) in Fault::ALL {
        let mut seen = BTreeSet::new();
        for seed in 0..20 {
            let history = simulate(seed, 300, Some(*fault));
            let anomalies = judge(&history);
            assert!(!anomalies.is_empty(), "{fault:?} escapes with seed {seed}");
            seen.extend(anomalies.iter().map(|anomaly| anomaly.name));
        }
        let is_named = names.iter().any(|name| seen.iter().any(|seen| seen.starts_with(name)));
        assert!(is_named, "{fault:?} is called {seen:?}, and never one of {names:?}");
    }
}

/// A fault in a long history is found in the time of a test, and told in a few lines.
#[test]
fn long_histories_are_judged_and_cycles_stay_short() {
    let history = simulate(7, 3000, Some(Fault::ForgetConflicts));
    let anomalies = judge(&history);
    assert!(!anomalies.is_empty());
    assert!(anomalies.iter().all(|anomaly| anomaly.words.len() <= 4), "{anomalies:#?}");
    let told = anomalies[0].tell(&history);
    assert!(told.lines().count() < 10 && told.contains(" ok: "), "{told}");
}
