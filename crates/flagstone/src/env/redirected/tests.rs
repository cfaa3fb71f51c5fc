use std::path::Path;
use std::sync::Arc;

use super::RedirectedFiles;
use crate::base::Code;
use crate::env::memory::MemoryFileSystem;
use crate::env::{FileSystem, IoMode, read_file};

#[test]
fn new_files_lie_elsewhere_and_old_ones_stay_as_they_are() {
    let fs: Arc<dyn FileSystem> = Arc::new(MemoryFileSystem::new());
    for directory in ["/db", "/own"] {
        fs.create_directory(Path::new(directory)).unwrap();
    }
    let old = Path::new("/db/000001.sst");
    fs.create_writable(old, IoMode::Buffered).unwrap().write_at(0, b"old").unwrap();
    let view = RedirectedFiles::new(fs.clone(), Path::new("/own"));
    let new = Path::new("/db/000002.sst");
    view.create_writable(new, IoMode::Buffered).unwrap().write_at(0, b"new").unwrap();
    view.sync_directory(Path::new("/db")).unwrap();
    assert_eq!(read_file(&view, new, 10).unwrap(), b"new");
    assert_eq!(read_file(&view, old, 10).unwrap(), b"old");
    assert_eq!(view.metadata(new).unwrap().size, 3);
    assert_eq!(fs.list(Path::new("/db")).unwrap(), ["000001.sst"]);
    assert_eq!(fs.list(Path::new("/own")).unwrap(), ["000002.sst"]);

    let refused = |outcome: crate::base::Result<()>| {
        assert_eq!(outcome.unwrap_err().code(), Code::NotSupported);
    };
    refused(view.remove(old));
    refused(view.rename(old, new));
    refused(view.link(new, Path::new("/db/000003.sst")));
    refused(view.reopen_writable(old).map(drop));
    refused(view.open_reclaimable(old).map(drop));
    refused(view.create_log(Path::new("/db/000004.log")).map(drop));
    refused(view.create_directory(Path::new("/db/more")));
    refused(view.lock(Path::new("/db/LOCK")).map(drop));

    assert!(view.publish(Path::new("/db/FIGURES")).unwrap().is_none());

    // A file that has the name of one that is there hides it, and does not change it.
    view.create_writable(old, IoMode::Buffered).unwrap().write_at(0, b"other").unwrap();
    assert_eq!(read_file(&view, old, 10).unwrap(), b"other");
    assert_eq!(read_file(&*fs, old, 10).unwrap(), b"old");
    view.remove(new).unwrap();
    assert!(view.metadata(new).unwrap_err().is_not_found());
}
