//! Entities on the command line: what one command writes the others show, copy and load again.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use common::{failed, printed, run_with_input};

#[test]
fn columns_are_put_shown_and_copied() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let db = at("db");
    printed(&format!("put-entity --db {db} ada :countess born:1815 motto:a:b"));
    printed(&format!("put_entity --db {db} --hex 616c616e 626f726e:31393132 62:ff"));
    printed(&format!("put --db {db} plain value"));

    let ada = ":countess born:1815 motto:a:b";
    assert_eq!(printed(&format!("get-entity --db {db} ada")), format!("{ada}\n"));
    assert_eq!(printed(&format!("get_entity --db {db} plain")), ":value\n");
    assert_eq!(printed(&format!("get --db {db} ada")), "countess");
    assert_eq!(failed(&format!("get-entity --db {db} nobody")).0, 1);
    assert_eq!(failed(&format!("put-entity --db {db} ada born")).0, 2);
    let all = format!("ada\t{ada}\nalan\tb:\\xff born:1912\nplain\tvalue\n");
    assert_eq!(printed(&format!("scan --db {db}")), all);
    assert_eq!(
        printed(&format!("scan --db {db} --json --from alan --limit 1")),
        "{\"columns\":[{\"name\":\"b\",\"value_base64\":\"/w==\"},\
         {\"name\":\"born\",\"value\":\"1912\"}],\"key\":\"alan\"}\n"
    );

    let dump = printed(&format!("dump --db {db}"));
    let (copy, table, ingested) = (at("copy"), at("table.sst"), at("ingested"));
    run_with_input(&format!("load --db {copy}"), dump.as_bytes());
    assert_eq!(printed(&format!("scan --db {copy}")), all);
    assert_eq!(printed(&format!("dump --db {copy}")), dump);
    run_with_input(&format!("write-extern-sst --db {db} {table}"), dump.as_bytes());
    let entries = printed(&format!("sst {table} --entries"));
    assert_eq!(entries.lines().next(), Some(&*format!("ada\t0\tWideColumnEntity\t{ada}")));
    printed(&format!("put --db {ingested} key value"));
    printed(&format!("ingest --db {ingested} {table}"));
    assert_eq!(printed(&format!("get-entity --db {ingested} ada")), format!("{ada}\n"));
}
