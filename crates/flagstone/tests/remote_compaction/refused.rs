//! Services and workers that fail, lie, come late or never: the database does their work, or leaves
//! it, and loses nothing.

use std::path::Path;
use std::sync::Arc;

use flagstone::base::{Code, file_name};
use flagstone::db::{Db, destroy, salvage};
use flagstone::env::{Env, FileSystem, IoMode, read_file};
use flagstone::options::{
    CompactionControl, CompactionService, CompactionServiceJobInfo, CompactionServiceJobStatus,
    CompactionServiceOptionsOverride, CompactionServiceScheduleResponse, OpenAndCompactOptions,
};
use flagstone::{Options, open_and_compact};
use parking_lot::{Condvar, Mutex};
use testkit::remote::faithful;

use crate::{World, check, compact, fill, remote_and_failed};

use CompactionServiceJobStatus::{Aborted, Failure, Success, UseLocal};

/// The tables and blob files in the database's directory.
fn data_files(world: &World) -> usize {
    let names = world.fs.list(Path::new("/db")).unwrap();
    names.iter().filter(|name| name.ends_with(".sst") || name.ends_with(".blob")).count()
}

fn with_blobs() -> World {
    World::new(|options| {
        options.set("enable_blob_files", "true").unwrap();
        options.set("min_blob_size", "1000").unwrap();
    })
}

/// After a compaction that a worker did not do, all is as if the database had none.
fn check_local(world: &World, db: Db) {
    check(&db);
    assert!(db.live_files().iter().all(|file| file.level != Some(0)));
    assert_eq!(data_files(world), db.live_files().len(), "nothing is left of the attempt");
    assert!(world.outputs().is_empty(), "{:?}", world.outputs());
    db.close().unwrap();
    check(&world.open());
}

#[test]
fn a_service_that_leaves_it_to_the_database_or_fails() {
    for (answer, failures) in [(UseLocal, 0), (Failure, 1)] {
        let world = with_blobs();
        let db = world.open();
        fill(&db);
        world.workers.answer(answer);
        compact(&db).unwrap();
        assert_eq!(remote_and_failed(&db), (false, failures));
        check_local(&world, db);
        let world = with_blobs();
        let db = world.open();
        fill(&db);
        world.workers.meet(Box::new(move |_, _| (answer, b"whatever".to_vec())));
        compact(&db).unwrap();
        assert_eq!(remote_and_failed(&db), (false, failures));
        assert_eq!(world.workers.ended(), [UseLocal]);
        check_local(&world, db);
    }
}

#[test]
fn a_service_that_aborts_leaves_all_as_it_was() {
    let mut world = with_blobs();
    let db = world.open();
    fill(&db);
    world.workers.meet(Box::new(|_, _| (Aborted, Vec::new())));
    assert_eq!(compact(&db).unwrap_err().code(), Code::Aborted);
    assert_eq!(world.workers.ended(), [Aborted]);
    check(&db);
    assert!(db.live_files().iter().any(|file| file.level == Some(0)));
    world.workers.meet(Box::new(|_, outcome| faithful(outcome)));
    compact(&db).unwrap();
    assert_eq!(remote_and_failed(&db), (true, 0));
    check(&db);
    db.close().unwrap();

    // One that nobody has asked for is tried again, and writes go on.
    world.options.cf.disable_auto_compactions = false;
    world.workers.answer(Aborted);
    let db = world.open();
    fill(&db);
    check(&db);
    assert!(db.live_files().iter().any(|file| file.level == Some(0)));
    db.put("goes on", "1").unwrap();
    world.workers.answer(Success);
    db.flush_all().unwrap();
    db.wait_for_compactions().unwrap();
    assert!(remote_and_failed(&db).0);
    check(&db);
}

/// What a worker's files become before the database gets the result.
type Damage = fn(&World, &CompactionServiceJobInfo, Vec<u8>) -> Vec<u8>;

fn files_of(world: &World, info: &CompactionServiceJobInfo, extension: &str) -> Vec<String> {
    let names = world.fs.list(&info.output_directory).unwrap();
    let path = |name: &String| info.output_directory.join(name).display().to_string();
    names.iter().filter(|name| name.ends_with(extension)).map(path).collect()
}

fn rewrite(world: &World, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let path = Path::new(path);
    let mut bytes = read_file(&*world.fs, path, 1 << 30).unwrap();
    change(&mut bytes);
    let file = world.fs.create_writable(path, IoMode::Buffered).unwrap();
    file.write_at(0, &bytes).unwrap();
}

