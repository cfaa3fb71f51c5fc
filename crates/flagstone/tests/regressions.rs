//! Faults that the laboratory found, each told by the shortest story that showed it.

use flagstone::base::Code;
use flagstone::db::Db;
use flagstone::env::Env;
use testkit::settings;

#[test]
fn options_that_no_table_can_be_written_with_are_refused_at_once() {
    // `block_align` with compression passed for good options, and for a good change of a running database: the first
    // flush found that no table could be written so, which poisoned the database.
    let mut options = settings::tiny(&Env::memory());
    settings::set(&mut options, &[("table.block_align", "true")]);
    let db = Db::open("/db", &options).expect("aligned blocks, not compressed");
    let family = db.default_column_family();
    for change in ["compression", "bottommost_compression"] {
        let refused = db.set_options(family, &[(change, "kZSTD")]).expect_err("a flush would fail");
        assert_eq!(refused.code(), Code::InvalidArgument, "{change}: {refused}");
    }
    db.put("k", "v").expect("a write");
    db.flush_all().expect("a flush");
    drop(db);
    settings::set(&mut options, &[("compression_per_level", "kNoCompression:kZSTD")]);
    let refused = Db::open("/db", &options).expect_err("a compaction would fail");
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
}
