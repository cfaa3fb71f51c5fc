//! Traces of operations and of accesses of the block cache.

use std::path::Path;
use std::sync::Arc;

use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem, read_file};
use flagstone::options::Options;
use flagstone::replay::{ReplayOptions, Replayer};
use flagstone::trace::{
    FileTraceReader, FileTraceWriter, OperationTraceOptions, RawRecord, TraceReader,
};

use super::input::{ok, put_file};

/// Beside the database's directory.
const TRACE: &str = "/traces/trace";

/// More than an input needs.
const RECORDS_MAX: usize = 1000;

fn file_system() -> MemoryFileSystem {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/traces")).expect("a new directory");
    fs
}

fn env_on(fs: &MemoryFileSystem) -> Env {
    Env::memory().with_fs(Arc::new(fs.clone()))
}

fn database(fs: &MemoryFileSystem) -> Db {
    let mut options = Options { env: env_on(fs), ..Options::default() };
    options.db.create_if_missing = true;
    Db::open("/db", &options).expect("a new database")
}

/// What a database writes of each kind of operation.
pub fn sound() -> Vec<Vec<u8>> {
    let fs = file_system();
    let db = database(&fs);
    let writer = FileTraceWriter::create(&env_on(&fs), TRACE).expect("a new file");
    db.start_trace(&OperationTraceOptions::default(), Box::new(writer)).expect("a trace");
    db.put("key", "value").expect("a write");
    let mut batch = WriteBatch::new();
    batch.put("other", "value").and_then(|()| batch.delete("key")).expect("a batch");
    db.write(batch).expect("a write");
    db.get("key").expect("a lookup");
    db.multi_get(&["key", "other"]);
    let mut iter = db.iter(&Default::default()).expect("an iterator");
    iter.seek("k");
    iter.seek_for_prev("z");
    drop(iter);
    db.end_trace().expect("a whole trace");
    vec![read_file(&fs, Path::new(TRACE), 1 << 20).expect("a trace")]
}

/// Reads a file with these bytes record by record, and repeats what it says without pauses. The
/// database can be read afterwards.
pub fn trace(data: &[u8]) {
    let fs = file_system();
    put_file(&fs, TRACE, data);
    let env = env_on(&fs);
    let mut reader = FileTraceReader::open(&env, TRACE).expect("a file");
    let mut version = None;
    for _ in 0..RECORDS_MAX {
        let Ok(Some(record)) = reader.read() else { break };
        assert!(reader.offset() <= data.len() as u64);
        let Ok(raw) = RawRecord::parse(&record) else {
            panic!("the reader hands out whole records")
        };
        version = version.or(ok(raw.header()).map(|header| header.version));
        if let Some(version) = version {
            ok(raw.operation(version));
        }
    }
    let db = database(&fs);
    reader.reset().expect("a file");
    let mut replayer = Replayer::new(&db, Box::new(reader));
    if ok(replayer.prepare()).is_some() {
        let at_once = ReplayOptions { num_threads: 1, fast_forward: f64::INFINITY };
        ok(replayer.replay(&at_once, |_, _| {}));
    }
    let mut iter = db.iter(&Default::default()).expect("an iterator");
    iter.seek_to_first();
    while iter.valid() {
        ok(iter.value().map(<[u8]>::len));
        iter.next();
    }
}
