//! Reading a table back that has just been written, before anything counts on it
//! (`paranoid_file_checks`).

use std::path::Path;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::base::{Error, InternalKey, Result, counted};
use crate::db::family::Family;
use crate::db::jobs::Jobs;
use crate::env::{Advice, IoMode};
use crate::sst::{Table, TableReadSettings};

/// The entries of a table as one number, their order included.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::db) struct Entries {
    count: u64,
    hash: u64,
}

impl Entries {
    pub(in crate::db) fn add(&mut self, key: InternalKey<'_>, value: &[u8]) {
        self.count += 1;
        self.hash = xxh3_64_with_seed(value, xxh3_64_with_seed(key.as_bytes(), self.hash));
    }
}

/// Reads the whole table, past the block cache.
///
/// # Errors
/// `Corruption` if it is not sound, or does not hold `expected`; `IoError`.
pub(in crate::db) fn check_written(
    jobs: &Jobs,
    family: &Family,
    path: &Path,
    size: u64,
    expected: &Entries,
) -> Result<()> {
    let mode = IoMode::direct_if(jobs.tables.reads_directly());
    let file = jobs.context.env.fs.open_random_access(path, mode)?;
    file.advise(Advice::Sequential);
    let settings = TableReadSettings {
        comparator: family.comparator().clone(),
        prefix_extractor: family.options.load().prefix_extractor.clone(),
        ..TableReadSettings::default()
    };
    let table = Table::open(file, size, settings)?;
    let (mut found, mut fault) = (Entries::default(), None);
    let note = &mut |one: crate::sst::BlockFault| {
        fault.get_or_insert(one.error);
    };
    table.verify_showing(note, &mut |key, value| found.add(key, value));
    match fault {
        Some(error) => Err(error.context("a new table")),
        None if found != *expected => {
            let message = format!(
                "the new table does not hold what was written: {} instead of {}, or different entries",
                counted(found.count, "entry"),
                expected.count
            );
            Err(Error::corruption(message).at(path))
        }
        None => Ok(()),
    }
}
