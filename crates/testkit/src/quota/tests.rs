use super::*;
use flagstone::env::IoMode;
use flagstone::env::memory::MemoryFileSystem;

#[test]
fn space_is_taken_by_writing_and_reserving_and_given_back_with_the_last_name_and_handle() {
    let memory = Arc::new(MemoryFileSystem::new());
    let directory = Path::new("/d");
    memory.create_directory(directory).unwrap();
    memory
        .create_writable(&directory.join("old"), IoMode::Buffered)
        .unwrap()
        .write_at(0, b"1234")
        .unwrap();
    let fs = QuotaFs::new(memory, directory, 10).unwrap();
    assert_eq!(fs.used(), 4);

    let path = directory.join("new");
    let file = fs.create_writable(&path, IoMode::Buffered).unwrap();
    file.write_at(0, b"abcd").unwrap();
    assert_eq!(file.write_at(4, b"efgh").unwrap_err().subcode(), SubCode::NoSpace);
    assert_eq!((file.size().unwrap(), fs.used()), (6, 10), "what fits was written");
    file.truncate(4).unwrap();
    assert_eq!(file.allocate(7, true).unwrap_err().subcode(), SubCode::NoSpace);
    fs.set_limit(20);
    file.allocate(7, true).unwrap();
    assert_eq!(fs.used(), 11);

    fs.link(&path, &directory.join("second")).unwrap();
    fs.rename(&path, &directory.join("old")).unwrap();
    assert_eq!(fs.used(), 7, "the old file is gone, the new one has two names");
    fs.remove(&directory.join("old")).unwrap();
    fs.remove(&directory.join("second")).unwrap();
    assert_eq!(fs.used(), 7, "it is still open");
    drop(file);
    assert_eq!(fs.used(), 0);
}
