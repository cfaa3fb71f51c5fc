//! What a closed database's books say, against what its files hold.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use flagstone::base::file_name::{self, FileKind};
use flagstone::base::{Comparator, DataPaths, FileNumber, InternalIterator, ValueType};
use flagstone::blob::BlobIndex;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, IoMode};
use flagstone::manifest::{self, Family, FamilySpec, ManifestSettings, RecoverOptions, VersionSet};
use flagstone::options::{CompactRangeOptions, Options};
use flagstone::sst::{IterSettings, Table, TableReadSettings};

use crate::{Generator, Model, compare, for_each_seed, settings, steps};

/// Checks a database with keys in bytewise order that was closed after its last work was done:
/// - of each blob file the MANIFEST counts as garbage exactly what no table refers to;
/// - the directory has no table, blob or temporary file that the MANIFEST does not name.
///
/// # Panics
/// If not.
pub fn check_books(env: &Env, directory: &Path) {
    let listed = manifest::list_column_families(env, directory).expect("a readable MANIFEST");
    let paths = DataPaths::single(directory);
    let spec = |name| FamilySpec {
        name,
        comparator: Comparator::Bytewise,
        persists_timestamps: true,
        paths: paths.clone(),
        num_levels: 7,
    };
    let options = RecoverOptions {
        families: listed.into_iter().map(|family| spec(family.name)).collect(),
        read_only: true,
        settings: ManifestSettings::default(),
    };
    let versions =
        VersionSet::recover(env.clone(), directory, options).expect("a readable MANIFEST");
    for family in versions.families() {
        check_garbage(env, directory, family);
    }
    let live = versions.live_files();
    for name in env.fs.list(directory).expect("a listing") {
        let is_stray = match FileKind::parse(&name) {
            Some(FileKind::Table(number) | FileKind::Blob(number)) => !live.contains(&number),
            Some(FileKind::Temporary(_)) => true,
            _ => false,
        };
        assert!(!is_stray, "{name} is left behind: nobody needs it, and it was not removed");
    }
}

/// The blobs of one file, by what is asked.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Blobs {
    count: u64,
    bytes: u64,
}

fn check_garbage(env: &Env, directory: &Path, family: &Family) {
    let mut referred: BTreeMap<FileNumber, Blobs> = BTreeMap::new();
    for (_, file) in family.current.files() {
        let path = file_name::table(directory, file.number());
        let opened = env.fs.open_random_access(&path, IoMode::Buffered).expect("a table");
        let settings =
            TableReadSettings { comparator: Comparator::Bytewise, ..TableReadSettings::default() };
        let table = Table::open(opened, file.meta.size, settings).expect("a table");
        let mut entries = table.iter(IterSettings::default());
        entries.seek_to_first();
        while entries.valid() {
            if entries.key().value_type() == Some(ValueType::BlobIndex) {
                let index = BlobIndex::decode(entries.value()).expect("a blob index");
                let blobs = referred.entry(index.file).or_default();
                blobs.count += 1;
                blobs.bytes += index.record_bytes(entries.key().user_key().len());
            }
            entries.next();
        }
        entries.status().expect("a sound table");
    }
    for (number, blob) in &family.current.blob_files {
        let meta = &blob.file.meta;
        let counted = Blobs {
            count: meta.total_count - blob.garbage_count,
            bytes: meta.total_bytes - blob.garbage_bytes,
        };
        let found = referred.remove(number).unwrap_or_default();
        assert_eq!(
            counted, found,
            "blob file {number} of family {}: the MANIFEST counts as live what is on the left, tables refer to what is \
             on the right",
            family.name
        );
    }
    assert!(referred.is_empty(), "tables refer to blob files that are gone: {referred:?}");
}

const FAMILIES: [&str; 2] = ["default", "other"];

/// Lives full of blobs, deletions and compactions, whose books are checked each time that the
/// database is closed.
///
/// # Panics
/// When they are wrong.
pub fn books() {
    for_each_seed(4, |seed| {
        let world = steps::world(Arc::new(MemoryFileSystem::new()), seed);
        let mut options = settings::tiny(&world);
        let changes = [
            ("enable_blob_files", "true"),
            ("min_blob_size", "30"),
            ("blob_file_size", "3000"),
            ("enable_blob_garbage_collection", "true"),
            ("blob_garbage_collection_age_cutoff", "0.5"),
            ("blob_write_mode", if seed.is_multiple_of(4) { "flush" } else { "commit" }),
            ("blob_commit_min_size", "60"),
            // So that memtables are switched by writers whose values lie in blob files already.
            ("max_total_wal_size", "1500"),
        ];
        settings::set(&mut options, &changes);
        let mut generator = Generator::new(seed);
        let mut model = Model::with_families(&FAMILIES);
        for _ in 0..3 {
            live(&options, &mut generator, &mut model);
            check_books(&world, Path::new("/db"));
        }
    });
}

fn live(options: &Options, generator: &mut Generator, model: &mut Model) {
    let listed: Vec<_> = FAMILIES.iter().map(|name| (*name, options.cf.clone())).collect();
    let db = Db::open_with_families("/db", options, &listed).expect("a sound database");
    for _ in 0..200 {
        let batch = generator.batch(model);
        db.write(compare::to_batch(&db, &batch)).expect("a write");
        let family = db.column_family(FAMILIES[generator.random.usize(..2)]).expect("it exists");
        match generator.random.u8(..40) {
            0 => db.flush(&family, &Default::default()).expect("a flush"),
            1 => db
                .compact_range(&family, None, None, &CompactRangeOptions::default())
                .expect("a compaction"),
            2..6 => drop(db.background_step().expect("a step")),
            _ => {}
        }
    }
    compare::check_database(&db, model);
    db.close().expect("a clean close");
}
