//! Facts in, findings out, both as text. A case of `testdata/cases`: lines of facts (`family`
//! begins the next one, `fault`, `unsupported`, `refused` and `key-fault` take the rest of their
//! line; so does `aside`, what helps behind a `|`, and `log`, behind a fate, a mode, and the
//! records behind the damage), `----`, the findings; cases are parted by empty lines.

use crate::base::Remedy;

use super::diagnose;
use crate::db::{Facts, FamilyFacts, LogFacts, LogFate};
use crate::options::Options;

fn read(text: &str) -> Facts {
    let mut facts = Facts { families: vec![FamilyFacts::default()], ..Facts::default() };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.split_once(' ').expect("NAME VALUE");
        match name {
            "log" => facts.logs.push(log(value)),
            "fault" => facts.faults.push(value.to_string()),
            "unsupported" => facts.unsupported.push(value.to_string()),
            "aside" => {
                let (what, remedy) = value.split_once(" | ").expect("WHAT | REMEDY");
                assert_eq!(remedy, Remedy::DropOldestSnapshots.to_string());
                facts.aside.push((what.to_string(), vec![Remedy::DropOldestSnapshots]));
            }
            "refused" => facts.refused.push(value.to_string()),
            "key-fault" => facts.key_faults.push(value.to_string()),
            "state" => facts.database.state = value.to_string(),
            "family" => facts
                .families
                .push(FamilyFacts { name: value.to_string(), ..FamilyFacts::default() }),
            _ => match name.strip_prefix("db.") {
                Some(name) => facts.database.set(name, value),
                None => facts.families.last_mut().expect("at least one").set(name, value),
            },
        }
    }
    facts
}

fn log(text: &str) -> LogFacts {
    let mut words = text.splitn(4, ' ');
    let mut word = || words.next().expect("FATE MODE RECORDS WHAT");
    let fate = match word() {
        "refused" => LogFate::Refused,
        "history-ends" => LogFate::HistoryEnds,
        "wal-ends" => LogFate::WalEnds,
        "passed-over" => LogFate::PassedOver,
        "torn-end" => LogFate::TornEnd,
        "missing" => LogFate::Missing,
        unknown => panic!("there is no fate {unknown}"),
    };
    let mode = word().to_string();
    let records_behind: u64 = word().parse().expect("a number");
    LogFacts {
        fate,
        mode,
        records_behind,
        bytes_behind: 100 * records_behind,
        what: word().to_string(),
    }
}

#[test]
fn findings_are_what_the_cases_say() {
    let mut wrong = String::new();
    for case in include_str!("testdata/cases").split("\n\n") {
        let (given, expected) = case.split_once("----").expect("facts, then findings");
        let found: String =
            diagnose(&read(given)).iter().map(|finding| format!("\n{finding}")).collect();
        if found != expected.trim_end() {
            wrong.push_str(&format!("\n{case}\nThe doctor says{found}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// What the option named by a remedy is in the facts, as far as that alone decides.
fn apply(facts: &mut Facts, option: &str, to: &str) -> bool {
    let database = &mut facts.database;
    match option {
        // What was counted begins anew when it is opened with that.
        "max_open_files" => (database.max_open_files, database.file_reopens) = (parsed(to), 0),
        "max_total_wal_size" if database.max_total_wal_size > 0 => {
            database.max_total_wal_size = parsed(to)
        }
        "db_write_buffer_size" if database.memtable_bytes == 0 => {
            database.db_write_buffer_size = parsed(to);
        }
        "write_buffer_size" => {
            facts.families.iter_mut().for_each(|family| family.write_buffer_size = parsed(to))
        }
        "disable_auto_compactions" => {
            facts.families.iter_mut().for_each(|family| family.disable_auto_compactions = false);
        }
        _ => return false,
    }
    true
}

fn parsed(number: &str) -> u64 {
    number.parse().expect("a number")
}

/// An option that is not known, or a value that is out of its range, helps nobody.
#[test]
fn what_is_to_be_set_can_be_set_and_clears_what_it_is_for() {
    let (mut set, mut cleared) = (0, 0);
    for case in include_str!("testdata/cases").split("\n\n") {
        let (given, _) = case.split_once("----").expect("facts, then findings");
        let mut facts = read(given);
        for remedy in diagnose(&facts).into_iter().flat_map(|finding| finding.remedies) {
            let Remedy::Set { option, to, .. } = &remedy else { continue };
            let mut options = Options::default();
            let accepted = options.set(option, to);
            accepted.unwrap_or_else(|error| panic!("{remedy}: {error}"));
            set += 1;
            if apply(&mut facts, option, to) {
                let after = diagnose(&facts);
                let is_left = after.iter().any(|finding| finding.remedies.contains(&remedy));
                assert!(!is_left, "{case}\nAfter '{remedy}': {after:?}");
                cleared += 1;
            }
        }
    }
    assert!(set > 40 && cleared >= 8, "{set} {cleared}");
}
