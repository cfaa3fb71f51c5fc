//! Workers that are processes of their own, and die at any moment; and a database that does.
//!
//! The processes are this test binary, started again.

#![expect(
    clippy::disallowed_methods,
    reason = "the test starts, times and kills processes of the system"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use flagstone::base::Code;
use flagstone::db::{Db, Ticker};
use flagstone::open_and_compact;
use flagstone::options::{
    CompactionService, CompactionServiceJobInfo, CompactionServiceJobStatus,
    CompactionServiceOptionsOverride, CompactionServiceScheduleResponse, OpenAndCompactOptions,
    Options,
};
use parking_lot::Mutex;

use CompactionServiceJobStatus::{Aborted, Failure, Success};

/// Set for a worker: the directory with its `input`, where it puts its `result`.
const WORKER: &str = "FLAGSTONE_REMOTE_WORKER";
/// Set for a database that is to be killed: its directory.
const PRIMARY: &str = "FLAGSTONE_REMOTE_PRIMARY";

const ROUNDS: u64 = 12;

/// Starts a process for each compaction, and kills some.
struct Processes {
    scratch: PathBuf,
    running: Mutex<BTreeMap<String, Child>>,
    random: Mutex<fastrand::Rng>,
    /// One in so many is killed; 0 for none.
    kills: u8,
}

impl Processes {
    fn new(scratch: &Path, kills: u8, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            scratch: scratch.to_path_buf(),
            running: Mutex::default(),
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
            kills,
        })
    }
}

impl CompactionService for Processes {
    fn name(&self) -> &str {
        "Processes"
    }

