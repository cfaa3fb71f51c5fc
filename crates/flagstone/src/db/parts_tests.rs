//! Each part by itself, over what it stands on, in a world without threads. No database is opened.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::base::sync::Ordering;
use crate::base::{
    Code, ColumnFamilyId, DEFAULT_COLUMN_FAMILY_NAME, DataPaths, Error, InternalKeyComparator,
    SnapshotList, SubCode, ValueType, file_name,
};
use crate::batch::WriteBatch;
use crate::cache::MemoryAccount;
use crate::db::background::Background;
use crate::db::budget::BudgetRule;
use crate::db::context::Context;
use crate::db::disk::Disk;
use crate::db::family::generation::Generation;
use crate::db::family::{AtCommit, Family, SuperVersion};
use crate::db::jobs::Jobs;
use crate::db::limits::Limits;
use crate::db::options_file::OptionsFile;
use crate::db::reading::Reader;
use crate::db::settings::memtable_settings;
use crate::db::statistics::Ticker;
use crate::db::tables::Tables;
use crate::db::tree::family_state::FamilyState;
use crate::db::tree::{Below, Tree};
use crate::db::wal_space::WalSpace;
use crate::db::writing::pipeline::Pipeline;
use crate::env::{Env, Role};
use crate::manifest::{FamilySpec, ManifestSettings, VersionSet};
use crate::memtable::ArenaPool;
use crate::options::{BackgroundErrorReason, FlushReason, Options, ReadOptions, WriteOptions};

const DEFAULT: ColumnFamilyId = ColumnFamilyId::DEFAULT;

/// What lies below the tree, and what the tree is made of.
struct Ground {
    below: Below,
    versions: VersionSet,
    families: BTreeMap<ColumnFamilyId, FamilyState>,
    arenas: Arc<ArenaPool>,
}

/// A new directory in memory with a MANIFEST, and nothing else.
fn ground(settings: &str) -> Ground {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.set_all(settings).unwrap();
    let path = Path::new("/db");
    options.env.fs.create_directory(path).unwrap();
    let spec = FamilySpec {
        name: DEFAULT_COLUMN_FAMILY_NAME.to_string(),
        comparator: options.cf.comparator.clone(),
        persists_timestamps: true,
        paths: DataPaths::single(path),
        num_levels: 7,
    };
    let versions =
        VersionSet::create(options.env.clone(), path, spec, ManifestSettings::default()).unwrap();
    let account = Arc::new(MemoryAccount::default());
    let arenas = Arc::new(ArenaPool::accounted(0, account.clone()));
    let listed = versions.family(DEFAULT).unwrap();
    let mem = memtable(&options, &arenas);
    let first = SuperVersion::first(mem.clone(), listed.current.clone());
    let obsolete = versions.obsolete_files().clone();
    let family = Family::new(
        DEFAULT,
        &listed.name,
        &options.cf,
        first,
        obsolete.clone(),
        AtCommit::AsFamilySays,
    );
    let families = BTreeMap::from([(DEFAULT, FamilyState::new(family, mem, listed.log_number))]);
    let budget = BudgetRule::new(&options.db, false).with_arenas(&arenas);
    let tables = Arc::new(Tables::new(&options, account, budget, &Arc::default()));
    let context = Arc::new(Context::new(path, options, false, &versions, &Arc::default()));
    let limits = Arc::new(Limits::new());
    let below = Below {
        disk: Arc::new(Disk::new(context.clone(), limits.clone(), obsolete)),
        background: Arc::new(Background::new(context.clone())),
        context,
        limits,
        tables,
        snapshots: SnapshotList::new(),
        control: Arc::default(),
        wal_space: Arc::new(WalSpace::new()),
    };
    Ground { below, versions, families, arenas }
}

fn memtable(options: &Options, arenas: &Arc<ArenaPool>) -> Arc<Generation> {
    let order = InternalKeyComparator::new(options.cf.comparator.clone());
    Arc::new(Generation::new(order, &memtable_settings(&options.db, &options.cf, arenas)))
}

impl Ground {
    /// A memtable that no tree has.
    fn memtable(&self) -> Arc<Generation> {
        memtable(&self.below.context.settings.load(), &self.arenas)
    }

    fn reader(&self) -> Arc<Reader> {
        let below = &self.below;
        let (statistics, owner) = (below.context.statistics.clone(), below.disk.owner());
        Arc::new(Reader::new(below.tables.clone(), below.snapshots.clone(), statistics, owner))
    }
}

