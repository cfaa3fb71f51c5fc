//! Applies the repository's rules to the repository.

use std::path::Path;

#[test]
fn the_repository_keeps_its_rules() {
    let offences = tidy::check_repository(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let listed: Vec<_> =
        offences.iter().map(|o| format!("{}:{}: {}", o.file, o.line, o.rule)).collect();
    assert!(listed.is_empty(), "{} offences:\n{}", listed.len(), listed.join("\n"));
}
