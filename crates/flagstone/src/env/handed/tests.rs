use super::*;
use crate::env::memory::MemoryFileSystem;
use crate::env::{IoMode, WritableFile};

/// Offsets and lengths of writes, and the checksums that came with them.
type Noted = Arc<parking_lot::Mutex<Vec<(u64, usize, Option<u32>)>>>;

/// A file system that notes the checksums that it is handed.
struct Noting(MemoryFileSystem, Noted);

struct NotingFile(AnyFile, Noted);

impl FileAround for NotingFile {
    fn inner(&self) -> &AnyFile {
        &self.0
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.1.lock().push((offset, data.len(), None));
        self.0.write_at(offset, data)
    }

    fn write_handed(&self, offset: u64, data: &[u8], sum: u32) -> Result<()> {
        self.1.lock().push((offset, data.len(), Some(sum)));
        self.0.write_at(offset, data)
    }
}

impl FileSystemAround for Noting {
    fn inner(&self) -> &dyn FileSystem {
        &self.0
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        Ok(AnyFile::around(NotingFile(mode.open(&self.0, path)?, self.1.clone())))
    }
}

#[test]
fn each_write_of_a_chosen_kind_has_the_checksum_of_its_bytes() {
    let (fs, noted) = (MemoryFileSystem::new(), Arc::default());
    fs.create_directory(Path::new("/db")).unwrap();
    let kinds = ChecksumHandoff { tables: true, ..ChecksumHandoff::NONE };
    let handed = HandedFiles::new(Arc::new(Noting(fs.clone(), Arc::clone(&noted))), kinds);
    let write = |name: &str| -> Arc<dyn WritableFile> {
        let file = handed.create_writable(&Path::new("/db").join(name), IoMode::Buffered).unwrap();
        file.write_at(0, b"first").unwrap();
        file.write_vectored_at(5, &[b"sec", b"ond"]).unwrap();
        file
    };
    write("000007.sst");
    let expected = [(0, 5, Some(crc32c(b"first"))), (5, 6, Some(crc32c(b"second")))];
    assert_eq!(*noted.lock(), expected);
    noted.lock().clear();
    for name in ["000008.log", "MANIFEST-000005", "000009.blob", "CURRENT", "000010.dbtmp"] {
        write(name);
    }
    assert!(noted.lock().iter().all(|(_, _, sum)| sum.is_none()));
    let log = handed.create_log(Path::new("/db/000011.log")).unwrap();
    assert!(!log.is_mappable(), "the files around are not mapped");
}
