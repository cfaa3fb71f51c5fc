use super::*;
use crate::testing;

#[test]
fn lines_come_back_and_a_torn_one_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.jsonl");
    assert!(read(&path).unwrap().is_empty());
    let line = Line::Run(Box::new(testing::run(crate::cell::EngineName::Flagstone, 0, 100.0)));
    Store::open(&path).unwrap().append(&line).unwrap();
    std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"run\":").unwrap();
    assert_eq!(read(&path).unwrap(), std::slice::from_ref(&line));
    Store::open(&path).unwrap().append(&line).unwrap();
    assert_eq!(read(&path).unwrap(), [line.clone(), line]);
}

#[test]
fn a_run_that_does_not_say_what_made_it_is_of_a_build_with_all_engines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.jsonl");
    let line = Line::Run(Box::new(testing::run(crate::cell::EngineName::Flagstone, 0, 100.0)));
    let text = serde_json::to_string(&line).unwrap();
    let before = text.replace(r#","program":"all engines""#, "");
    assert_ne!(before, text);
    std::fs::write(&path, before + "\n").unwrap();
    assert_eq!(read(&path).unwrap(), [line]);
}

#[test]
fn damage_in_the_middle_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.jsonl");
    std::fs::write(&path, "nonsense\n{}\n").unwrap();
    assert!(read(&path).unwrap_err().to_string().contains(":1:"));
}