#[test]
fn results_that_cannot_be_are_refused() {
    let damages: [(&str, Damage); 9] = [
        ("empty", |_, _, _| Vec::new()),
        ("garbage", |_, _, _| b"flagdone and then some garbage".to_vec()),
        ("cut off", |_, _, result| result[..result.len() / 2].to_vec()),
        ("one bit", |_, _, mut result| {
            let middle = result.len() / 2;
            result[middle] ^= 4;
            result
        }),
        ("a table is gone", |world, info, result| {
            world.fs.remove(Path::new(&files_of(world, info, ".sst")[0])).unwrap();
            result
        }),
        ("a blob file is gone", |world, info, result| {
            world.fs.remove(Path::new(&files_of(world, info, ".blob")[0])).unwrap();
            result
        }),
        ("a table is damaged", |world, info, result| {
            rewrite(world, &files_of(world, info, ".sst")[0], |bytes| bytes[20] ^= 1);
            result
        }),
        ("a blob file is damaged", |world, info, result| {
            rewrite(world, &files_of(world, info, ".blob")[0], |bytes| bytes[50] ^= 1);
            result
        }),
        ("a table is cut off", |world, info, result| {
            rewrite(world, &files_of(world, info, ".sst")[0], |bytes| bytes.truncate(100));
            result
        }),
    ];
    for (name, damage) in damages {
        let world = Arc::new(World::new(|options| {
            options.set("enable_blob_files", "false").unwrap();
            options.set("min_blob_size", "1000").unwrap();
        }));
        let db = world.open();
        fill(&db);
        // From now on values move to blob files.
        let family = db.default_column_family();
        db.set_options(family, &[("enable_blob_files", "true")]).unwrap();
        let here = Arc::downgrade(&world);
        world.workers.meet(Box::new(move |info, outcome| {
            let world = here.upgrade().unwrap();
            (Success, damage(&world, info, outcome.unwrap()))
        }));
        compact(&db).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(remote_and_failed(&db), (false, 1), "{name}");
        assert_eq!(world.workers.ended(), [UseLocal], "{name}");
        check_local(&world, db);
    }
}

#[test]
fn the_result_of_an_earlier_job_is_refused() {
    let world = with_blobs();
    let db = world.open();
    fill(&db);
    let earlier = Arc::new(Mutex::new(None));
    let kept = earlier.clone();
    world.workers.meet(Box::new(move |_, outcome| {
        let result = outcome.unwrap();
        let mut kept = kept.lock();
        let told = kept.take().unwrap_or_else(|| result.clone());
        *kept = Some(result);
        (Success, told)
    }));
    compact(&db).unwrap();
    assert_eq!(remote_and_failed(&db), (true, 0));
    fill(&db);
    compact(&db).unwrap();
    assert_eq!(remote_and_failed(&db).1, 1);
    check_local(&world, db);
}

/// Holds what is asked of it until it is let go, or not wanted.
#[derive(Default)]
struct Slow {
    state: Mutex<(bool, bool)>,
    changed: Condvar,
    job: Mutex<Option<(CompactionServiceJobInfo, Vec<u8>)>>,
    env: Mutex<Option<Env>>,
    ended: Mutex<Vec<CompactionServiceJobStatus>>,
    polls: bool,
}

impl Slow {
    fn wait_until_asked(&self) {
        let mut state = self.state.lock();
        while !state.0 {
            self.changed.wait(&mut state);
        }
    }

    fn go_on(&self) {
        self.state.lock().1 = true;
        self.changed.notify_all();
    }
}

impl CompactionService for Slow {
    fn name(&self) -> &str {
        "Slow"
    }

    fn schedule(
        &self,
        info: &CompactionServiceJobInfo,
        input: &[u8],
    ) -> CompactionServiceScheduleResponse {
        *self.job.lock() = Some((info.clone(), input.to_vec()));
        CompactionServiceScheduleResponse::scheduled("the only one")
    }

    fn wait(
        &self,
        scheduled_job_id: &str,
        is_wanted: &dyn Fn() -> bool,
    ) -> (CompactionServiceJobStatus, Vec<u8>) {
        assert_eq!(scheduled_job_id, "the only one");
        let mut state = self.state.lock();
        state.0 = true;
        self.changed.notify_all();
        while !state.1 {
            if self.polls && !is_wanted() {
                return (Aborted, Vec::new());
            }
            self.changed.wait_for(&mut state, std::time::Duration::from_millis(1));
        }
        drop(state);
        let (info, input) = self.job.lock().take().unwrap();
        let env = self.env.lock().clone().unwrap();
        let components =
            CompactionServiceOptionsOverride { env, ..CompactionServiceOptionsOverride::default() };
        let options = OpenAndCompactOptions::default();
        faithful(open_and_compact(
            &info.db_path,
            &info.output_directory,
            &input,
            &components,
            &options,
        ))
    }

    fn cancel_awaiting_jobs(&self) {
        self.go_on();
    }

    fn on_installation(&self, _: &str, status: CompactionServiceJobStatus) {
        self.ended.lock().push(status);
    }
}

