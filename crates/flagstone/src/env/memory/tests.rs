use super::*;

#[test]
fn files_keep_their_bytes_under_a_new_name() {
    let fs = MemoryFileSystem::new();
    let (a, b) = (Path::new("/db/a"), Path::new("/db/b"));
    assert!(fs.create_writable(a, IoMode::Buffered).is_err(), "the directory is missing");
    fs.create_directory(Path::new("/db")).unwrap();
    fs.create_writable(a, IoMode::Buffered).unwrap().write_at(0, b"hello").unwrap();
    fs.rename(a, b).unwrap();
    assert_eq!(fs.list(Path::new("/db")).unwrap(), ["b"]);
    assert_eq!(super::super::read_file(&fs, b, 100).unwrap(), b"hello");
    assert!(super::super::read_file(&fs, b, 4).unwrap_err().is_corruption());
}

#[test]
fn bytes_that_were_laid_down_stay_as_they_were() {
    let fs = MemoryFileSystem::new();
    let (path, bytes) = (Path::new("/some/where/a"), Arc::new(b"hello".to_vec()));
    fs.put(path, bytes.clone());
    fs.reopen_writable(path).unwrap().write_at(0, b"J").unwrap();
    assert_eq!(*bytes, b"hello");
    assert_eq!(fs.files(), [(path.to_path_buf(), Arc::new(b"Jello".to_vec()))]);
    assert_eq!(fs.list(Path::new("/some")).unwrap(), ["where"]);
}

#[test]
fn an_open_file_survives_its_removal() {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/db")).unwrap();
    let file = fs.create_writable(Path::new("/db/a"), IoMode::Buffered).unwrap();
    file.write_at(0, b"x").unwrap();
    fs.remove(Path::new("/db/a")).unwrap();
    assert_eq!(file.read_at(0, &mut [0]).unwrap(), 1);
}
