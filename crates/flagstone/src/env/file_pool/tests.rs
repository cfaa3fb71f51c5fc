use super::*;
use crate::env::memory::MemoryFileSystem;
use crate::env::{self, AnyFile, FileSystemAround, IoMode, OpenMode, RandomAccessFile};
use std::ops::Range;
use std::sync::atomic::AtomicI64;

/// Counts the files that are open, and the most there were.
struct Counting {
    files: MemoryFileSystem,
    open: Arc<AtomicI64>,
    opened: AtomicI64,
    most: AtomicI64,
    /// So many the process has room for.
    room: AtomicI64,
}

struct Counted(AnyFile, Arc<AtomicI64>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

impl env::FileAround for Counted {
    fn inner(&self) -> &AnyFile {
        &self.0
    }
}

impl FileSystemAround for Counting {
    fn inner(&self) -> &dyn FileSystem {
        &self.files
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        if self.open.load(Ordering::Relaxed) >= self.room.load(Ordering::Relaxed) {
            return Err(Error::io("open", path, Errno::MFILE.into()));
        }
        let file = mode.open(&self.files, path)?;
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.most.fetch_max(open, Ordering::Relaxed);
        Ok(AnyFile::around(Counted(file, self.open.clone())))
    }
}

/// Files of a byte each, their number.
fn files(count: u8) -> Arc<Counting> {
    let files = MemoryFileSystem::new();
    files.create_directory(Path::new("/d")).unwrap();
    for number in 0..count {
        let file = files.create_writable(&path(number), IoMode::Buffered).unwrap();
        file.write_at(0, &[number]).unwrap();
    }
    let zero = || AtomicI64::new(0);
    let room = AtomicI64::new(i64::MAX);
    Arc::new(Counting { files, open: Arc::new(zero()), opened: zero(), most: zero(), room })
}

fn path(number: u8) -> PathBuf {
    Path::new("/d").join(number.to_string())
}

fn open(pool: &Arc<FilePool>, numbers: Range<u8>) -> Vec<Arc<dyn RandomAccessFile>> {
    let open = |number| pool.open(&path(number), IoMode::Buffered, Temperature::UNKNOWN).unwrap();
    numbers.map(open).collect()
}

fn read(file: &Arc<dyn RandomAccessFile>) -> u8 {
    let mut byte = [0];
    assert_eq!(file.read_at(0, &mut byte).unwrap(), 1);
    byte[0]
}

#[test]
fn only_so_many_are_open_and_all_can_be_read() {
    let fs = files(20);
    let pool = FilePool::new(fs.clone());
    pool.set_capacity(Some(3));
    let opened = open(&pool, 0..20);
    for _ in 0..3 {
        assert!(opened.iter().map(read).eq(0..20));
    }
    assert_eq!(fs.most.load(Ordering::Relaxed), 3);
    pool.set_capacity(Some(1));
    assert_eq!(fs.open.load(Ordering::Relaxed), 1);
    pool.set_capacity(None);
    assert!(opened.iter().map(read).eq(0..20));
    assert_eq!(fs.open.load(Ordering::Relaxed), 20);
    drop(opened);
    assert_eq!(fs.open.load(Ordering::Relaxed), 0);
    assert!(pool.state.lock().open.is_empty());
}

#[test]
fn what_is_read_again_and_again_stays_open() {
    let fs = files(20);
    let pool = FilePool::new(fs.clone());
    pool.set_capacity(Some(3));
    let opened = open(&pool, 0..20);
    for (number, file) in opened.iter().enumerate().skip(1) {
        read(&opened[0]);
        assert_eq!(read(file), number as u8);
    }
    let before = fs.opened.load(Ordering::Relaxed);
    read(&opened[0]);
    assert_eq!(fs.opened.load(Ordering::Relaxed), before);
}

#[test]
fn without_a_limit_a_file_stays_open_though_one_is_set_later() {
    let fs = files(9);
    let pool = FilePool::new(fs.clone());
    let opened = open(&pool, 0..9);
    pool.set_capacity(Some(1));
    assert!(opened.iter().map(read).eq(0..9));
    assert_eq!(fs.opened.load(Ordering::Relaxed), 9);
}

/// Such a moment passed for damage of the file that was to be read.
#[test]
fn where_the_process_may_open_no_more_files_the_pool_gives_up_its_own() {
    let fs = files(20);
    let pool = FilePool::new(fs.clone());
    pool.set_capacity(Some(10));
    let opened = open(&pool, 0..20);
    pool.set_capacity(Some(15));
    fs.room.store(10, Ordering::Relaxed);
    assert!(opened.iter().map(read).eq(0..20));
    fs.room.store(0, Ordering::Relaxed);
    pool.set_capacity(Some(1));
    let error = opened[3].read_at(0, &mut [0]).unwrap_err();
    assert!(is_out_of_descriptors(&error), "{error}");
}

#[test]
fn a_file_that_is_gone_is_an_error_of_the_read() {
    let fs = files(2);
    let pool = FilePool::new(fs.clone());
    pool.set_capacity(Some(1));
    let opened = open(&pool, 0..2);
    FileSystem::remove(&fs.files, &path(0)).unwrap();
    assert!(opened[0].read_at(0, &mut [0]).unwrap_err().is_not_found());
    assert_eq!(read(&opened[1]), 1);
}

#[test]
fn many_readers_at_once_read_what_they_asked_for() {
    let fs = files(20);
    let pool = FilePool::new(fs.clone());
    pool.set_capacity(Some(2));
    let opened = open(&pool, 0..20);
    std::thread::scope(|scope| {
        for start in 0..4 {
            let opened = &opened;
            scope.spawn(move || {
                for step in 0..2000 {
                    let number = (start * 5 + step * 7) % 20;
                    assert_eq!(read(&opened[number]), number as u8);
                }
            });
        }
    });
    drop(opened);
    assert_eq!(fs.open.load(Ordering::Relaxed), 0);
}
