//! Applies the repository's rules to the repository.

use std::path::Path;

#[test]
fn the_repository_keeps_its_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = tidy::rust_sources(&root);
    assert!(sources.len() > 20, "the sources were not found");
    let read = |source: std::path::PathBuf| {
        let text = std::fs::read_to_string(&source).expect("a source can be read");
        let relative = source.strip_prefix(&root).expect("below the root");
        (relative.to_string_lossy().replace('\\', "/"), text)
    };
    let sources: Vec<_> = sources.into_iter().map(read).collect();
    let mut offences = tidy::check_spread(&sources);
    offences.extend(sources.iter().flat_map(|(file, text)| tidy::check_source(file, text)));
    let listed: Vec<_> =
        offences.iter().map(|o| format!("{}:{}: {}", o.file, o.line, o.rule)).collect();
    assert!(listed.is_empty(), "{} offences:\n{}", listed.len(), listed.join("\n"));
}
