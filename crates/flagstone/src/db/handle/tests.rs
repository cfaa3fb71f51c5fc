use crate::base::allocator::RELEASES;
use crate::db::handle::Db;
use crate::env::Env;
use crate::options::Options;

/// The C library kept for good what threads that were gone had freed: 44 MiB of what a load of 350
/// MB took.
#[test]
fn what_a_large_database_had_goes_back_to_the_system() {
    for (entries, asked) in [(1_000, 0), (24_000, 1)] {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        options.create_if_missing = true;
        let db = Db::open("/db", &options).unwrap();
        let family = db.default_column_family().clone();
        for n in 0..entries as u64 {
            db.put(n.to_be_bytes(), [n as u8; 900]).unwrap();
        }
        db.flush_all().unwrap();
        db.wait_for_compactions().unwrap();
        let before = RELEASES.get();
        db.close().unwrap();
        drop(db);
        assert_eq!(RELEASES.get() - before, asked, "after {entries} entries");
        drop(family);
    }
}
