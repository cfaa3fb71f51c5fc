//! Tests stand in files of their own: a file of production code has neither tests nor modules with
//! a body for them. It may name a module of tests (`#[cfg(test)] mod tests;`), and may have small
//! helpers for tests that reach what is private.

/// Lines of a production file that belong into a file of tests.
pub fn misplaced(lines: &[&str]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_for_tests = false;
    for (index, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        if code == "#[test]" || is_for_tests && begins_module(code) {
            found.push(index + 1);
        }
        is_for_tests = code.starts_with("#[cfg(test)]") || is_for_tests && code.starts_with("#[");
    }
    found
}

/// Whether a module begins whose body stands here.
fn begins_module(code: &str) -> bool {
    let visible = code.strip_prefix("pub").map_or(code, |rest| {
        rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest)
    });
    visible.trim_start().starts_with("mod ") && code.ends_with('{')
}
