//! Numbers of things in words.

/// `1 table`, `2 tables`, `0 entries`: a number and a noun, which ends in `s` where there is not
/// one.
pub fn counted(count: impl TryInto<u64>, one: &str) -> String {
    let count: u64 = count.try_into().unwrap_or(u64::MAX);
    match one.strip_suffix('y') {
        _ if count == 1 => format!("1 {one}"),
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{count} {stem}ies"),
        _ => format!("{count} {one}s"),
    }
}

/// The form of a word that goes with a number: `one` with 1, otherwise `many`.
pub fn form<'t>(count: impl TryInto<u64>, one: &'t str, many: &'t str) -> &'t str {
    if count.try_into().is_ok_and(|count| count == 1) { one } else { many }
}

#[cfg(test)]
mod tests;
