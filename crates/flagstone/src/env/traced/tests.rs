//! What a recorder is told of a file system's life.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::{CallRecorder, Extent, FileCall, FileCallKind, TracedFiles};
use crate::base::sync::Mutex;
use crate::env::memory::MemoryFileSystem;
use crate::env::{Advice, AlignedBuffer, Env, FileSystem, IoMode};

type Told = (FileCallKind, String, Extent, bool);

#[derive(Default)]
struct Recorder {
    is_on: AtomicBool,
    told: Mutex<Vec<Told>>,
}

impl CallRecorder for Recorder {
    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    fn record(&self, call: &FileCall<'_>) {
        let name = call.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.told.lock().push((call.kind, name, call.extent, call.error.is_some()));
    }
}

fn traced(fs: Arc<dyn FileSystem>) -> (TracedFiles<Recorder>, Arc<Recorder>) {
    let recorder = Arc::<Recorder>::default();
    (TracedFiles::new(fs, Env::memory().clock, recorder.clone()), recorder)
}

#[test]
fn each_call_is_told_with_its_numbers() {
    let (files, recorder) = traced(Arc::new(MemoryFileSystem::new()));
    recorder.is_on.store(true, Ordering::Relaxed);
    files.create_directory(Path::new("/dir")).unwrap();
    let file = files.create_writable(Path::new("/dir/file"), IoMode::Buffered).unwrap();
    file.write_at(0, b"twelve bytes").unwrap();
    file.write_vectored_at(12, &[b"and ", b"more"]).unwrap();
    file.write_owned(20, AlignedBuffer::with_capacity(1)).unwrap();
    file.sync().unwrap();
    let mut buffer = [0; 100];
    assert_eq!(file.read_at(7, &mut buffer).unwrap(), 13);
    file.advise(Advice::WillNeed { offset: 4, length: 5 });
    file.truncate(3).unwrap();
    assert_eq!(file.size().unwrap(), 3);
    drop(file);
    files.rename(Path::new("/dir/file"), Path::new("/dir/other")).unwrap();
    files.sync_directory(Path::new("/dir")).unwrap();
    files.open_random_access(Path::new("/dir/file"), IoMode::Buffered).err().unwrap();
    files.remove(Path::new("/dir/other")).unwrap();
    let of = |kind, name: &str, extent| (kind, name.to_string(), extent, false);
    let expected = [
        of(FileCallKind::CreateDirectory, "dir", Extent::NONE),
        of(FileCallKind::CreateWritable, "file", Extent::NONE),
        of(FileCallKind::Write, "file", Extent::bytes(0, 12)),
        of(FileCallKind::Write, "file", Extent::bytes(12, 8)),
        of(FileCallKind::Write, "file", Extent::bytes(20, 0)),
        of(FileCallKind::Sync, "file", Extent::NONE),
        of(FileCallKind::Read, "file", Extent::bytes(7, 13)),
        of(FileCallKind::Prefetch, "file", Extent::bytes(4, 5)),
        of(FileCallKind::Truncate, "file", Extent::length(3)),
        of(FileCallKind::FileSize, "file", Extent::size(Some(3))),
        of(FileCallKind::Close, "file", Extent::NONE),
        of(FileCallKind::Rename, "file", Extent::NONE),
        of(FileCallKind::SyncDirectory, "dir", Extent::NONE),
        (FileCallKind::OpenRandomAccess, "file".to_string(), Extent::NONE, true),
        of(FileCallKind::Remove, "other", Extent::NONE),
    ];
    assert_eq!(*recorder.told.lock(), expected);
}

/// The recorder may begin and end while a file is open.
#[expect(clippy::disallowed_methods, reason = "reads of the kernel alone are timed so")]
#[test]
fn a_file_that_was_opened_before_is_told_of_and_nothing_while_the_recorder_is_off() {
    let (files, recorder) = traced(Arc::new(MemoryFileSystem::new()));
    files.create_directory(Path::new("/dir")).unwrap();
    let file = files.create_log(Path::new("/dir/log")).unwrap();
    file.write_at(0, b"untold").unwrap();
    recorder.is_on.store(true, Ordering::Relaxed);
    file.write_at(6, b"told").unwrap();
    file.note_read((3, 2), Instant::now());
    recorder.is_on.store(false, Ordering::Relaxed);
    drop(file);
    let expected = [
        (FileCallKind::Write, "log".to_string(), Extent::bytes(6, 4), false),
        (FileCallKind::MultiRead, "log".to_string(), Extent::bytes(3, 2), false),
    ];
    assert_eq!(*recorder.told.lock(), expected);
}

/// Files of the system keep their descriptors and mappings, so a database that can be traced works
/// as any other.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn descriptors_and_mappings_are_those_of_the_system() {
    let scratch = tempfile::tempdir().unwrap();
    let (files, recorder) = traced(Env::os().fs);
    let file = files.create_log(&scratch.path().join("log")).unwrap();
    assert!(file.descriptor().is_some());
    let plain = Env::os().fs.create_log(&scratch.path().join("other")).unwrap();
    assert_eq!(file.is_mappable(), plain.is_mappable());
    file.allocate(8192, false).unwrap();
    let Some(mut mapping) = file.map(4096, 4096).unwrap() else { return };
    recorder.is_on.store(true, Ordering::Relaxed);
    mapping.populate(0..100).unwrap();
    mapping.write(7, b"seven");
    let of = |kind, extent| (kind, "log".to_string(), extent, false);
    let expected = [
        of(FileCallKind::Prefetch, Extent::bytes(4096, 100)),
        of(FileCallKind::MappedWrite, Extent::bytes(4103, 5)),
    ];
    assert_eq!(*recorder.told.lock(), expected);
    let mut buffer = [0; 5];
    plain.read_at(0, &mut buffer).unwrap();
    file.read_at(4103, &mut buffer).unwrap();
    assert_eq!(&buffer, b"seven");
}
