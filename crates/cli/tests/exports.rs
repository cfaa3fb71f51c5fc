//! `export-family`, `import-family` and `clip`.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use common::{failed, printed};

#[test]
fn a_family_goes_from_one_database_to_another() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let (source, target, export) = (at("source"), at("target"), at("export"));
    printed(&format!("put --db {source} a 1"));
    printed(&format!(
        "create-family --db {source} cats --set compaction_style=kCompactionStyleUniversal"
    ));
    printed(&format!("put --db {source} --cf cats tom grey"));
    printed(&format!("put --db {target} b 2"));
    printed(&format!("export-family --db {source} --cf cats {export}"));
    assert_eq!(printed(&format!("list-families --db {export}")), "default\ncats\n");
    printed(&format!("import-family --db {target} --cf pets --verify {export}"));
    assert_eq!(printed(&format!("get --db {target} --cf pets tom")).trim(), "grey");
    assert!(printed(&format!("verify --db {target}")).contains("sound"));
    let written = std::fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().path());
    let written = written.filter(|path| path.to_string_lossy().contains("OPTIONS-")).max();
    let options = std::fs::read_to_string(written.unwrap()).unwrap();
    let of_pets = options.split_once("CFOptions \"pets\"").unwrap().1;
    assert!(of_pets.contains("compaction_style=kCompactionStyleUniversal"), "those of the export");
    // Once more, moved.
    printed(&format!("import-family --db {target} --cf again --move-files {export}"));
    assert!(!scratch.path().join("export").exists());
    let (code, said) = failed(&format!("import-family --db {target} --cf none {export}"));
    assert!(code != 0 && said.contains("no export"), "{code} {said}");
    printed(&format!("put --db {source} --cf cats tim black"));
    let (code, said) = failed(&format!("import-family --db {target} --cf none {source}"));
    assert!(code != 0 && said.contains("WAL"), "{code} {said}");
}

#[test]
fn what_lies_outside_of_a_range_is_clipped() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    for key in ["a", "b", "c", "d"] {
        printed(&format!("put --db {db} {key} {key}{key}"));
    }
    let (code, said) = failed(&format!("clip --db {db} c b"));
    assert!(code != 0 && said.contains("FROM"), "{code} {said}");
    printed(&format!("clip --db {db} b d"));
    assert_eq!(printed(&format!("scan --db {db}")), "b\tbb\nc\tcc\n");
}
