use super::*;

fn rules(file: &str, text: &str) -> Vec<String> {
    check_source(file, text).into_iter().map(|offence| offence.rule).collect()
}

#[test]
fn an_upward_import_is_an_offence() {
    let upward = rules("crates/flagstone/src/sst/table.rs", "use crate::db::Db;\n");
    assert_eq!(upward, ["sst stands below db and must not use it"]);
    assert!(rules("crates/flagstone/src/db/mod.rs", "use crate::sst::Table;\n").is_empty());
    assert!(rules("crates/flagstone/src/sst/table.rs", "// as in crate::db\n").is_empty());
}

#[test]
fn the_engine_does_not_use_what_stands_on_it() {
    for above in ["salvage", "doctor", "ttl"] {
        let private = format!("use crate::{above}::x;\n");
        let rule = format!("db stands below {above} and must not use it");
        assert_eq!(rules("crates/flagstone/src/db/handle.rs", &private), [rule.as_str()]);
        assert_eq!(rules("crates/flagstone/src/db/mod.rs", &private), [rule.as_str()]);
        assert!(rules("crates/flagstone/src/db/mod.rs", &format!("pub {private}")).is_empty());
        assert!(
            rules(&format!("crates/flagstone/src/{above}/mod.rs"), "use crate::db::Db;\n")
                .is_empty()
        );
    }
}

#[test]
fn long_files_and_functions_are_offences() {
    let file = "crates/cli/src/x.rs";
    assert_eq!(rules(file, &"// x\n".repeat(601)).len(), 1);
    assert_eq!(
        rules(file, &format!("//! Longer than usual: tables.\n{}", "// x\n".repeat(601))).len(),
        0
    );
    let long = format!("fn f() {{\n{}}}\n", "    x();\n".repeat(100));
    assert_eq!(rules(file, &long), ["a function of 102 lines; 70 are the most"]);
}

#[test]
fn locks_come_from_one_place() {
    let rule = "a lock that base::sync does not know";
    assert_eq!(rules("crates/flagstone/src/db/mod.rs", "use parking_lot::Mutex;\n"), [rule]);
    assert_eq!(rules("crates/flagstone/src/db/mod.rs", "use std::sync::Mutex;\n"), [rule]);
    assert!(rules("crates/flagstone/src/db/mod.rs", "use crate::base::sync::Mutex;\n").is_empty());
    assert!(rules("crates/flagstone/src/env/os.rs", "use parking_lot::Mutex;\n").is_empty());
}

#[test]
fn directories_are_synced_in_one_place() {
    let sync = "fs.sync_directory(path)?;\n";
    assert_eq!(rules("crates/flagstone/src/db/mod.rs", sync).len(), 1);
    assert!(rules("crates/flagstone/src/env/names.rs", sync).is_empty());
}

#[test]
fn wide_structures_are_offences() {
    let structure = |name: &str, fields: usize| {
        let fields: String =
            (0..fields).map(|field| format!("    pub(crate) field_{field}: u64,\n")).collect();
        format!("/// A structure.\npub struct {name}<'a> {{\n{fields}}}\n")
    };
    let file = "crates/flagstone/src/db/mod.rs";
    assert_eq!(rules(file, &structure("Wide", 16)), ["Wide has 16 fields; 15 are the most"]);
    assert!(rules(file, &structure("Narrow", 15)).is_empty());
    assert!(rules(file, &structure("Options", 19)).is_empty());
}

#[test]
fn methods_in_many_files_are_offences() {
    let source =
        |file: &str, text: &str| (format!("crates/flagstone/src/{file}"), text.to_string());
    let mut sources: Vec<_> =
        (0..5).map(|n| source(&format!("db/{n}.rs"), "impl<'a> Thing<'a> {\n}\n")).collect();
    // Neither tests count, nor traits.
    sources.push(source("db/x/tests.rs", "impl Thing {\n}\n"));
    sources.push(source(
        "5.rs",
        "impl Drop for Thing {\n}\n#[cfg(test)]\nmod tests {\nimpl Thing {\n}\n}\n",
    ));
    // Nor does another type of that name.
    sources.push(source("env/os.rs", "impl Thing {\n}\n"));
    assert!(check_spread(&sources).is_empty());
    sources.push(source("db/6.rs", "impl Thing {\n}\n"));
    let rules: Vec<_> = check_spread(&sources).into_iter().map(|offence| offence.rule).collect();
    assert_eq!(rules, ["the methods of Thing stand in 6 files; 5 are the most"]);
}

