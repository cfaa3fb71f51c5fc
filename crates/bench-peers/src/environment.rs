//! Where and with what it is measured: no figure is worth anything without.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::engine::Result;

/// The machine and the versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// The processor's name.
    pub processor: String,
    /// Cores that this program may use.
    pub cores: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The kernel's version.
    pub kernel: String,
    /// The file system under the databases.
    pub file_system: String,
    /// Flagstone's commit.
    pub commit: String,
    /// The other engines' versions.
    pub versions: Vec<(String, String)>,
}

impl Environment {
    /// Looks around.
    pub fn look(directory: &Path) -> Result<Self> {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo")?;
        let meminfo = fs::read_to_string("/proc/meminfo")?;
        let kibibytes = field(&meminfo, "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        Ok(Self {
            processor: field(&cpuinfo, "model name").unwrap_or("unknown").to_string(),
            cores: std::thread::available_parallelism()?.get() as u64,
            memory_bytes: kibibytes.unwrap_or(0) * 1024,
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_string(),
            file_system: file_system(directory)?,
            commit: env!("PEERS_COMMIT").to_string(),
            versions: versions(include_str!("../Cargo.lock")),
        })
    }
}

/// The value of `name : value` in a file of `/proc`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim())
}

/// The type of the file system that the longest mount point above the directory has.
fn file_system(directory: &Path) -> Result<String> {
    let directory = directory.canonicalize()?;
    let mounts = fs::read_to_string("/proc/mounts")?;
    let above = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (point, kind) = (words.next()?, words.next()?);
        directory.starts_with(point).then_some((point.len(), kind))
    });
    Ok(above.max_by_key(|(length, _)| *length).map_or("unknown", |(_, kind)| kind).to_string())
}

/// The peers' versions as the lock file fixes them.
fn versions(lock: &str) -> Vec<(String, String)> {
    let packages = [
        ("RocksDB", "librocksdb-sys"),
        ("LevelDB", "leveldb-sys"),
        ("fjall", "fjall"),
        ("redb", "redb"),
        ("LMDB", "lmdb-master-sys"),
    ];
    let version = |package: &str| {
        let at = lock.find(&format!("name = \"{package}\"\nversion = \""))?;
        lock[at..].lines().nth(1)?.split('"').nth(1)
    };
    let known = packages.iter().filter_map(|(title, package)| {
        let version = version(package)?;
        // The binding's version carries the library's behind a plus.
        let version = version.split_once('+').map_or(version, |(_, library)| library);
        Some((title.to_string(), version.to_string()))
    });
    known
        .map(|(title, version)| match title.as_str() {
            // The bindings do not say which version they carry.
            "LevelDB" => (title, "1.22".to_string()),
            "LMDB" => (title, "0.9.70".to_string()),
            _ => (title, version),
        })
        .collect()
}

#[cfg(test)]
mod tests;
