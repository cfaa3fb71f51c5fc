use super::*;
use crate::base::Code;
use crate::base::sync::AtomicBool;
use crate::env::FileSystemAround;
use crate::env::memory::MemoryFileSystem;

#[derive(Default)]
struct Failing {
    fs: MemoryFileSystem,
    fails: AtomicBool,
}

impl FileSystemAround for Failing {
    fn inner(&self) -> &dyn FileSystem {
        &self.fs
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        if self.fails.load(Ordering::Relaxed) {
            Err(Error::new(Code::IoError, "no").at(directory))
        } else {
            Ok(())
        }
    }
}

/// Once another's sync had failed, one's own succeeded, and a name made before was taken for
/// durable.
#[test]
fn a_name_that_another_has_lost_is_not_durable() {
    let fs = Arc::new(Failing::default());
    let names = Names::new(fs.clone());
    let [here, there] = [Path::new("/here"), Path::new("/there")];
    let (early, elsewhere) = (names.before_making(here), names.before_making(there));
    let other = names.before_making(here);
    fs.fails.store(true, Ordering::Relaxed);
    other.sync().unwrap_err();
    fs.fails.store(false, Ordering::Relaxed);
    let late = names.before_making(here);
    let error = early.sync().unwrap_err();
    assert!(error.path() == Some(here) && error.message().contains("may not last"), "{error}");
    late.sync().unwrap();
    assert!(other.sync().is_err() && early.sync().is_err(), "they stay lost");
    elsewhere.sync().unwrap();
    drop((early, other, late));
    names.before_making(Path::new("/elsewhere")).sync().unwrap();
    assert_eq!(names.directories.lock().len(), 2, "nobody makes names in the first any longer");
}
