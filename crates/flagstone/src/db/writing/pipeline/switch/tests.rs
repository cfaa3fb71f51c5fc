use crate::db::handle::Db;
use crate::env::Env;
use crate::options::Options;

/// What had been written counted for the first of the memtables that were switched together, and
/// less with each of the others. With twenty families that are flushed together, flushes passed for
/// so slow that writers waited for each to its end.
#[test]
fn what_was_written_counts_for_all_memtables_that_are_switched_together() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.set_all("create_if_missing=true;atomic_flush=true").unwrap();
    let written = |others: usize| {
        let db = Db::open(format!("/{others}"), &options).unwrap();
        let mut families = vec![db.default_column_family().clone()];
        families.extend(
            (0..others)
                .map(|name| db.create_column_family(&name.to_string(), &options.cf).unwrap()),
        );
        for round in 0..200_u32 {
            for family in &families {
                db.put_cf(family, round.to_be_bytes(), [7; 1000]).unwrap();
            }
            if round % 50 == 49 {
                db.flush_all().unwrap();
            }
        }
        db.inner().tree.lock().pace.written(1_000_000)
    };
    let (alone, together) = (written(0), written(19));
    assert!(together.abs_diff(alone) < alone / 5, "{together} {alone}");
}
