use std::process::Command;

use super::*;
use crate::cell::{Cell, Compression, Effort, EngineName, Memory, Track};
use crate::workload::Workload;

const VALUE_BYTES: usize = 4 << 10;
const KEYS: u32 = 1000;
const DIRECTORY: &str = "PEERS_TEST_DIRECTORY";

fn open_as(name: EngineName, directory: &Path) -> Result<Box<dyn Engine>> {
    let cell = Cell {
        workload: Workload::LargeLoad,
        value_size: VALUE_BYTES as u32,
        threads: 1,
        track: Track::Tuned,
        durability: Durability::Process,
        memory: Memory::Ample,
        compression: Compression::None,
    };
    open(directory, &Tuning::new(name, &cell, Effort { scale: 1.0, seconds: 1.0 }, 2, &[]))
}

fn name_of(path: &Path) -> EngineName {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap();
    <EngineName as clap::ValueEnum>::from_str(name, false).unwrap()
}

/// Not a test by itself: the process that dies in the one below.
#[test]
#[ignore = "started by the next"]
fn puts_and_dies() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let directory = Path::new(&directory);
    let engine = open_as(name_of(directory), directory).unwrap();
    let value = vec![7; VALUE_BYTES];
    for key in 0..KEYS {
        engine.put(&key.to_be_bytes(), &value, Durability::Process).unwrap();
    }
    std::process::abort();
}

/// By this the class of direct write is judged, of which it was said that a kill loses what it
/// wrote.
#[test]
fn what_is_acknowledged_survives_the_death_of_the_process() {
    for name in [EngineName::Rocksdb, EngineName::RocksdbBlob, EngineName::RocksdbDirect] {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join(crate::cell::value_name(name));
        let mut dying = Command::new(std::env::current_exe().unwrap());
        dying.args(["--exact", "engine::rocksdb::tests::puts_and_dies", "--ignored"]);
        let outcome = dying.env(DIRECTORY, &directory).output().unwrap();
        assert!(!outcome.status.success(), "it dies");
        let engine = open_as(name, &directory).unwrap();
        let is_there = |key: &u32| {
            let mut is_whole = false;
            let mut visit = |bytes: &[u8]| is_whole = bytes == vec![7; VALUE_BYTES];
            engine.get(&key.to_be_bytes(), &mut visit).unwrap() && is_whole
        };
        assert_eq!((0..KEYS).filter(is_there).count(), KEYS as usize, "{}", name.title());
    }
}
