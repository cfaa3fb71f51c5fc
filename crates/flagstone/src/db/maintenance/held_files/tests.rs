use super::*;
use crate::env::Env;
use crate::options::Options;

fn tables(options: &Options) -> usize {
    let names = options.env.fs.list("/db".as_ref()).unwrap();
    names.iter().filter(|name| name.ends_with(".sst")).count()
}

#[test]
fn tables_that_were_compacted_stay_until_the_last_holder_is_gone() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open("/db", &options).unwrap();
    let holders = [db.hold_files(), db.hold_files()];
    for value in ["old", "new"] {
        db.put("key", value).unwrap();
        db.flush_all().unwrap();
    }
    let compact = || {
        let family = db.default_column_family();
        db.compact_range(family, None, None, &Default::default()).unwrap();
    };
    compact();
    assert_eq!(tables(&options), 3);
    let [first, last] = holders;
    drop(first);
    assert_eq!(tables(&options), 3);
    drop(last);
    assert_eq!(tables(&options), 1);

    let outlives = db.hold_files();
    db.close().unwrap();
    drop(db);
    drop(outlives);
    assert_eq!(Db::open("/db", &options).unwrap().get("key").unwrap().unwrap(), "new");
}
