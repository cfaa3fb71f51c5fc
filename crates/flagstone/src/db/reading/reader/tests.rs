use std::panic::Location;
use std::path::Path;

use super::*;
use crate::base::{ColumnFamilyId, Comparator, DataPaths, InternalKeyComparator};
use crate::cache::MemoryAccount;
use crate::db::budget::BudgetRule;
use crate::db::family::generation::Generation;
use crate::db::family::{AtCommit, SuperVersion};
use crate::env::Env;
use crate::manifest::Version;
use crate::memtable::MemTableSettings;
use crate::options::{ColumnFamilyOptions, Options};

/// A reader over one memtable: no directory, no locks, no database.
struct World {
    reader: Reader,
    snapshots: Arc<SnapshotList>,
    family: Arc<Family>,
    memtable: Arc<Generation>,
}

impl World {
    fn new() -> Self {
        let order = InternalKeyComparator::new(Comparator::Bytewise);
        let memtable = Arc::new(Generation::new(order.clone(), &MemTableSettings::default()));
        let version = Arc::new(Version::empty(order, DataPaths::new(Path::new("/db"), &[]), 7));
        let owner = Arc::<ObsoleteFiles>::default();
        let first = SuperVersion::first(memtable.clone(), version);
        let options = ColumnFamilyOptions::default();
        let family = Family::new(
            ColumnFamilyId::DEFAULT,
            "default",
            &options,
            first,
            owner.clone(),
            AtCommit::AsFamilySays,
        );
        let options = Options { env: Env::memory(), ..Options::default() };
        let budget = BudgetRule::new(&options.db, true);
        let account = Arc::new(MemoryAccount::default());
        let tables = Arc::new(Tables::new(&options, account, budget, &Arc::default()));
        let snapshots = SnapshotList::new();
        let reader = Reader::new(tables, snapshots.clone(), Arc::default(), owner);
        Self { reader, snapshots, family, memtable }
    }

    fn publish(&self, sequence: SequenceNumber, key: &[u8], value: &[u8]) {
        self.memtable.add(sequence, ValueType::Value, key, value);
        self.snapshots.published.store(sequence, Ordering::Release);
    }

    fn value(&self, options: &ReadOptions) -> Option<Vec<u8>> {
        let found = self.reader.get(options, &self.family, b"key").unwrap();
        found.map(|value| value.to_vec())
    }
}

#[test]
fn a_reader_shows_what_is_published_as_of_one_moment() {
    let world = World::new();
    let now = ReadOptions::default();
    assert_eq!(world.value(&now), None);
    world.publish(1, b"key", b"first");
    let then = ReadOptions { snapshot: Some(world.snapshots.take(0)), ..ReadOptions::default() };
    world.publish(2, b"key", b"second");
    world.memtable.add(3, ValueType::Value, b"key", b"not published");

    assert_eq!(world.value(&now).unwrap(), b"second");
    assert_eq!(world.value(&then).unwrap(), b"first");
    let found = world.reader.multi_get(&then, &world.family, &[b"key", b"none"]);
    assert_eq!(found[0].as_ref().unwrap().as_ref().unwrap(), &b"first"[..]);
    assert!(found[1].as_ref().unwrap().is_none());
    let mut cursor = world.reader.iterate(&now, &world.family, Location::caller()).unwrap();
    assert_eq!(cursor.next_entry().unwrap(), None, "it stands nowhere yet");
    cursor.seek_to_first();
    assert_eq!(cursor.next_entry().unwrap(), Some((b"key".to_vec(), b"second".to_vec())));
    assert_eq!(cursor.next_entry().unwrap(), None);
}

#[test]
fn what_belongs_to_another_database_is_refused() {
    let (world, other) = (World::new(), World::new());
    world.publish(1, b"key", b"value");
    assert!(other.reader.get(&ReadOptions::default(), &world.family, b"key").is_err());
    let foreign = ReadOptions { snapshot: Some(other.snapshots.take(0)), ..ReadOptions::default() };
    assert!(world.reader.get(&foreign, &world.family, b"key").is_err());
    assert!(world.reader.iterate(&foreign, &world.family, Location::caller()).is_err());
}
