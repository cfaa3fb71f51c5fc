use crate::db::tree::damage;
use std::sync::Arc;

use super::*;
use crate::base::sync::Ordering;
use crate::base::{Code, ColumnFamilyId, Error, Snapshot};
use crate::db::Severity;
use crate::db::handle::Db;
use crate::db::settings::pick_compaction;
use crate::db::tree::compaction_job::CompactionJob;
use crate::env::{Env, Join, Spawn};
use crate::iter::testing::parse_tombstones;
use crate::manifest::VersionEdit;
use crate::options::{CompactRangeOptions, Options, ReadOptions};

/// Each of these needs as much.
fn of_each() -> u64 {
    range_deletion_bytes(&parse_tombstones("[a,c)@4")[0])
}

#[test]
fn a_flush_is_cut_between_sequence_numbers() {
    let tombstones = parse_tombstones("[a,c)@9 [a,c)@4 [c,e)@5 [e,g)@4");
    let cut = |of: u64| sequence_cuts(&tombstones, of * of_each() + BLOCK_END);
    assert_eq!(cut(4), [0..=MAX_SEQUENCE_NUMBER]);
    assert_eq!(cut(3), [0..=8, 9..=MAX_SEQUENCE_NUMBER]);
    assert_eq!(cut(2), [0..=4, 5..=MAX_SEQUENCE_NUMBER]);
    // Those of one number stay together.
    assert_eq!(cut(1), [0..=4, 5..=8, 9..=MAX_SEQUENCE_NUMBER]);
    assert_eq!(sequence_cuts(&[], 0), [0..=MAX_SEQUENCE_NUMBER]);
}