fn slow_world(polls: bool) -> (Arc<Slow>, Options, Env) {
    let env = Env::memory();
    let slow = Arc::new(Slow { polls, ..Slow::default() });
    *slow.env.lock() = Some(env.clone());
    let mut options = Options { env: env.clone(), ..Options::default() };
    options.create_if_missing = true;
    options.cf.level0_file_num_compaction_trigger = 2;
    options.compaction_service = Some(slow.clone());
    (slow, options, env)
}

fn files_in(env: &Env) -> usize {
    let names = env.fs.list(Path::new("/db")).unwrap();
    let outputs = file_name::remote_compactions(Path::new("/db"));
    assert!(env.fs.list(&outputs).unwrap_or_default().is_empty());
    names.iter().filter(|name| name.ends_with(".sst")).count()
}

#[test]
fn a_result_that_comes_after_the_end_is_left() {
    for polls in [false, true] {
        let (slow, options, env) = slow_world(polls);
        let db = Db::open("/db", &options).unwrap();
        fill(&db);
        slow.wait_until_asked();
        db.close().unwrap();
        assert_eq!(*slow.ended.lock(), [Aborted], "{polls}");
        let options = Options { compaction_service: None, ..options };
        let db = Db::open("/db", &options).unwrap();
        check(&db);
        db.wait_for_compactions().unwrap();
        assert_eq!(db.live_files().len(), files_in(&env));
        check(&db);
    }
}

#[test]
fn a_result_for_a_dropped_family_is_left() {
    let (slow, options, env) = slow_world(false);
    let db = Db::open("/db", &options).unwrap();
    let photos = db.create_column_family("photos", &options.cf).unwrap();
    for round in ["1", "2", "3"] {
        db.put_cf(&photos, "key", round).unwrap();
        db.flush_all().unwrap();
    }
    slow.wait_until_asked();
    db.drop_column_family(&photos).unwrap();
    drop(photos);
    slow.go_on();
    db.put("another", "1").unwrap();
    db.flush_all().unwrap();
    db.wait_for_compactions().unwrap();
    assert_eq!(*slow.ended.lock(), [Aborted]);
    db.close().unwrap();
    let db = Db::open("/db", &options).unwrap();
    assert_eq!(db.live_files().len(), files_in(&env));
    assert_eq!(db.get("another").unwrap().unwrap(), b"1"[..]);
}

#[test]
fn what_workers_leave_goes_when_the_database_is_opened_next() {
    let world = World::new(|_| {});
    let db = world.open();
    fill(&db);
    db.close().unwrap();
    let all = file_name::remote_compactions(Path::new("/db"));
    let names = ["0123456789abcdef0123456789abcdef", "mine", "0123456789ABCDEF0123456789ABCDEF"];
    for name in names {
        let directory = all.join(name);
        world.fs.create_directory(&directory).unwrap();
        for file in ["000123.sst", "000124.blob"] {
            world.fs.create_writable(&directory.join(file), IoMode::Buffered).unwrap();
        }
    }
    // Reading removes nothing.
    Db::open_read_only("/db", &world.options).unwrap().close().unwrap();
    assert_eq!(world.outputs().len(), 3);
    let db = world.open();
    check(&db);
    let mut left = world.outputs();
    left.sort();
    assert_eq!(left, ["0123456789ABCDEF0123456789ABCDEF", "mine"], "the others are not ours");
}

/// A worker may have died after it wrote what the database has compacted and deleted since.
#[test]
fn what_workers_leave_is_nobody_s_data() {
    let world = World::new(|_| {});
    let db = world.open();
    db.put("deleted", "1").unwrap();
    db.flush_all().unwrap();
    let table = db.live_files()[0].path.clone();
    let bytes = read_file(&*world.fs, &table, 1 << 20).unwrap();
    db.delete("deleted").unwrap();
    fill(&db);
    compact(&db).unwrap();
    let left = file_name::remote_compactions(Path::new("/db"));
    let left = left.join("0123456789abcdef0123456789abcdef");
    world.fs.create_directory(&left).unwrap();
    let file = world.fs.create_writable(&left.join("009999.sst"), IoMode::Buffered).unwrap();
    file.write_at(0, &bytes).unwrap();
    drop(file);
    db.checkpoint("/copy").unwrap();
    db.close().unwrap();
    let families = [("default", world.options.cf.clone())];
    let (source, target) = (Path::new("/db"), Path::new("/saved"));
    salvage(source, target, &world.options, &families, &mut |_| {}).unwrap();
    for path in ["/copy", "/saved"] {
        let copy = Db::open(path, &world.options).unwrap();
        check(&copy);
        assert!(copy.get("deleted").unwrap().is_none(), "{path}");
        copy.close().unwrap();
        assert!(!world.fs.list(Path::new(path)).unwrap().contains(&"remote_compactions".into()));
    }
    assert_eq!(world.outputs().len(), 1, "nobody has opened the database for writing");
    destroy("/db", &world.options, &[]).unwrap();
    assert!(world.fs.metadata(Path::new("/db")).unwrap_err().is_not_found());
}