#[test]
fn unsafe_has_its_places() {
    let block = concat!("let x = unsafe", " { y() };\n");
    assert_eq!(rules("crates/flagstone/src/db/mod.rs", block).len(), 1);
    assert_eq!(rules("crates/flagstone/src/memtable/arena.rs", block).len(), 0);
}

#[test]
fn lines_are_as_wide_as_they_need_to_be() {
    let file = "crates/cli/src/x.rs";
    let wide = |before: &str, after: &str| format!("{before}{}{after}", "x".repeat(101));
    let too_wide = ["more than 100 characters"];
    assert_eq!(rules(file, &wide("// ", "")), too_wide);
    assert_eq!(rules(file, &wide("let x", " = 1;")), too_wide);
    assert_eq!(rules(file, &wide("let x = '\"'; let y", " = 1;")), too_wide);
    assert!(rules(file, &wide("let x = \"", "\";")).is_empty());
    // A string over several lines ends where it ends.
    assert!(rules(file, &format!("let x = r#\"\n{}\n\"#;", wide("\"", ""))).is_empty());
    assert_eq!(rules(file, &format!("let x = r#\"\n\"#;\n{}", wide("", ""))), too_wide);
    assert_eq!(rules(file, &format!("let x = \"\\\"\n\";\n{}", wide("", ""))), too_wide);
    // In comments, grammars and tables alone.
    assert!(rules(file, &format!("//! ```text\n{}\n//! ```\n", wide("//! ", ""))).is_empty());
    assert_eq!(rules(file, &format!("/// ```\n{}\n/// ```\n", wide("/// ", ""))), too_wide);
    assert_eq!(rules(file, &format!("// ```text\n// ```\n{}\n", wide("// ", ""))), too_wide);
    assert!(rules(file, &wide("// | ", "|")).is_empty());
    assert_eq!(rules(file, &format!("// | {}", "x".repeat(130))), ["more than 130 characters"]);
}

#[test]
fn tests_stand_apart() {
    let rule = "tests inside production code; they have files of their own";
    let module = "#[cfg(test)]\npub(super) mod tests {\n}\n";
    assert_eq!(rules("crates/cli/src/x.rs", module), [rule]);
    assert_eq!(rules("crates/cli/src/x.rs", "#[test]\nfn f() {\n}\n"), [rule]);
    assert!(rules("crates/cli/src/x/tests.rs", "#[test]\nfn f() {\n}\n").is_empty());
    let named = "#[cfg(test)]\n#[path = \"y.rs\"]\nmod tests;\n\nmod inside {\n}\n";
    assert!(rules("crates/cli/src/x.rs", named).is_empty());
}

#[test]
fn a_bool_is_asked_by_if() {
    let rule = "a match on a bool; write if";
    assert_eq!(rules("crates/cli/src/x.rs", "        true if x => 1,\n"), [rule]);
    assert_eq!(rules("crates/cli/src/x.rs", "        false => 1,\n"), [rule]);
    assert!(rules("crates/cli/src/x.rs", "        (true, 1) => 1,\n").is_empty());
}

#[test]
fn rooms_of_db_use_only_what_stands_below_them() {
    let tree = "crates/flagstone/src/db/tree/edits.rs";
    let upward = rules(tree, "use crate::db::jobs::Jobs;\n");
    assert_eq!(upward, ["tree stands below jobs and must not use it"]);
    let inline = rules(tree, "fn f(jobs: &crate::db::jobs::Jobs) {}\n");
    assert_eq!(inline, ["tree stands below jobs and must not use it"]);
    assert!(rules(tree, "use crate::db::disk::Disk;\n").is_empty());
    let engine = rules("crates/flagstone/src/db/jobs/compact.rs", "use crate::db::DbInner;\n");
    assert_eq!(engine, ["jobs stands below DbInner and must not use it"]);
    assert!(rules("crates/flagstone/src/db/checkpoint.rs", "use crate::db::DbInner;\n").is_empty());
    assert_eq!(rules(tree, "use crate::db::Ticker;\n").len(), 1);
    assert_eq!(rules(tree, "use super::super::jobs::Jobs;\n").len(), 1);
    assert_eq!(rules("crates/flagstone/src/db/attic.rs", "use std::fmt;\n").len(), 1);
    assert!(rules("crates/flagstone/src/db/tree/tests.rs", "use crate::db::Db;\n").is_empty());
}