/// A pipeline with a WAL, and what it stands on.
fn pipeline(settings: &str) -> (Below, Arc<Tree>, Arc<Reader>, Arc<Pipeline>, Arc<ArenaPool>) {
    let ground = ground(settings);
    let (reader, below, arenas) = (ground.reader(), ground.below, ground.arenas);
    let tree = Arc::new(Tree::new(below.clone(), ground.versions, ground.families));
    let pipeline =
        Arc::new(Pipeline::new(below.clone(), tree.clone(), reader.clone(), arenas.clone()));
    let wal = tree.file_numbers.allocate();
    let begin = || tree.begin_writing(BTreeMap::new(), Vec::new(), wal, wal);
    pipeline.begin(wal, false, begin).unwrap();
    (below, tree, reader, pipeline, arenas)
}

fn put(pipeline: &Pipeline, key: &str, value: &str) {
    let mut batch = WriteBatch::new();
    batch.put(key, value).unwrap();
    pipeline.write(&WriteOptions::default(), &mut batch).unwrap();
}

fn default_family(tree: &Tree) -> Arc<Family> {
    tree.families.read()[&DEFAULT].clone()
}

fn get(reader: &Reader, tree: &Tree, key: &str) -> Option<String> {
    let family = default_family(tree);
    let found = reader.get(&ReadOptions::default(), &family, key.as_bytes()).unwrap();
    found.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

#[test]
fn the_context_refuses_writes_once_it_is_poisoned_or_closing() {
    let context = ground("").below.context;
    context.check_writable().unwrap();
    context.poison.record(
        BackgroundErrorReason::Flush,
        &Error::new(Code::IoError, "no room").with_subcode(SubCode::NoSpace),
    );
    assert_eq!(context.check_writable().unwrap_err().subcode(), SubCode::NoSpace);
    // What was written before has its space.
    context.check_syncable().unwrap();
    context.closing.store(true, Ordering::Release);
    assert_eq!(context.check_writable().unwrap_err().code(), Code::ShutdownInProgress);
}

#[test]
fn the_disk_gives_its_reserve_up_once_and_regains_it() {
    let Below { disk, context, .. } = ground("reserved_disk_space=1000000").below;
    let reserved = || context.env.fs.metadata(&file_name::reserve(&context.path)).unwrap().size;
    disk.open_reserve().unwrap();
    disk.fill_reserve().unwrap();
    assert_eq!(reserved(), 1_000_000);
    let full = Error::new(Code::IoError, "no room").with_subcode(SubCode::NoSpace);
    disk.give_up_reserve(&full);
    assert_eq!(reserved(), 0);
    assert_eq!(context.check_writable().unwrap_err().subcode(), SubCode::NoSpace);
    disk.check_changeable().expect("flushes go on meanwhile");
    disk.regain_reserve();
    assert_eq!(reserved(), 1_000_000);
    context.check_writable().unwrap();
}

#[test]
fn the_tree_hands_out_what_is_sealed_and_takes_it_back() {
    let ground = ground("");
    let fresh = ground.memtable();
    let tree = Tree::new(ground.below, ground.versions, ground.families);
    assert!(tree.take_flush().is_none(), "nothing is sealed");
    let full = tree.memtable(DEFAULT).unwrap();
    full.writer().add(1, ValueType::Value, b"key", b"value");
    let wal = tree.file_numbers.allocate();
    tree.seal(None, wal, vec![(DEFAULT, fresh.clone(), FlushReason::Manual)]);
    assert!(Arc::ptr_eq(&tree.memtable(DEFAULT).unwrap(), &fresh));
    let wanted = tree.ask_for_flush(&[DEFAULT]);
    assert!(Arc::ptr_eq(&wanted[0].1, &full));
    let job = tree.take_flush().expect("it is sealed");
    assert!(tree.is_flushing_or_paused() && tree.take_flush().is_none(), "it is taken once");
    tree.end_flush(Some(job), false);
    let job = tree.take_flush().expect("it was given back");
    assert!(Arc::ptr_eq(&job.parts[0].memtables[0], &full));
    tree.end_flush(None, true);
    assert!(!tree.is_flushing_or_paused());
}

#[test]
fn the_tree_keeps_obsolete_files_while_deletions_are_paused() {
    let ground = ground("");
    let tree = Tree::new(ground.below, ground.versions, ground.families);
    tree.pause_deletions(2);
    tree.resume_deletions(1, false);
    assert!(tree.take_obsolete(usize::MAX).is_none() && tree.are_deletions_paused());
    tree.resume_deletions(1, false);
    assert!(tree.take_obsolete(usize::MAX).is_some_and(|files| files.is_empty()));
}

#[test]
fn the_pipeline_shows_readers_what_it_has_appended() {
    let (below, tree, reader, pipeline, _) = pipeline("");
    assert_eq!(get(&reader, &tree, "key"), None);
    put(&pipeline, "key", "1");
    put(&pipeline, "key", "2");
    assert_eq!(get(&reader, &tree, "key").as_deref(), Some("2"));
    assert_eq!(below.snapshots.published.load(Ordering::Acquire), 2);
    assert!(below.context.statistics.get(Ticker::WalBytes) > 0);
}

#[test]
fn the_pipeline_seals_a_memtable_with_its_wal() {
    let (below, tree, reader, pipeline, _) = pipeline("");
    put(&pipeline, "key", "1");
    let before = pipeline.active_wal();
    pipeline.seal(&[default_family(&tree)], FlushReason::Manual).unwrap();
    let wals: Vec<_> = tree.live_wals().into_iter().map(|(number, _)| number).collect();
    assert_eq!(wals, [before]);
    assert!(pipeline.active_wal() > before);
    assert!(below.wal_space.older_bytes.load(Ordering::Relaxed) > 0);
    put(&pipeline, "other", "2");
    assert_eq!(get(&reader, &tree, "key").as_deref(), Some("1"));
}

#[test]
fn the_options_file_is_due_until_it_is_written() {
    let ground = ground("");
    let context = ground.below.context.clone();
    let tree = Arc::new(Tree::new(ground.below, ground.versions, ground.families));
    let file = OptionsFile::new(context.clone(), tree);
    file.write_options_file().unwrap();
    let names = context.env.fs.list(&context.path).unwrap();
    assert_eq!(names.iter().filter(|name| name.starts_with("OPTIONS-")).count(), 1, "{names:?}");
    file.close();
    assert_eq!(file.write_options_file().unwrap_err().code(), Code::ShutdownInProgress);
}

#[test]
fn the_jobs_flush_what_the_pipeline_has_sealed() {
    let (below, tree, reader, pipeline, arenas) = pipeline("");
    let context = below.context.clone();
    let options_file = Arc::new(OptionsFile::new(context.clone(), tree.clone()));
    let jobs =
        Jobs::new(below, tree.clone(), pipeline.clone(), reader.clone(), arenas, options_file);
    put(&pipeline, "key", "value");
    assert!(!jobs.run_one(Role::Flush).unwrap(), "nothing is sealed");
    pipeline.seal(&[default_family(&tree)], FlushReason::Manual).unwrap();
    assert!(jobs.run_one(Role::Flush).unwrap());
    assert_eq!(context.statistics.get(Ticker::Flushes), 1);
    assert!(tree.live_wals().is_empty(), "nobody needs the WAL any longer");
    let family = tree.families.read()[&DEFAULT].clone();
    assert_eq!(family.current.load().version.levels[0].len(), 1);
    assert_eq!(get(&reader, &tree, "key").as_deref(), Some("value"));
}

/// As for a transaction that was prepared before the memtable was switched.
#[test]
fn a_wal_is_kept_for_a_memtable_whose_entries_were_logged_there() {
    let (below, tree, reader, pipeline, arenas) = pipeline("");
    let options_file = Arc::new(OptionsFile::new(below.context.clone(), tree.clone()));
    let jobs = Jobs::new(below, tree.clone(), pipeline.clone(), reader, arenas, options_file);
    let live = || tree.live_wals().into_iter().map(|(number, _)| number).collect::<Vec<_>>();
    put(&pipeline, "key", "value");
    let wal = pipeline.active_wal();
    pipeline.seal(&[default_family(&tree)], FlushReason::Manual).unwrap();
    put(&pipeline, "other", "value");
    tree.keep_wal(&tree.memtable(DEFAULT).unwrap(), wal);
    assert!(jobs.run_one(Role::Flush).unwrap());
    assert_eq!(live(), [wal]);
    pipeline.seal(&[default_family(&tree)], FlushReason::Manual).unwrap();
    assert!(jobs.run_one(Role::Flush).unwrap());
    assert!(live().is_empty(), "{:?}", live());
}