#[test]
fn a_worker_refuses_what_it_cannot_do() {
    let world = World::new(|_| {});
    let inputs = Arc::new(Mutex::new(Vec::new()));
    let slow = Arc::new(Recording { inputs: inputs.clone() });
    let options = Options { compaction_service: Some(slow), ..world.options.clone() };
    let db = Db::open("/db", &options).unwrap();
    fill(&db);
    compact(&db).unwrap();
    let input = inputs.lock()[0].clone();
    let components = CompactionServiceOptionsOverride::of(&world.options);
    let run = |path: &str, output: &str, input: &[u8], options: &OpenAndCompactOptions| {
        open_and_compact(path, output, input, &components, options).unwrap_err().code()
    };
    let plain = OpenAndCompactOptions::default();
    // The database has done it meanwhile.
    assert_eq!(run("/db", "/out", &input, &plain), Code::InvalidArgument);
    let resumed = OpenAndCompactOptions { allow_resumption: true, ..plain.clone() };
    assert_eq!(run("/db", "/out", &input, &resumed), Code::NotSupported);
    assert_eq!(run("/db", "/out", &input[..20], &plain), Code::Corruption);
    assert_eq!(run("/db", "/out", b"", &plain), Code::Corruption);
    assert_eq!(run("/none", "/out", &input, &plain), Code::IoError);
    assert_eq!(run("/db", "/db", &input, &plain), Code::InvalidArgument);
    let other = Options { env: world.options.env.clone(), ..options.clone() };
    let another = Db::open("/other", &other).unwrap();
    fill(&another);
    assert_ne!(run("/other", "/out", &input, &plain), Code::Corruption);
    check(&another);
    let bare = CompactionServiceOptionsOverride {
        env: components.env.clone(),
        ..CompactionServiceOptionsOverride::default()
    };
    fill(&db);
    compact(&db).unwrap();
    check(&db);
    let refusal = open_and_compact("/db", "/out", &inputs.lock()[1], &bare, &plain).unwrap_err();
    assert_eq!(refusal.code(), Code::InvalidArgument, "{refusal}");
    assert!(world.fs.list(Path::new("/out")).unwrap_or_default().is_empty());
}

#[test]
fn a_worker_can_be_canceled() {
    let world = World::new(|_| {});
    let env = world.options.env.clone();
    let canceled = Arc::new(Mutex::new(None));
    let outcome = canceled.clone();
    let service = Arc::new(Canceling { env, outcome });
    let options = Options { compaction_service: Some(service), ..world.options.clone() };
    let db = Db::open("/db", &options).unwrap();
    fill(&db);
    compact(&db).unwrap();
    assert_eq!(*canceled.lock(), Some(Code::Incomplete));
    check_local(&world, db);
}

/// Leaves all to the database, and keeps what it was given.
struct Recording {
    inputs: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl CompactionService for Recording {
    fn name(&self) -> &str {
        "Recording"
    }

    fn schedule(
        &self,
        _info: &CompactionServiceJobInfo,
        input: &[u8],
    ) -> CompactionServiceScheduleResponse {
        self.inputs.lock().push(input.to_vec());
        CompactionServiceScheduleResponse::not_scheduled(UseLocal)
    }

    fn wait(&self, _: &str, _: &dyn Fn() -> bool) -> (CompactionServiceJobStatus, Vec<u8>) {
        unreachable!("nothing is scheduled")
    }
}

/// Cancels what it begins.
struct Canceling {
    env: Env,
    outcome: Arc<Mutex<Option<Code>>>,
}

impl CompactionService for Canceling {
    fn name(&self) -> &str {
        "Canceling"
    }

    fn schedule(
        &self,
        info: &CompactionServiceJobInfo,
        input: &[u8],
    ) -> CompactionServiceScheduleResponse {
        let control = CompactionControl::new();
        control.cancel();
        let options = OpenAndCompactOptions { control: Some(control), ..Default::default() };
        let components = CompactionServiceOptionsOverride {
            env: self.env.clone(),
            settings: vec![("merge_operator".to_string(), "stringappend".to_string())],
            ..CompactionServiceOptionsOverride::default()
        };
        let done =
            open_and_compact(&info.db_path, &info.output_directory, input, &components, &options);
        *self.outcome.lock() = done.err().map(|error| error.code());
        CompactionServiceScheduleResponse::not_scheduled(Failure)
    }

    fn wait(&self, _: &str, _: &dyn Fn() -> bool) -> (CompactionServiceJobStatus, Vec<u8>) {
        unreachable!("nothing is scheduled")
    }
}
