//! Random lives of a directory of backups beside a model: what each backup holds.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{create, dump};
use flagstone::backup::{
    BackupEngine, BackupEngineOptions, CreateBackupOptions, RestoreMode, RestoreOptions,
    ShareFilesNaming,
};
use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{CompactRangeOptions, Options};
use testkit::for_each_seed;

const NAMINGS: [ShareFilesNaming; 3] = [
    ShareFilesNaming::LegacyCrc32cAndFileSize,
    ShareFilesNaming::UseDbSessionId,
    ShareFilesNaming::UseDbSessionIdAndFileSize,
];

const MODES: [RestoreMode; 3] = [
    RestoreMode::PurgeAllFiles,
    RestoreMode::KeepLatestDbSessionIdFiles,
    RestoreMode::VerifyChecksum,
];

struct Life {
    env: Env,
    random: fastrand::Rng,
    db: Option<Db>,
    backups: BackupEngine,
    expected: BTreeMap<u32, String>,
    last: u32,
}

impl Life {
    fn begin(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let env = Env::memory().with_fs(Arc::new(MemoryFileSystem::new()));
        let backups = open_backups(&env, &mut random);
        let mut life = Self { env, random, db: None, backups, expected: BTreeMap::new(), last: 0 };
        life.db = Some(life.open("/db"));
        life
    }

    fn open(&self, path: &str) -> Db {
        let mut options = Options { env: self.env.clone(), ..create() };
        options.cf.enable_blob_files = Some(true);
        options.cf.min_blob_size = Some(200);
        options.cf.write_buffer_size = 64 << 10;
        Db::open(path, &options).expect("a database")
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("it is open")
    }

    fn write(&mut self) {
        for _ in 0..self.random.usize(1..20) {
            let key = format!("key{:02}", self.random.u8(..40));
            let size = self.random.choice([10, 300, 5000]).expect("sizes");
            let value: Vec<u8> = (0..size).map(|_| self.random.u8(..)).collect();
            match self.random.u8(..6) {
                0 => self.db().delete(key).expect("a write"),
                _ => self.db().put(key, value).expect("a write"),
            }
        }
        match self.random.u8(..6) {
            0 => self.db().flush_all().expect("a flush"),
            1 => {
                self.db().flush_all().expect("a flush");
                let family = self.db().default_column_family();
                self.db()
                    .compact_range(family, None, None, &CompactRangeOptions::default())
                    .expect("compacted");
            }
            _ => {}
        }
    }

    fn create(&mut self) {
        let mut request = CreateBackupOptions::default();
        request.flush_before_backup = self.random.bool();
        let id = self.backups.create_new_backup(self.db(), &request).expect("a backup");
        assert!(id > self.last, "{id} after {}", self.last);
        self.last = id;
        self.expected.insert(id, dump(self.db()));
    }

    fn chosen(&mut self) -> Option<u32> {
        let ids: Vec<u32> = self.expected.keys().copied().collect();
        self.random.choice(ids)
    }

    /// Replaces the database itself, so that its history goes on from there, or a copy.
    fn restore(&mut self) {
        let Some(id) = self.chosen() else { return };
        let mut options = RestoreOptions::default();
        options.mode = self.random.choice(MODES).expect("modes");
        let goes_on = self.random.bool();
        let path = if goes_on { "/db" } else { "/copy" };
        if goes_on && let Some(db) = self.db.take() {
            db.close().expect("closed");
        }
        self.backups.restore_db_from_backup(id, path, path, &options).expect("restored");
        let restored = self.open(path);
        let faults = restored.verify(|_| {}).faults;
        assert!(faults.is_empty(), "{faults:?}");
        assert!(dump(&restored) == self.expected[&id], "backup {id} in {path}, {options:?}");
        if goes_on {
            self.db = Some(restored);
        }
    }

    fn remove(&mut self) {
        if self.random.bool() {
            let Some(id) = self.chosen() else { return };
            self.backups.delete_backup(id).expect("deleted");
            self.expected.remove(&id);
        } else {
            let keep = self.random.usize(1..4);
            self.backups.purge_old_backups(keep).expect("purged");
            while self.expected.len() > keep {
                self.expected.pop_first();
            }
        }
    }

    fn check(&self) {
        let listed = self.backups.get_backup_info(false).expect("a listing");
        let ids: Vec<u32> = listed.iter().map(|info| info.backup_id).collect();
        assert_eq!(ids, self.expected.keys().copied().collect::<Vec<_>>());
        assert!(self.backups.get_corrupted_backups().expect("a listing").is_empty());
        for id in ids {
            self.backups.verify_backup(id, true).expect("a whole backup");
        }
    }
}

fn open_backups(env: &Env, random: &mut fastrand::Rng) -> BackupEngine {
    let mut options = BackupEngineOptions::new("/backups");
    options.backup_env = Some(env.clone());
    options.share_files_with_checksum_naming = random.choice(NAMINGS).expect("namings");
    options.share_table_files = random.u8(..5) > 0;
    options.schema_version = random.u32(1..=2);
    options.max_background_operations = random.usize(1..4);
    options.sync = random.bool();
    BackupEngine::open(options).expect("an engine")
}

#[test]
fn every_backup_holds_what_the_database_held() {
    for_each_seed(12, |seed| {
        let mut life = Life::begin(seed);
        for _ in 0..25 {
            match life.random.u8(..10) {
                0..4 => life.write(),
                4..7 => life.create(),
                7 => life.restore(),
                8 => life.remove(),
                _ => {
                    let newest = life.expected.last_key_value().map(|(id, _)| *id);
                    life.backups = open_backups(&life.env, &mut life.random);
                    // An engine that is opened anew knows the backups that are there.
                    life.last = newest.unwrap_or_default();
                }
            }
            life.check();
        }
    });
}
