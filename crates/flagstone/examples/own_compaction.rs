//! A compaction policy of one's own: the database compacts nothing by itself, and a thread of the
//! program decides.
//!
//! This one knows that yesterday's keys are not written to any more: it merges what level 0 has of
//! a finished day into one sorted run in the last level, and leaves the day that is being written
//! alone. Old days go as whole files.
//!
//! ```sh
//! cargo run --example own_compaction -- /tmp/own_compaction
//! ```

use std::collections::BTreeMap;

use flagstone::base::{Code, FileNumber, Result};
use flagstone::db::Db;
use flagstone::options::{CompactFilesOptions, CompactionControl, Options};

/// The level that finished days lie in.
const FINISHED: usize = 6;

/// Days that are kept.
const KEPT_DAYS: u32 = 3;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "own_compaction.db".to_string());
    run(&path)
}

/// Writes five days, and compacts and drops them as they grow old.
///
/// # Errors
/// Those of the database.
pub fn run(path: &str) -> Result<()> {
    let mut options = Options::default();
    options.create_if_missing = true;
    options.set("disable_auto_compactions", "true")?;
    // Nobody is held up by a level 0 that is meant to be long.
    options.set("level0_slowdown_writes_trigger", "1000")?;
    options.set("level0_stop_writes_trigger", "1000")?;
    let db = Db::open(path, &options)?;
    for day in 1..=5 {
        write_a_day(&db, day)?;
        merge_finished_days(&db, day)?;
        drop_old_days(&db, day)?;
        report(&db, day);
    }
    db.close()
}

/// Some batches, each of which becomes a table of level 0.
fn write_a_day(db: &Db, day: u32) -> Result<()> {
    for hour in 0..4 {
        for event in 0..2_000 {
            db.put(format!("day{day:03}/{event:06}"), format!("hour {hour}, event {event}"))?;
        }
        db.flush_all()?;
    }
    Ok(())
}

/// Which day a key belongs to.
fn day_of(key: &[u8]) -> Option<u32> {
    std::str::from_utf8(key.get(3..6)?).ok()?.parse().ok()
}

/// The policy: which tables of level 0 lie within one day that is over.
fn finished_days(db: &Db, today: u32) -> BTreeMap<u32, Vec<FileNumber>> {
    let mut days: BTreeMap<u32, Vec<FileNumber>> = BTreeMap::new();
    for file in db.live_files().iter().filter(|file| file.level == Some(0)) {
        let (first, last) = (day_of(&file.smallest), day_of(&file.largest));
        if let (Some(first), Some(last)) = (first, last)
            && first == last
            && last < today
        {
            days.entry(last).or_default().push(file.number);
        }
    }
    days
}

fn merge_finished_days(db: &Db, today: u32) -> Result<()> {
    for (day, tables) in finished_days(db, today) {
        let control = CompactionControl::new();
        let options = CompactFilesOptions {
            output_file_size_limit: 64 << 20,
            control: Some(control.clone()),
            ..CompactFilesOptions::default()
        };
        match db.compact_files(db.default_column_family(), &tables, FINISHED, &options) {
            Ok(written) => {
                let bytes = control.progress().bytes_done;
                println!(
                    "day {day}: {} tables became {}, {bytes} bytes read",
                    tables.len(),
                    written.len()
                );
            }
            // Another compaction was in the way: the next round finds the tables again.
            Err(error) if error.code() == Code::Aborted => println!("day {day}: later ({error})"),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whole files go without being read.
fn drop_old_days(db: &Db, today: u32) -> Result<()> {
    let end = format!("day{:03}/", today.saturating_sub(KEPT_DAYS));
    db.delete_files_in_ranges(db.default_column_family(), &[(None, Some(end.as_bytes()))], false)
}

fn report(db: &Db, today: u32) {
    let mut tables: BTreeMap<usize, usize> = BTreeMap::new();
    db.live_files()
        .iter()
        .filter_map(|file| file.level)
        .for_each(|level| *tables.entry(level).or_default() += 1);
    println!("after day {today}, tables by level: {tables:?}");
}