#[test]
fn a_compaction_is_cut_between_keys() {
    let tombstones = parse_tombstones("[a,c)@9 [a,c)@4 [c,e)@5 [e,g)@4");
    let cut = |of: u64| {
        let cuts = key_cuts(&Comparator::Bytewise, &tombstones, of * of_each() + BLOCK_END);
        cuts.iter().map(|key| key.escape_ascii().to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(cut(4), "");
    assert_eq!(cut(3), "e");
    assert_eq!(cut(2), "c");
    assert_eq!(cut(1), "c e");
}

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(number: usize) -> Vec<u8> {
    format!("key{:03}", number % 300).into_bytes()
}

fn seen(db: &Db, options: &ReadOptions) -> Contents {
    let mut iter = db.iter(options).unwrap();
    iter.seek_to_first();
    let mut contents = Contents::new();
    while iter.valid() {
        contents.insert(iter.key().to_vec(), iter.value().unwrap().to_vec());
        iter.next();
    }
    iter.status().unwrap();
    contents
}

/// A database whose tables hold few range deletions, and what its snapshots see.
struct World {
    options: Options,
    db: Db,
    contents: Contents,
    snapshots: Vec<(Snapshot, Contents)>,
}

impl World {
    /// With values at the bottom that a snapshot sees, so that all deletions must stay.
    fn new(settings: &str) -> Self {
        Self::with(Env::memory(), settings)
    }

    fn with(env: Env, settings: &str) -> Self {
        let mut options = Options { env, ..Options::default() };
        options.create_if_missing = true;
        options.set_all("disable_auto_compactions=true").unwrap();
        options.set_all(settings).unwrap();
        let db = Db::open("/db", &options).unwrap();
        db.inner().limits.set_range_deletion_bytes_max(4000);
        let mut world = Self { options, db, contents: Contents::new(), snapshots: Vec::new() };
        (0..300).for_each(|number| world.put(number, "below"));
        world.db.flush_all().unwrap();
        world.take_snapshot();
        world
    }

    fn put(&mut self, number: usize, value: &str) {
        self.db.put(key(number), value).unwrap();
        self.contents.insert(key(number), value.as_bytes().to_vec());
    }

    fn take_snapshot(&mut self) {
        self.snapshots.push((self.db.snapshot(), self.contents.clone()));
    }

    /// Deletes ranges, and puts keys, with a snapshot now and then.
    fn live(&mut self, rounds: std::ops::Range<usize>) {
        for round in rounds {
            let (begin, other) = (round * 7 % 300, round * 11 % 300);
            let (from, to) = (key(begin), key((begin + 5).min(299)));
            self.db.delete_range(&from, &to).unwrap();
            self.contents.retain(|key, _| *key < from || *key >= to);
            self.put(other, &format!("{round}"));
            if round % 50 == 0 {
                self.take_snapshot();
            }
        }
    }

    /// Until level 0 has tables that cannot be merged into fewer.
    fn live_apart(&mut self) {
        self.fill_level0();
        self.compact_by_itself();
    }

    fn fill_level0(&mut self) {
        for round in 0..8 {
            self.live(round * 40..round * 40 + 40);
            self.db.flush_all().unwrap();
        }
    }

    /// More deletions that begin with one key, all needed by snapshots, than a table can hold.
    fn delete_from_one_start(&mut self) {
        for round in 0..150 {
            self.db.delete_range(key(0), key(5)).unwrap();
            self.contents.retain(|at, _| *at >= key(5));
            self.put(round % 5, "is deleted next");
            self.take_snapshot();
            if round % 30 == 29 {
                self.db.flush_all().unwrap();
            }
        }
    }

    /// What a worker would take next.
    fn begin_compaction(&self) -> CompactionJob {
        let inner = self.db.inner();
        let mut state = inner.tree.lock();
        let known = &state.families[&ColumnFamilyId::DEFAULT];
        let (family, version) = (known.family.clone(), known.family.current.load().version.clone());
        let context = inner.tree.pick_context(&state, known);
        let mut plan = pick_compaction(&family.options.load(), &version, &context).unwrap();
        // Nobody ends its turn.
        plan.takes_turn = false;
        let job = CompactionJob::new(family, version, plan);
        inner.tree.begin_compaction(&mut state, &job);
        job
    }

    fn compact_by_itself(&self) {
        let family = self.db.default_column_family().clone();
        self.db.set_options(&family, &[("disable_auto_compactions", "false")]).unwrap();
        self.db.wait_for_compactions().unwrap();
    }

    fn tables(&self, level: usize) -> usize {
        self.db.live_files().iter().filter(|file| file.level == Some(level)).count()
    }

    fn compact(&self) -> crate::base::Result<()> {
        let family = self.db.default_column_family();
        self.db.compact_range(family, None, None, &CompactRangeOptions::default())
    }

    fn check(&self) {
        for (snapshot, contents) in &self.snapshots {
            let options =
                ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
            assert_eq!(seen(&self.db, &options), *contents);
            let found = (0..300).filter_map(|n| {
                let value =
                    self.db.get_with(&options, self.db.default_column_family(), key(n)).unwrap();
                value.map(|value| (key(n), value.to_vec()))
            });
            assert_eq!(found.collect::<Contents>(), *contents);
        }
        assert_eq!(seen(&self.db, &ReadOptions::default()), self.contents);
        let reopened = Db::open_read_only("/db", &self.options).unwrap();
        assert_eq!(seen(&reopened, &ReadOptions::default()), self.contents);
    }

    fn close(self) {
        drop(self.snapshots);
        self.db.close().unwrap();
        let reopened = Db::open("/db", &self.options).unwrap();
        assert_eq!(seen(&reopened, &ReadOptions::default()), self.contents);
    }
}

/// A flush of more range deletions than one table can hold was refused, each time anew, and so was
/// what a compaction brought together.
#[test]
fn range_deletions_that_are_too_many_for_a_table_go_into_several() {
    let mut world = World::new("level_compaction_dynamic_level_bytes=false");
    let down = CompactRangeOptions {
        change_level: true,
        target_level: 6,
        ..CompactRangeOptions::default()
    };
    world.db.compact_range(world.db.default_column_family(), None, None, &down).unwrap();
    world.live(0..300);
    world.take_snapshot();
    world.db.flush_all().unwrap();
    assert!(world.tables(0) > 3, "{} tables", world.tables(0));
    world.check();

    world.compact().unwrap();
    world.check();
    assert_eq!(world.tables(0), 0);
    assert!(world.tables(6) > 3, "{} tables", world.tables(6));
    world.close();
}

/// Those that a merge within level 0 brought together were refused. Where nobody had asked for it
/// the database was poisoned.
#[test]
fn a_merge_within_level_0_makes_several_tables_of_them() {
    let mut world = World::new("compaction_style=kCompactionStyleUniversal;num_levels=1");
    for round in 0..60 {
        world.live(round * 5..round * 5 + 5);
        world.db.flush_all().unwrap();
    }
    world.take_snapshot();
    let before = world.tables(0);
    world.compact().unwrap();
    world.check();
    let after = world.tables(0);
    assert!(3 < after && after < before, "{before} tables became {after}");
    // Newer ones stay newer.
    world.live(300..330);
    world.db.flush_all().unwrap();
    world.check();
    world.snapshots.clear();
    world.compact().unwrap();
    world.check();
    assert_eq!(world.tables(0), 1);
    world.close();
}

/// Where the merge would make no fewer tables it was refused all the same, again and again.
#[test]
fn tables_full_of_them_are_not_merged_within_level_0_while_a_snapshot_needs_all() {
    for style in [
        "compaction_style=kCompactionStyleUniversal;num_levels=1",
        "compaction_style=kCompactionStyleFIFO;num_levels=1;compaction_options_fifo={allow_compaction=true}",
    ] {
        let settings = "level0_file_num_compaction_trigger=4;level0_stop_writes_trigger=6";
        let mut world = World::new(&format!("{style};{settings}"));
        world.live_apart();
        let tables = world.tables(0);
        assert!(tables > 6, "{style}: {tables} tables");
        world.put(0, "is not refused, and does not wait");
        world.check();
        world.snapshots.clear();
        world.live(321..323);
        world.db.flush_all().unwrap();
        world.db.wait_for_compactions().unwrap();
        assert!(world.tables(0) < tables, "{style}: {} tables of {tables}", world.tables(0));
        world.check();
        world.close();
    }
}

/// The oldest snapshot that was noted for such tables was what there was when it was known, and not
/// the one for which the deletions stay: with none left they were kept apart until the database was
/// opened again.
#[test]
fn they_are_merged_also_if_the_snapshot_goes_while_it_is_found_that_they_cannot_be() {
    let style = "compaction_style=kCompactionStyleUniversal;num_levels=1";
    let mut world = World::new(&format!("{style};level0_file_num_compaction_trigger=4"));
    world.fill_level0();
    let (tables, inner) = (world.tables(0), world.db.inner());
    let job = world.begin_compaction();
    // What comes of it is noted under this lock.
    let state = inner.tree.lock();
    std::thread::scope(|scope| {
        let compaction = scope.spawn(|| inner.jobs.run_compaction(&job));
        while !job.is_in_vain.load(Ordering::Relaxed) {
            assert!(!compaction.is_finished());
            std::thread::yield_now();
        }
        world.snapshots.clear();
        drop(state);
        assert_eq!(compaction.join().unwrap().unwrap_err().code(), Code::Aborted);
    });
    world.compact_by_itself();
    assert!(world.tables(0) < tables, "{} tables of {tables}", world.tables(0));
    world.check();
    world.close();
}

/// Who asked for a compaction waited for one that nobody ran, and held all others back meanwhile.
#[test]
fn who_asks_for_their_compaction_is_told_that_it_is_in_vain() {
    let mut world = World::new("compaction_style=kCompactionStyleUniversal;num_levels=1");
    world.live_apart();
    let tables = world.tables(0);
    for _ in 0..2 {
        assert_eq!(world.compact().unwrap_err().code(), Code::Aborted);
    }
    assert_eq!(world.tables(0), tables);
    world.check();
    world.close();
}

/// Writers did not wait for compactions of the family ever after, and level 0 grew without bound.
#[test]
fn writers_wait_for_compactions_again_when_such_tables_were_merged() {
    let settings = "compaction_style=kCompactionStyleUniversal;num_levels=1;level0_file_num_compaction_trigger=4;\
                    level0_slowdown_writes_trigger=6;level0_stop_writes_trigger=6";
    let mut world = World::new(settings);
    let is_stopped = |world: &World| {
        let property = "rocksdb.is-write-stopped";
        world.db.property(world.db.default_column_family(), property).unwrap() == "1"
    };
    world.live_apart();
    assert!(world.tables(0) > 6 && !is_stopped(&world), "{} tables", world.tables(0));
    world.snapshots.clear();
    world.put(0, "has the tables merged");
    world.db.flush_all().unwrap();
    world.db.wait_for_compactions().unwrap();
    assert!(world.tables(0) < 4, "{} tables", world.tables(0));
    world.db.inner().tree.lock().paused.compactions += 1;
    while world.tables(0) < 6 {
        world.put(1, "is more");
        world.db.flush_all().unwrap();
    }
    assert!(is_stopped(&world));
    world.db.inner().tree.lock().paused.compactions -= 1;
    world.db.inner().tree.tree_changed();
    world.check();
    world.close();
}

/// Of one and the same start, which no cut between keys tells apart, they were refused below level
/// 0, and the database was poisoned, at each opening anew.
#[test]
fn too_many_that_begin_with_one_key_hold_up_their_table_alone() {
    let mut world = World::new("level0_file_num_compaction_trigger=4;level0_stop_writes_trigger=8");
    world.delete_from_one_start();
    world.compact_by_itself();
    let state = |world: &World| {
        let of = world.db.default_column_family();
        world.db.property(of, "flagstone.background-error").unwrap()
    };
    assert_eq!(state(&world), "healthy");
    let aside = world.db.damaged_files();
    assert!(!aside.is_empty());
    for file in aside {
        assert_eq!(file.error.code(), Code::NotSupported);
        assert!(file.error.message().contains("begin with the key 'key000'"), "{}", file.error);
    }
    let findings = world.db.doctor().unwrap();
    let said =
        findings.iter().find(|found| found.what.contains("begin with the key 'key000'")).unwrap();
    assert_eq!(said.severity, Severity::Slow, "the table is sound: {said}");
    assert!(said.advice().contains("snapshots") && !said.advice().contains("restore"), "{said}");
    world.put(0, "is not refused, and does not wait");
    world.db.flush_all().unwrap();
    world.check();
    assert_eq!(world.compact().unwrap_err().code(), Code::NotSupported);
    assert_eq!(state(&world), "healthy");

    // It stayed so until the next opening, whatever became of the snapshots.
    world.snapshots.clear();
    world.compact().unwrap();
    assert!(world.db.damaged_files().is_empty());
    assert_eq!(world.tables(0), 0);
    world.check();
    world.close();
}

#[test]
fn what_snapshots_kept_aside_is_compacted_by_itself_when_they_are_gone() {
    let mut world = World::new("level0_file_num_compaction_trigger=4;level0_stop_writes_trigger=8");
    world.delete_from_one_start();
    world.compact_by_itself();
    let aside = world.db.damaged_files();
    assert!(!aside.is_empty());
    // The newest are not what it needs.
    world.snapshots.pop();
    world.put(0, "is not enough");
    world.db.flush_all().unwrap();
    world.db.wait_for_compactions().unwrap();
    assert_eq!(world.db.damaged_files().len(), aside.len());
    world.snapshots.clear();
    (0..4).for_each(|round| {
        world.put(round, "has the tables merged");
        world.db.flush_all().unwrap();
    });
    world.db.wait_for_compactions().unwrap();
    assert!(world.db.damaged_files().is_empty());
    assert!(world.tables(0) < 4, "{} tables", world.tables(0));
    let inner = world.db.inner();
    assert!(inner.tree.lock().damage.crippled.is_empty());
    world.check();
    world.close();
}

/// Another thread took the table back before the one whose compaction had failed asked whether it
/// is set aside: that passed for an error, and the database was poisoned.
#[test]
fn a_compaction_whose_table_is_taken_back_at_once_is_given_up_all_the_same() {
    let mut world = World::new("level0_file_num_compaction_trigger=4;level0_stop_writes_trigger=8");
    world.delete_from_one_start();
    let inner = world.db.inner();
    let job = world.begin_compaction();
    let error = inner.jobs.run_compaction(&job).unwrap_err();
    assert_eq!(error.code(), Code::NotSupported);
    assert!(damage::is_set_aside(&inner.tree, &error) && inner.jobs.is_given_up(&job, &error));
    world.snapshots.clear();
    damage::take_back_outnumbered(&inner.tree, &mut inner.tree.lock());
    assert!(!damage::is_set_aside(&inner.tree, &error) && inner.jobs.is_given_up(&job, &error));
    world.close();
}

/// A world without threads, where nobody but who waits for background work does it.
struct Alone;

impl Spawn for Alone {
    fn spawn(&self, name: &str, _: Box<dyn FnOnce() + Send>) -> crate::base::Result<Box<dyn Join>> {
        Err(Error::not_supported(format!("no thread {name} here")))
    }

    fn choose_step(&self, _: usize) -> Option<usize> {
        Some(0)
    }
}

/// It was compacted two seconds later, when nobody waited any longer, by a thread that looked
/// again.
#[test]
fn who_waits_for_compactions_waits_for_what_snapshots_kept_aside() {
    let env = Env { spawner: Arc::new(Alone), ..Env::memory() };
    // Leveled compaction would rewrite what only the snapshots held at the bottom, and meet the
    // table on its way.
    let style = "compaction_style=kCompactionStyleUniversal";
    let mut world = World::with(env, &format!("{style};level0_file_num_compaction_trigger=4"));
    world.delete_from_one_start();
    world.compact_by_itself();
    assert!(!world.db.damaged_files().is_empty());
    world.snapshots.clear();
    let inner = world.db.inner();
    assert!(inner.tree.compactions_wanted(&inner.tree.lock()).is_empty());
    world.db.wait_for_compactions().unwrap();
    assert!(world.db.damaged_files().is_empty());
    assert!(world.tables(0) < 4, "{} tables", world.tables(0));
    world.close();
}

/// What a lookup had found about such a table was forgotten with that.
#[test]
fn what_else_is_wrong_with_a_table_that_is_taken_back_stays_known() {
    let mut world = World::new("level0_file_num_compaction_trigger=4;level0_stop_writes_trigger=8");
    world.delete_from_one_start();
    let inner = world.db.inner();
    let family = world.db.default_column_family().clone();
    for (_, file) in family.0.current.load().version.files() {
        let path = inner.tables.open(&family.0, file).unwrap().path().to_path_buf();
        damage::note_damage(
            &inner.tree,
            &family.0,
            &Error::not_supported("a compression of elsewhere").at(path),
        );
    }
    let known = world.db.damaged_files().len();
    let job = world.begin_compaction();
    let error = inner.jobs.run_compaction(&job).unwrap_err();
    assert_eq!(error.code(), Code::NotSupported);
    world.snapshots.clear();
    damage::take_back_outnumbered(&inner.tree, &mut inner.tree.lock());
    assert_eq!(world.db.damaged_files().len(), known);
    world.close();
}

/// A compaction in parts that had not read all ran again in one, without a cut: it was refused.
#[test]
fn a_compaction_that_runs_again_in_one_part_is_cut_for_them() {
    let mut world = World::new(
        "level_compaction_dynamic_level_bytes=false;target_file_size_base=1000;compression=kNoCompression;\
         block_based_table_factory={block_size=256}",
    );
    let down = CompactRangeOptions {
        change_level: true,
        target_level: 5,
        ..CompactRangeOptions::default()
    };
    let family = world.db.default_column_family().clone();
    world.db.compact_range(&family, None, None, &down).unwrap();
    world.live(0..300);
    world.take_snapshot();
    world.db.flush_all().unwrap();
    let (inner, id) = (world.db.inner(), ColumnFamilyId::DEFAULT);
    {
        // As if the MANIFEST said of a table that it ends before its last keys.
        let mut state = inner.tree.lock();
        let version = state.versions.family(id).unwrap().current.clone();
        let mut meta = version.levels[5][0].meta.clone();
        meta.largest = meta.smallest.clone();
        let mut edit = VersionEdit::new(id);
        edit.delete_file(5, meta.number);
        edit.add_file(5, meta);
        inner.tree.apply_edits(&mut state, vec![edit], &[]).unwrap();
        let version = state.versions.family(id).unwrap().current.clone();
        state.families.get_mut(&id).unwrap().install(version, 0);
    }
    let options = CompactRangeOptions { max_subcompactions: 4, ..CompactRangeOptions::default() };
    world.db.compact_range(&family, None, None, &options).unwrap();
    world.check();
    assert!(world.tables(5) > 3, "{} tables", world.tables(5));
    world.close();
}
