use super::*;

#[test]
fn versions_come_from_the_lock_file() {
    let versions = versions(include_str!("../../Cargo.lock"));
    let of = |title: &str| {
        versions.iter().find(|(name, _)| name == title).map(|(_, version)| version.as_str())
    };
    assert!(of("RocksDB").unwrap().starts_with("11.8"), "{versions:?}");
    assert!(of("fjall").unwrap().starts_with("3."), "{versions:?}");
}

#[test]
fn the_machine_is_found() {
    let environment = Environment::look(Path::new("/")).unwrap();
    assert!(environment.cores >= 1 && environment.memory_bytes > 1 << 20);
    assert_ne!(environment.file_system, "unknown");
}