    fn schedule(
        &self,
        info: &CompactionServiceJobInfo,
        input: &[u8],
    ) -> CompactionServiceScheduleResponse {
        let id = format!("{}-{}", info.db_session_id, info.job);
        let directory = self.scratch.join(&id);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("input"), input).unwrap();
        let paths = format!("{}\n{}", info.db_path.display(), info.output_directory.display());
        std::fs::write(directory.join("paths"), paths).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::workers_die_at_any_moment", "--nocapture"])
            .env(WORKER, &directory)
            .env_remove(PRIMARY)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.running.lock().insert(id.clone(), child);
        CompactionServiceScheduleResponse::scheduled(id)
    }

    fn wait(
        &self,
        scheduled_job_id: &str,
        is_wanted: &dyn Fn() -> bool,
    ) -> (CompactionServiceJobStatus, Vec<u8>) {
        let mut child = self.running.lock().remove(scheduled_job_id).unwrap();
        let dies_after = {
            let mut random = self.random.lock();
            let is_killed = self.kills > 0 && random.u8(..self.kills) == 0;
            is_killed.then(|| random.u32(0..40))
        };
        for waited in 0.. {
            if let Some(status) = child.try_wait().unwrap() {
                let directory = self.scratch.join(scheduled_job_id);
                let result = std::fs::read(directory.join("result")).unwrap_or_default();
                return (if status.success() { Success } else { Failure }, result);
            }
            if !is_wanted() || dies_after.is_some_and(|after| waited >= after) {
                child.kill().unwrap();
                child.wait().unwrap();
                return (if is_wanted() { Failure } else { Aborted }, Vec::new());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        unreachable!("it ends, or is killed")
    }
}

/// What a worker does.
fn work(directory: &Path) {
    let paths = std::fs::read_to_string(directory.join("paths")).unwrap();
    let (database, output) = paths.split_once('\n').unwrap();
    let input = std::fs::read(directory.join("input")).unwrap();
    let components = CompactionServiceOptionsOverride::default();
    let options = OpenAndCompactOptions::default();
    let result = open_and_compact(database, output, &input, &components, &options).unwrap();
    std::fs::write(directory.join("result"), result).unwrap();
}

fn options(service: Arc<Processes>) -> Options {
    let mut options = Options::default();
    let settings = "create_if_missing=true;write_buffer_size=65536;target_file_size_base=65536;\
                    max_bytes_for_level_base=262144;level0_file_num_compaction_trigger=2;\
                    enable_blob_files=true;min_blob_size=1000;blob_file_size=100000;\
                    enable_blob_garbage_collection=true;blob_garbage_collection_age_cutoff=0.8;\
                    merge_operator=stringappend;max_subcompactions=2";
    options.set_all(settings).unwrap();
    options.compaction_service = Some(service);
    options
}

fn key(number: u64) -> String {
    format!("key {:05}", number * 7919 % 1500)
}

fn value(number: u64) -> Vec<u8> {
    let size = if number.is_multiple_of(9) { 3000 } else { 100 };
    let mut value = format!("{number}:").into_bytes();
    value.resize(value.len() + size, b'a' + (number % 26) as u8);
    value
}

/// The last number that was written, and all that came before.
fn check(db: &Db) -> u64 {
    let last = db
        .get("last")
        .unwrap()
        .map_or(0, |text| String::from_utf8(text.to_vec()).unwrap().parse().unwrap());
    let mut expected = BTreeMap::new();
    for number in 1..=last {
        expected.insert(key(number), value(number));
    }
    for (key, value) in expected {
        assert_eq!(db.get(&key).unwrap().unwrap(), value, "{key} of {last}");
    }
    let report = db.verify(|_| {});
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    last
}

fn write(db: &Db, from: u64, count: u64) {
    for number in from + 1..=from + count {
        let mut batch = flagstone::WriteBatch::new();
        batch.put(key(number), value(number)).unwrap();
        batch.put("last", number.to_string()).unwrap();
        db.write(batch).unwrap();
    }
}

#[test]
fn workers_die_at_any_moment() {
    if let Ok(directory) = std::env::var(WORKER) {
        return work(Path::new(&directory));
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let (mut done, mut failed) = (0, 0);
    for round in 0..3 {
        let db = Db::open(&path, &options(Processes::new(scratch.path(), 2, round))).unwrap();
        let last = check(&db);
        write(&db, last, 3000);
        db.flush_all().unwrap();
        db.wait_for_compactions().unwrap();
        assert_eq!(check(&db), last + 3000);
        done += db.statistics().get(Ticker::RemoteCompactWriteBytes);
        failed += db.statistics().get(Ticker::RemoteCompactionsFailed);
        db.close().unwrap();
    }
    assert!(done > 0 && failed > 0, "{done} bytes, {failed} failures");
    check_directory(&path);
}

/// There is nothing in it but the database.
fn check_directory(path: &Path) {
    let db = Db::open(path, &options(Processes::new(path, 0, 0))).unwrap();
    db.wait_for_compactions().unwrap();
    let live = db.live_files().len();
    db.close().unwrap();
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    let data = names.iter().filter(|name| name.ends_with(".sst") || name.ends_with(".blob"));
    assert_eq!(data.count(), live, "{names:?}");
    assert!(!names.iter().any(|name| name == "remote_compactions"), "{names:?}");
}

/// A process that was just forked for a worker has the lock until it becomes another program.
fn open_soon(path: &Path, options: &Options) -> Db {
    for _ in 0..100 {
        match Db::open(path, options) {
            Err(error) if error.code() == Code::Busy => {
                std::thread::sleep(Duration::from_millis(20));
            }
            opened => return opened.unwrap(),
        }
    }
    panic!("another process keeps the lock");
}

#[test]
fn the_database_dies_at_any_moment() {
    if let Ok(path) = std::env::var(PRIMARY) {
        let path = Path::new(&path);
        let service = Processes::new(path.parent().unwrap(), 0, 0);
        let db = Db::open(path, &options(service)).unwrap();
        for from in (check(&db)..).step_by(500) {
            write(&db, from, 500);
        }
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::the_database_dies_at_any_moment", "--nocapture"])
            .env(PRIMARY, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(random.u64(50..900)));
        assert!(child.try_wait().unwrap().is_none(), "it writes until it is killed");
        child.kill().unwrap();
        child.wait().unwrap();
        // Workers may go on for a while: nobody waits for them.
        let mut alone = options(Processes::new(scratch.path(), 0, 0));
        alone.compaction_service = None;
        let db = open_soon(&path, &alone);
        check(&db);
        db.close().unwrap();
    }
    check(&Db::open(&path, &options(Processes::new(scratch.path(), 0, 1))).unwrap());
}
