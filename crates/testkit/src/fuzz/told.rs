//! What a running database tells of itself, as the doctor reads it out of a log.

use flagstone::db::{DatabaseFacts, Facts, FamilyFacts, diagnose};

use super::input::ok;

/// Reads reports on two families; whatever they say, a diagnosis comes of it, and no terminal obeys
/// it.
pub fn statistics(data: &[u8]) {
    let family = |name: &str| FamilyFacts { name: name.to_string(), ..FamilyFacts::default() };
    let database =
        DatabaseFacts { is_running: false, knows_cache: false, ..DatabaseFacts::default() };
    let families = vec![family("default"), family("photos, old")];
    let mut facts = Facts { database, families, ..Facts::default() };
    // A log need not be text.
    if ok(facts.add_statistics(&String::from_utf8_lossy(data))).is_none() {
        return;
    }
    for finding in diagnose(&facts) {
        let said = finding.to_string();
        assert!(!said.contains(|char: char| char.is_control() && char != '\n'), "{said:?}");
    }
}
