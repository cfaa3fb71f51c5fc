use super::*;

#[test]
fn only_builds_that_are_certainly_of_one_commit_measure_together() {
    let alone = "peers 0123456789ab\nBuilt with flagstone alone\n";
    assert_eq!(engines_of(alone, "0123456789ab").unwrap(), "flagstone alone");
    let other = engines_of(alone, "ba9876543210").unwrap_err();
    assert_eq!(other, "it is peers 0123456789ab, this one peers ba9876543210");
    for own in ["0123456789ab with local changes", "unknown"] {
        let refused = engines_of(&format!("peers {own}\nBuilt with {ENGINES}\n"), own).unwrap_err();
        assert!(refused.ends_with("cannot be told"), "{refused}");
    }
    assert!(engines_of("peers 0123456789ab\n", "0123456789ab").is_err());
}

#[test]
fn an_engine_has_one_program() {
    let programs = ["one", "two"].map(|path| (EngineName::Flagstone, PathBuf::from(path)));
    let twice = ask(&programs, Duration::from_secs(60)).unwrap_err().to_string();
    assert_eq!(twice, "there are two programs for Flagstone");
}
