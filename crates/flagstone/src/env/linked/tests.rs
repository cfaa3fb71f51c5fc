use super::*;
use crate::base::Code;

const TABLE: &str = "/db/000007.sst";
const OWN: &str = "/own/000007.sst";

/// A file system that has no links, or says so.
struct WithoutLinks {
    fs: Arc<dyn FileSystem>,
    /// The link is made all the same.
    makes_it: bool,
}

impl FileSystemAround for WithoutLinks {
    fn inner(&self) -> &dyn FileSystem {
        &*self.fs
    }

    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        if self.makes_it {
            self.fs.link(source, target)?;
        }
        Err(crate::base::Error::not_supported("there are no links").at(target))
    }
}

fn world() -> Env {
    let env = Env::memory();
    env.fs.create_directory(Path::new("/db")).unwrap();
    env.fs.create_directory(Path::new("/own")).unwrap();
    write(&env, TABLE, b"table");
    env
}

fn write(env: &Env, path: &str, text: &[u8]) {
    env.fs.create_writable(Path::new(path), IoMode::Buffered).unwrap().write_at(0, text).unwrap();
}

fn links(env: &Env) -> LinkedFiles {
    LinkedFiles::new(env, Path::new("/own")).unwrap()
}

fn read(files: &LinkedFiles, path: &str) -> Result<Vec<u8>> {
    super::super::read_file(files, Path::new(path), 100)
}

fn names(env: &Env) -> Vec<String> {
    let mut names = env.fs.list(Path::new("/own")).unwrap();
    names.sort();
    names
}

#[test]
fn a_file_that_was_opened_stays_when_its_first_name_goes() {
    let env = world();
    let files = links(&env);
    assert_eq!(read(&files, TABLE).unwrap(), b"table");
    env.fs.remove(Path::new(TABLE)).unwrap();
    assert_eq!(read(&files, TABLE).unwrap(), b"table");
    assert_eq!(FileSystem::metadata(&files, Path::new(TABLE)).unwrap().size, 5);
    FileSystem::link(&files, Path::new(TABLE), Path::new("/db/copy")).unwrap();
    assert_eq!(names(&env), ["000007.sst"]);
}

#[test]
fn other_files_get_no_second_name() {
    let env = world();
    write(&env, "/db/CURRENT", b"text");
    assert_eq!(read(&links(&env), "/db/CURRENT").unwrap(), b"text");
    assert_eq!(names(&env), [""; 0]);
}

#[test]
fn a_name_that_was_left_is_used_for_the_same_file_alone() {
    let env = world();
    read(&links(&env), TABLE).unwrap();
    let files = links(&env);
    assert_eq!(read(&files, TABLE).unwrap(), b"table");
    env.fs.remove(Path::new(TABLE)).unwrap();
    write(&env, TABLE, b"another");
    assert_eq!(read(&links(&env), TABLE).unwrap(), b"another");
    env.fs.remove(Path::new(TABLE)).unwrap();
    let error = read(&links(&env), TABLE).unwrap_err();
    assert!(error.is_not_found() && error.path() == Some(Path::new(TABLE)), "{error}");
}

#[test]
fn without_links_there_are_copies() {
    for makes_it in [false, true] {
        let env = world();
        let fs = Arc::new(WithoutLinks { fs: env.fs.clone(), makes_it });
        let copying = env.clone().with_fs(fs);
        let files = links(&copying);
        assert_eq!(read(&files, TABLE).unwrap(), b"table");
        assert_eq!(read(&files, TABLE).unwrap(), b"table");
        let [first, second] = [TABLE, OWN].map(|path| env.fs.metadata(Path::new(path)).unwrap());
        assert_eq!((first.size, second.size), (5, 5), "neither was written over");
        assert_eq!((first.links, second.links), (1, 1));
        assert_eq!(names(&env), ["000007.sst"]);
    }
}

#[test]
fn what_nothing_has_open_is_swept() {
    let env = world();
    for left in ["/own/000003.sst", "/own/000004.blob", "/own/000007.dbtmp", "/own/photo.jpg"] {
        write(&env, left, b"left");
    }
    let files = links(&env);
    read(&files, TABLE).unwrap();
    files.sweep(&HashSet::from([PathBuf::from(TABLE)]));
    assert_eq!(names(&env), ["000007.sst", "photo.jpg"]);
    files.sweep(&HashSet::new());
    assert_eq!(names(&env), ["photo.jpg"]);
    assert_eq!(read(&files, TABLE).unwrap(), b"table");
    assert_eq!(names(&env), ["000007.sst", "photo.jpg"]);
}

#[test]
fn a_file_that_is_gone_is_named() {
    let env = world();
    let error = read(&links(&env), "/db/000008.sst").unwrap_err();
    assert_eq!((error.code(), error.is_not_found()), (Code::IoError, true));
    assert_eq!(error.path(), Some(Path::new("/db/000008.sst")));
}
