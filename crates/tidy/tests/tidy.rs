//! Applies the repository's rules to the repository.

use std::path::Path;

#[test]
fn the_repository_keeps_its_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = tidy::rust_sources(&root);
    assert!(sources.len() > 20, "the sources were not found");
    let mut offences = Vec::new();
    for source in sources {
        let text = std::fs::read_to_string(&source).expect("a source can be read");
        let relative =
            source.strip_prefix(&root).expect("below the root").to_string_lossy().replace('\\', "/");
        offences.extend(tidy::check_source(&relative, &text));
    }
    let listed: Vec<_> = offences.iter().map(|o| format!("{}:{}: {}", o.file, o.line, o.rule)).collect();
    assert!(listed.is_empty(), "{} offences:\n{}", listed.len(), listed.join("\n"));
}
