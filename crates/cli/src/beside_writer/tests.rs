use super::*;
use std::cell::Cell;

/// What is found after so many looks at a database that changes during the first `changes` of them,
/// and how many there were.
fn after(changes: u32, faults: &[bool]) -> (bool, bool, usize) {
    let faults: Vec<_> = faults.iter().map(|is_faulty| Some(*is_faulty)).collect();
    let (found, is_doubtful, looks) = outcome_after(changes, &faults);
    (found.expect("no look fails"), is_doubtful, looks)
}

/// Looks that are `None` fail.
fn outcome_after(changes: u32, faults: &[Option<bool>]) -> (Option<bool>, bool, usize) {
    let (looks, version) = (Cell::new(0), Cell::new(0));
    let seen = look_until_still(
        || version.get(),
        |is_faulty| *is_faulty,
        || {
            let found = faults[looks.get()];
            looks.set(looks.get() + 1);
            version.set((looks.get() as u32).min(changes));
            found.ok_or_else(|| Failure::Other("it does not open".to_string()))
        },
    );
    let (found, is_doubtful) =
        seen.map_or((None, false), |seen| (Some(seen.found), seen.is_doubtful));
    (found, is_doubtful, looks.get())
}

/// A column family that was dropped between the look at the MANIFEST and the opening was an error.
#[test]
fn an_opening_that_fails_is_repeated_where_the_database_has_changed() {
    assert_eq!(outcome_after(0, &[None]), (None, false, 1));
    assert_eq!(outcome_after(1, &[None, Some(false)]), (Some(false), false, 2));
    assert_eq!(outcome_after(99, &[None; OPENINGS]), (None, false, OPENINGS));
    assert_eq!(outcome_after(9, &[None, Some(true), None, Some(true)]), (Some(true), true, 4));
}

#[test]
fn faults_count_only_where_the_database_holds_still() {
    assert_eq!(after(0, &[false]), (false, false, 1));
    assert_eq!(after(9, &[false]), (false, false, 1), "what is sound is sound");
    assert_eq!(after(0, &[true]), (true, false, 1));
    assert_eq!(after(9, &[true, false]), (false, false, 2));
    assert_eq!(after(1, &[true, true]), (true, false, 2), "it held still at the second look");
    assert_eq!(after(9, &[true, true]), (true, true, 2));
}
