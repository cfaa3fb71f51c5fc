use super::*;
use crate::batch::WriteBatch;

const BEGIN: u8 = 9;
const BEGIN_WRITTEN: u8 = 0x12;

/// A record that begins at 100, of puts (`a`), marks (`-`), sections (`[`, `{`, `]`) and decisions.
fn record(what: &str) -> Vec<u8> {
    let mut batch = WriteBatch::new();
    batch.set_sequence(100);
    for one in what.chars() {
        match one {
            '-' => batch.push_encoded(&[0x0d], false),
            '[' => batch.push_encoded(&[BEGIN], false),
            '{' => batch.push_encoded(&[BEGIN_WRITTEN], false),
            ']' => batch.push_encoded(b"\x0a\x01x", false),
            'C' => batch.push_commit(b"x"),
            'R' => batch.push_rollback(b"x"),
            key => batch.put([key as u8], "v"),
        }
        .unwrap();
    }
    batch.into_bytes()
}

/// The numbers of operations, and the number behind all.
fn numbers(what: &str, are_shared: bool, at_commit: u64) -> Result<String> {
    let record = record(what);
    let mut sections = Sections::new(BatchView::parse(&record)?, are_shared);
    let mut told = String::new();
    while let Some(step) = sections.step()? {
        match step {
            Step::Plain { operation, sequence, .. } => {
                let (_, key, _) = operation.entry().unwrap();
                told += &format!("{}@{sequence} ", key.escape_ascii());
            }
            Step::Prepared { operation, encoded, sequence, .. } => {
                let (_, key, _) = operation.entry().unwrap();
                assert!(encoded.windows(key.len()).any(|part| part == key));
                told += &format!("({}@{sequence}) ", key.escape_ascii());
            }
            Step::EndSection { xid, .. } => told += &format!("prepared {} ", xid.escape_ascii()),
            Step::Commit { .. } => {
                told += "commit ";
                sections.skip(at_commit);
            }
            Step::Rollback { .. } => told += "rollback ",
        }
    }
    Ok(told + &format!("next {}", sections.next_sequence()))
}

#[test]
fn sections_of_write_committed_transactions_take_no_numbers() {
    let cases = [
        ("[ab]", "(a@0) (b@0) prepared x next 100"),
        ("-[ab]", "(a@0) (b@0) prepared x next 100"),
        ("C", "commit next 102"),
        ("cC", "c@100 commit next 103"),
        ("R", "rollback next 100"),
        ("a[b]c", "a@100 (b@0) prepared x c@101 next 102"),
        ("ab-", "a@100 b@101 next 102"),
    ];
    for (what, told) in cases {
        assert_eq!(numbers(what, false, 2).unwrap(), told, "{what}");
    }
}

#[test]
fn operations_of_write_prepared_transactions_share_numbers() {
    let cases = [
        ("{ab]", "(a@100) (b@100) prepared x next 101"),
        ("{aba]", "(a@100) (b@100) (a@101) prepared x next 102"),
        ("C", "commit next 101"),
        ("cC", "c@100 commit next 101"),
        ("abR", "a@100 b@100 rollback next 101"),
        ("-ab-cd-", "a@100 b@100 c@101 d@101 next 102"),
        ("{a]C", "(a@100) prepared x commit next 102"),
    ];
    for (what, told) in cases {
        assert_eq!(numbers(what, true, 0).unwrap(), told, "{what}");
    }
}

#[test]
fn sections_that_are_not_whole_are_refused() {
    for (what, why) in [
        ("[a", "does not end"),
        ("a]", "has not begun"),
        ("[[a]", "a marker stands in"),
        ("[C]", "a marker stands in"),
    ] {
        let error = numbers(what, false, 0).unwrap_err();
        assert!(error.is_corruption() && error.message().contains(why), "{what}: {error}");
    }
}
