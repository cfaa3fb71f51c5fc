//! Facts in, findings out, both as text. A case of `testdata/cases`: lines of facts (`family` begins the next one, `fault`,
//! `unsupported`, `refused` and `key-fault` take the rest of their line; so does `aside`, what helps behind a `|`, and `log`,
//! behind a fate, a mode, and the records behind the damage), `----`, the findings; cases are parted by empty lines.

use super::{Facts, FamilyFacts, LogFacts, LogFate, diagnose};

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
                facts.aside.push((what.to_string(), remedy.to_string()));
            }
            "refused" => facts.refused.push(value.to_string()),
            "key-fault" => facts.key_faults.push(value.to_string()),
            "state" => facts.database.state = value.to_string(),
            "family" => {
                facts.families.push(FamilyFacts { name: value.to_string(), ..FamilyFacts::default() })
            }
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
    LogFacts { fate, mode, records_behind, bytes_behind: 100 * records_behind, what: word().to_string() }
}

#[test]
fn findings_are_what_the_cases_say() {
    let mut wrong = String::new();
    for case in include_str!("testdata/cases").split("\n\n") {
        let (given, expected) = case.split_once("----").expect("facts, then findings");
        let found: String = diagnose(&read(given)).iter().map(|finding| format!("\n{finding}")).collect();
        if found != expected.trim_end() {
            wrong.push_str(&format!("\n{case}\nThe doctor says{found}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
