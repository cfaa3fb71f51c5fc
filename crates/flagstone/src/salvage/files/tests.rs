use super::*;
use crate::env::memory::MemoryFileSystem;

#[test]
fn more_files_are_read_than_are_open_and_none_is_written() {
    let fs = Arc::new(MemoryFileSystem::new());
    fs.create_directory(Path::new("/db")).unwrap();
    let path = |number: usize| PathBuf::from(format!("/db/{number:06}.sst"));
    let count = OPEN_MAX + 10;
    for number in 0..count {
        fs.create_writable(&path(number), IoMode::Buffered)
            .unwrap()
            .write_at(0, &number.to_le_bytes())
            .unwrap();
    }
    let files = SourceFiles::new(fs);
    let all: Vec<_> = (0..count).map(|number| files.at(&path(number))).collect();
    for _ in 0..2 {
        for (number, file) in all.iter().enumerate() {
            let mut bytes = [0; 8];
            assert_eq!(file.read_at(0, &mut bytes).unwrap(), 8);
            assert_eq!((usize::from_le_bytes(bytes), file.size().unwrap()), (number, 8));
        }
        assert_eq!(files.open.lock().len(), OPEN_MAX);
    }
    assert!(files.at(Path::new("/db/none")).read_at(0, &mut [0]).unwrap_err().is_not_found());
}
