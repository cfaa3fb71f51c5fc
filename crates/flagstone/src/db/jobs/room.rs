//! Compactions that wait for one another, since there is no room for both.
//!
//! - Of those that merge all runs of a family, or a piece or part of them, one has its turn at a time, whoever asked for it: the
//!   scratch that `compaction/pick/scratch.rs` tells is there once. Its turn ends when its inputs are removed.
//! - On a full disk, where one has found no room, those that nobody asked for go one at a time until one of them has ended well:
//!   two together could take the space from each other, again and again.

use crate::base::{ColumnFamilyId, Sometimes};
use crate::db::DbInner;
use crate::db::state::State;

impl DbInner {
    /// The next may have its turn. Whoever looks for work does so at once if this one says so.
    pub(in crate::db) fn end_turn(&self, family: ColumnFamilyId, at_once: bool) {
        let mut state = self.state.lock();
        let Some(known) = state.families.get_mut(&family) else { return };
        known.in_turn -= 1;
        state.note(family);
        if at_once {
            self.announce_work(&mut state);
        }
        // Somebody may have asked for one.
        self.progress.notify_all();
    }

    /// Whether a compaction is to find out whether there is room again before another begins.
    pub(in crate::db) fn waits_for_space(&self, state: &State) -> bool {
        let waits = state.running_unasked > 0 && self.poison.check_starved().is_err();
        if waits {
            Sometimes::CompactionAloneOnFullDisk.reached();
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{TryRecvError, channel};

    use super::*;
    use crate::base::sync::yield_now;
    use crate::base::{Code, Error, SubCode};
    use crate::compaction::pick::CompactionReason;
    use crate::db::Db;
    use crate::db::jobs::background::Role;
    use crate::db::jobs::compact::CompactionJob;
    use crate::env::Env;
    use crate::options::{CompactRangeOptions, Options};

    fn options(changes: &str) -> Options {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        let small = "create_if_missing=true;compression=kNoCompression;level0_file_num_compaction_trigger=2";
        options.set_all(&format!("{small};{changes}")).unwrap();
        options
    }

    /// The threads of the database take no compaction: only this does.
    fn take(inner: &DbInner) -> Option<CompactionJob> {
        let mut state = inner.state.lock();
        state.compactions_paused = 0;
        let job = inner.take_compaction(&mut state);
        state.compactions_paused = 1;
        job
    }

    /// Why there was another one.
    fn run_next(inner: &DbInner) -> Option<CompactionReason> {
        let job = take(inner)?;
        inner.run_compaction(&job).unwrap();
        Some(job.plan.reason)
    }

    fn write(db: &Db, step: usize) {
        for number in (0..10_000_u32).step_by(step) {
            db.put(number.to_be_bytes(), [7; 100]).unwrap();
        }
        db.flush_all().unwrap();
    }

    /// All runs are about to be merged in pieces.
    fn in_pieces() -> Db {
        let changes = "compaction_style=kCompactionStyleUniversal;target_file_size_base=16384;max_compaction_bytes=150000;\
            compaction_options_universal={max_size_amplification_percent=5;};blob_commit_min_size=0";
        let db = Db::open("/db", &options(changes)).unwrap();
        db.inner().state.lock().compactions_paused = 1;
        write(&db, 1);
        db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default()).unwrap();
        write(&db, 20);
        write(&db, 20);
        db
    }

    /// Two compactions took the last space from each other, and both failed, again and again.
    #[test]
    fn on_a_full_disk_compactions_find_out_one_by_one_whether_there_is_space() {
        let options = options("");
        let db = Db::open("/db", &options).unwrap();
        let inner = db.inner();
        inner.state.lock().compactions_paused = 1;
        let other = db.create_column_family("other", &options.cf).unwrap();
        for _ in 0..2 {
            db.put("key", "value").unwrap();
            db.put_cf(&other, "key", "value").unwrap();
            db.flush_all().unwrap();
        }
        let first = take(inner).unwrap();
        let full = Error::new(Code::IoError, "no space left").with_subcode(SubCode::NoSpace);
        inner.poison.record_starved(Some(&full));
        let too_early = run_next(inner);
        let known = inner.poison.check_starved();
        inner.run_compaction(&first).unwrap();
        assert_eq!(too_early, None);
        assert!(known.is_err(), "who found nothing to do knows nothing of space");
        inner.poison.check_starved().unwrap();
        assert_eq!(run_next(inner), Some(CompactionReason::Level0Files));
    }

    /// A look at which no compaction was to begin took back that one had found no room.
    #[test]
    fn who_may_not_look_knows_nothing_of_space() {
        let db = Db::open("/db", &options("")).unwrap();
        let inner = db.inner();
        inner.state.lock().compactions_paused = 1;
        let full = Error::new(Code::IoError, "no space left").with_subcode(SubCode::NoSpace);
        inner.poison.record_starved(Some(&full));
        assert!(!inner.run_one(Role::Compaction).unwrap());
        assert!(inner.poison.check_starved().is_err());
        assert!(take(inner).is_none());
        inner.poison.check_starved().expect("nobody wants space");
    }

    /// A piece of a merging that nobody had asked for and one of `compact_range` took the room that is promised once.
    #[test]
    fn who_asks_for_a_merging_waits_until_the_inputs_of_another_are_removed() {
        let db = in_pieces();
        let inner = db.inner();
        let piece = take(inner).unwrap();
        assert!(piece.plan.rest.is_some());
        inner.run_compaction(&piece).unwrap();
        let (tell, ended) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let family = db.default_column_family();
                tell.send(db.compact_range(family, None, None, &CompactRangeOptions::default())).unwrap();
            });
            while inner.state.lock().families[&ColumnFamilyId::DEFAULT].manual_compactions == 0 {
                assert_eq!(ended.try_recv().map(drop), Err(TryRecvError::Empty), "it did not wait");
                yield_now();
            }
            let family = piece.family.id;
            drop(piece);
            inner.end_turn(family, true);
        });
        ended.recv().unwrap().unwrap();
        assert_eq!(inner.state.lock().families[&ColumnFamilyId::DEFAULT].in_turn, 0);
    }

    /// The last piece did not count: a merging of all began while its inputs took their room still.
    #[test]
    fn the_last_piece_has_its_turn_until_its_inputs_are_removed() {
        let db = in_pieces();
        let inner = db.inner();
        let last = loop {
            let piece = take(inner).unwrap();
            assert_eq!(piece.plan.reason, CompactionReason::SizeAmplification);
            if piece.plan.rest.is_none() {
                break piece;
            }
            inner.run_compaction(&piece).unwrap();
            inner.end_turn(piece.family.id, true);
        };
        write(&db, 10);
        write(&db, 10);
        inner.run_compaction(&last).unwrap();
        let meanwhile = [run_next(inner), run_next(inner)];
        assert_eq!(meanwhile, [Some(CompactionReason::SizeRatio), None], "newer runs alone");
        inner.end_turn(last.family.id, true);
        assert_eq!(run_next(inner), Some(CompactionReason::SizeAmplification));
    }
}
