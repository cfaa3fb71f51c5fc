//! Histories as text, which people write by hand when they look for what matters in one.

use crate::history::Case;

/// Reads a history; what is printed of it must be read as the same.
pub fn history(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(case) = text.parse::<Case>() else { return };
    let printed = case.to_string();
    let again: Case = printed.parse().unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert!(again == case, "another history is read from\n{printed}");
}
