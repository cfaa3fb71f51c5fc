//! `flagstone query`

use crate::common::{printed, run_with_input};
use crate::{said, told};

fn query(line: &str, input: &str) -> (i32, String) {
    told(&run_with_input(&format!("query {line}"), input.as_bytes()))
}

#[test]
fn lines_are_answered_in_turn() {
    let scratch = tempfile::tempdir().unwrap();
    let db = format!("--db {}", scratch.path().join("db").display());
    printed(&format!("put {db} first 0"));
    let input = "put a 1\n\n# nothing\nput b two\\x20words\nget b\nscan --from a --to c\ncount\n\
                 delete a\ndelete-range f g\ncount\nquit\nget b\n";
    let (code, text) = query(&db, input);
    let answers = "OK\nOK\ntwo words\na\t1\nb\ttwo words\n3\nOK\nOK\n1\n";
    assert_eq!((code, text.as_str()), (0, answers), "no prompt in a pipe, nothing after quit");
    assert_eq!(printed(&format!("scan {db}")), "b\ttwo words\n");
}

/// Only blanks part words, and a word may look like a flag.
#[test]
fn words_are_taken_as_they_are() {
    let scratch = tempfile::tempdir().unwrap();
    let db = format!("--db {}", scratch.path().join("db").display());
    printed(&format!("put {db} first 0"));
    let input =
        "put balance -5\nget balance\nput -h one\nget -h\nput a\u{3000}b c\nget a\u{3000}b\n";
    assert_eq!(query(&db, input), (0, "OK\n-5\nOK\none\nOK\nc\n".to_string()));
    assert_eq!(printed(&format!("count {db}")), "4\n");
}

#[test]
fn a_line_that_fails_is_named_and_the_next_one_is_read() {
    let scratch = tempfile::tempdir().unwrap();
    let db = format!("--db {}", scratch.path().join("db").display());
    printed(&format!("put {db} a 1"));
    for (wrong, expected) in [
        ("get none", "key 'none' is not in column family 'default'"),
        ("fly", "line 1: unrecognized subcommand 'fly' (help lists the commands)"),
        ("put k", "line 1: "),
        ("get \\q", "line 1: the key '\\q': after a backslash expected"),
        ("delete-range z a", "line 1: FROM comes after TO"),
        ("get a --read-timestamp 5", "have no timestamps"),
        ("put a 1 --write-timestamp 5", "leave out --write-timestamp"),
    ] {
        let (code, text) = query(&db, &format!("{wrong}\nget a\n"));
        assert!(code == 1 && text.contains(expected), "{wrong}: {text}");
        assert!(text.contains("1\n"), "{wrong}: {text}");
    }
    let (code, text) = query(&format!("{db} --hex"), "get zz\nget 61\n");
    assert!(code == 1 && text.contains("not hexadecimal") && text.contains("31\n"), "{text}");
}

#[test]
fn answers_in_json_are_objects() {
    let scratch = tempfile::tempdir().unwrap();
    let db = format!("--db {}", scratch.path().join("db").display());
    printed(&format!("put {db} a 1"));
    let output = run_with_input(
        &format!("query {db} --json"),
        b"put b 2\nget b\nget none\nscan --limit 1\ncount\nfly\n",
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let facts: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(facts[0]["done"], true);
    assert_eq!(facts[1]["value"], "2");
    assert_eq!((&facts[2]["found"], &facts[2]["key"]), (&false.into(), &"none".into()));
    assert_eq!(facts[3]["key"], "a");
    assert_eq!(facts[4]["keys"], 2);
    assert!(facts[5]["line"] == 6 && facts[5]["error"].as_str().unwrap().contains("fly"), "{text}");
    assert_eq!((facts.len(), output.status.code()), (6, Some(1)));
}

#[test]
fn one_that_only_reads_changes_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = format!("--db {}", path.display());
    printed(&format!("put {db} a 1"));
    let before = crate::common::contents(&path);
    let (code, text) = query(&format!("{db} --read-only"), "get a\nput a 2\n");
    assert!(code == 1 && text.contains("leave out --read-only"), "{text}");
    assert_eq!(crate::common::contents(&path), before);
    let (code, text) = query(&format!("--db {}", scratch.path().join("none").display()), "");
    assert!(code == 1 && text.contains("there is no database here"), "{text}");
}

#[test]
fn values_of_a_ttl_database_lose_their_stamps() {
    let scratch = tempfile::tempdir().unwrap();
    let db = format!("--db {}", scratch.path().join("db").display());
    printed(&format!("put {db} --ttl a 1"));
    assert_eq!(query(&format!("{db} --ttl"), "put b 2\nget a\nget b\n"), (0, "OK\n1\n2\n".into()));
    assert_eq!(printed(&format!("get {db} --ttl b")), "2");
    assert!(said("query --help").1.contains("help lists the commands"));
}
