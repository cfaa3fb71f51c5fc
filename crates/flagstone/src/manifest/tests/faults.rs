//! What the file system may do to a MANIFEST being written.

use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use crate::base::{Error, Result};
use crate::env::{AnyFile, FileAround, FileSystem, FileSystemAround, OpenMode};

/// A file system in which one call that changes something fails: the one that counts the counter
/// down to -1.
#[derive(Clone)]
struct FailingOnce(Arc<dyn FileSystem>, Arc<AtomicI64>);

struct FailingFile(AnyFile, Arc<AtomicI64>);

impl FileAround for FailingFile {
    fn inner(&self) -> &AnyFile {
        &self.0
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        if let Err(error) = step(&self.1, "write", self.0.path()) {
            self.0.write_at(offset, &data[..data.len() / 2])?;
            return Err(error);
        }
        self.0.write_at(offset, data)
    }
    fn sync(&self) -> Result<()> {
        step(&self.1, "sync", self.0.path())?;
        self.0.sync()
    }
}

impl FileSystemAround for FailingOnce {
    fn inner(&self) -> &dyn FileSystem {
        &*self.0
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        if mode.creates() {
            step(&self.1, "create", path)?;
        }
        Ok(AnyFile::around(FailingFile(mode.open(&*self.0, path)?, self.1.clone())))
    }
    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        step(&self.1, "rename", source)?;
        self.0.rename(source, target)
    }
    fn sync_directory(&self, directory: &Path) -> Result<()> {
        step(&self.1, "sync the directory", directory)?;
        self.0.sync_directory(directory)
    }
}

fn step(countdown: &AtomicI64, doing: &str, path: &Path) -> Result<()> {
    match countdown.fetch_sub(1, Ordering::Relaxed) {
        0 => Err(Error::io(doing, path, std::io::Error::from_raw_os_error(5))),
        _ => Ok(()),
    }
}

const NEVER: i64 = -1;

fn failing_world() -> (Env, Arc<AtomicI64>) {
    let countdown = Arc::new(AtomicI64::new(NEVER));
    let memory = Env::memory();
    let env = memory.clone().with_fs(Arc::new(FailingOnce(memory.fs.clone(), countdown.clone())));
    env.fs.create_directory(Path::new(DB)).unwrap();
    (env, countdown)
}

fn create(env: &Env) -> Result<VersionSet> {
    VersionSet::create(env.clone(), Path::new(DB), spec("default"), ManifestSettings::default())
}

#[test]
fn after_a_failed_sync_nothing_is_accepted_until_resumed_into_a_new_file() {
    let (env, countdown) = failing_world();
    let mut versions = create(&env).unwrap();
    versions.log_and_apply(vec![edit(&[(0, table(10, ("a", "b"), (1, 5)))], &[])]).unwrap();
    let manifest = versions.manifest_number();

    countdown.store(1, Ordering::Relaxed);
    let lost = || vec![edit(&[(0, table(11, ("a", "b"), (6, 9)))], &[])];
    assert_eq!(versions.log_and_apply(lost()).unwrap_err().code(), Code::IoError);
    assert_eq!(versions.log_and_apply(lost()).unwrap_err().subcode(), SubCode::Poisoned);
    assert_eq!(default_layout(&versions), "L0: 10");

    versions.resume();
    versions.log_and_apply(vec![edit(&[(0, table(12, ("a", "b"), (6, 9)))], &[])]).unwrap();
    assert!(versions.manifest_number() > manifest);
    assert_eq!(
        default_layout(&reopen(&env)),
        "L0: 12 10",
        "the change that failed did not come back"
    );
}

/// The changes of the story below, each with the layout that it leads to.
fn story() -> Vec<(VersionEdit, &'static str)> {
    let outputs = [(6, table(12, ("a", "k"), (0, 9))), (6, table(13, ("l", "z"), (0, 8)))];
    vec![
        (edit(&[(0, table(10, ("a", "m"), (1, 5)))], &[]), "L0: 10"),
        (edit(&[(0, table(11, ("c", "z"), (6, 9)))], &[]), "L0: 11 10"),
        (edit(&outputs, &[(0, 10), (0, 11)]), "L6: 12 13"),
    ]
}

#[test]
fn every_call_may_fail_once_and_the_state_is_the_old_or_the_new() {
    for failing_call in 0.. {
        let (env, countdown) = failing_world();
        countdown.store(failing_call, Ordering::Relaxed);
        if create(&env).is_err() && create(&env).is_err() {
            assert_eq!(default_layout(&reopen(&env)), "", "CURRENT was in place already");
        }
        let (mut versions, mut before) = (reopen(&env), "");
        for (change, after) in story() {
            if let Err(error) = versions.log_and_apply(vec![change.clone()]) {
                assert_eq!(error.code(), Code::IoError);
                assert_eq!(default_layout(&versions), before);
                let on_disk = default_layout(&reopen(&env));
                assert!(on_disk == before || on_disk == after, "call {failing_call}: {on_disk}");
                versions.resume();
                versions.log_and_apply(vec![change]).unwrap();
            }
            assert_eq!(default_layout(&versions), after);
            assert_eq!(default_layout(&reopen(&env)), after, "call {failing_call}");
            before = after;
        }
        if countdown.load(Ordering::Relaxed) >= 0 {
            assert!(failing_call > 20, "{failing_call} calls are suspiciously few");
            return;
        }
    }
}
