//! Facts in, findings out, both as text. A case of `testdata/cases`: lines of facts (`family` begins the next one, `fault` takes
//! the rest of its line), `----`, the findings; cases are parted by empty lines.

use super::{DatabaseFacts, Facts, FamilyFacts, diagnose};

fn read(text: &str) -> Facts {
    let mut facts =
        Facts { database: DatabaseFacts::default(), families: vec![FamilyFacts::default()], faults: vec![] };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.split_once(' ').expect("NAME VALUE");
        match name {
            "fault" => facts.faults.push(value.to_string()),
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

#[test]
fn findings_are_what_the_cases_say() {
    for case in include_str!("testdata/cases").split("\n\n") {
        let (given, expected) = case.split_once("----").expect("facts, then findings");
        let found: Vec<String> =
            diagnose(&read(given)).iter().map(|finding| format!("\n{finding}")).collect();
        let expected = expected.trim_end();
        assert_eq!(found.concat(), expected, "\n{given}");
    }
}
