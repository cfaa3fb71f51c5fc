use super::*;

fn said(own: Option<&str>) -> Flushed {
    let mut flushed = Flushed::default();
    for (identity, until) in [("this", 5), ("", 3), ("that", 9), ("this", 4)] {
        flushed.note(identity, until);
    }
    flushed.finish(own);
    flushed
}

#[test]
fn tables_of_another_database_do_not_count_and_are_in_doubt() {
    let mut flushed = said(Some("this"));
    assert!(flushed.had(5) && !flushed.had(10) && flushed.is_certain());
    assert!(!flushed.had(9) && !flushed.is_certain());
    // One of which nothing tells whose it is may be its own.
    let mut flushed = said(Some("neither"));
    assert!(flushed.had(3) && flushed.is_certain() && !flushed.had(4) && !flushed.is_certain());
    let mut flushed = said(None);
    assert!(flushed.had(9) && !flushed.had(10) && flushed.is_certain());
}
