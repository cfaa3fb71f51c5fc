//! Names of files, CURRENT, IDENTITY, OWNER, unique ids.

use std::path::Path;

use flagstone::base::file_name::{self, FileKind};
use flagstone::base::unique_id::session_identity;
use flagstone::base::{FileNumber, UniqueId};
use flagstone::env::Env;
use flagstone::env::FileSystem;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::manifest;

use super::input::{Input, ok, put_file};
use crate::{settings, steps};

/// Parses a file name; the name made of what was found must mean the same.
pub fn file_name(data: &[u8]) {
    let Ok(name) = std::str::from_utf8(data) else { return };
    let Some(kind) = FileKind::parse(name) else { return };
    let Some(number) = kind.number() else { return };
    let directory = Path::new("");
    let made = match kind {
        FileKind::Wal(_) => file_name::wal(directory, number),
        FileKind::Table(_) => file_name::table(directory, number),
        FileKind::Blob(_) => file_name::blob(directory, number),
        FileKind::Manifest(_) => file_name::manifest(directory, number),
        _ => return,
    };
    assert_eq!(FileKind::parse(made.to_str().expect("ASCII")), Some(kind), "{name}");
}

/// Reads CURRENT with these bytes, and the families behind it.
pub fn identity(data: &[u8]) {
    let mut input = Input::new(data);
    let (current, identity) = (input.piece(), input.rest());
    let fs = MemoryFileSystem::new();
    let directory = Path::new("/db");
    fs.create_directory(directory).expect("memory");
    put_file(&fs, file_name::current(directory), current);
    put_file(&fs, file_name::identity(directory), identity);
    put_file(&fs, "/db/MANIFEST-000001", &[]);
    ok(manifest::read_current(&fs, directory));
    let env = Env::memory().with_fs(std::sync::Arc::new(fs));
    ok(manifest::list_column_families(&env, directory));
    ok(flagstone::db::Db::open_read_only(
        directory,
        &flagstone::options::Options { env, ..Default::default() },
    ));
}

/// Opens a database with a data directory of which OWNER says these bytes, beside the one that it
/// may name.
pub fn owner(data: &[u8]) {
    let fs = MemoryFileSystem::new();
    ["/db", "/data", "/other"]
        .iter()
        .for_each(|path| fs.create_directory(Path::new(path)).expect("memory"));
    put_file(&fs, file_name::current(Path::new("/other")), b"MANIFEST-000001\n");
    put_file(&fs, file_name::identity(Path::new("/other")), b"some-identity");
    put_file(&fs, file_name::owner(Path::new("/data")), data);
    let mut options = settings::tiny(&steps::world(std::sync::Arc::new(fs), 1));
    settings::set(&mut options, &[("create_if_missing", "true"), ("db_paths", "/data")]);
    if let Some(db) = ok(flagstone::db::Db::open("/db", &options)) {
        ok(db.put("key", "value"));
        ok(db.flush_all());
        ok(db.close());
        ok(flagstone::db::Db::open("/db", &options)).expect("it was open before");
    }
}

/// Makes unique ids of hostile identities.
pub fn unique_id(data: &[u8]) {
    let mut input = Input::new(data);
    let (upper, lower, number) = (input.u64(), input.u64(), FileNumber(input.u64()));
    let database = String::from_utf8_lossy(input.piece()).into_owned();
    let session = String::from_utf8_lossy(input.rest()).into_owned();
    let id = UniqueId::new(&database, &session, number);
    assert_eq!(id, UniqueId::new(&database, &session, number));
    assert_eq!(id.to_string().len(), 32);
    let made = session_identity(upper, lower);
    assert_eq!(made.len(), 20);
    let lower_half = UniqueId::new(&database, &made, number);
    assert_eq!(lower_half, UniqueId::new(&database, &made, number));
}
