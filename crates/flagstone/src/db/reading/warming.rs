//! Lists of the blocks that a cache has, and reading listed blocks into another cache.
//!
//! A list has the places of blocks and not their bytes, which the tables have. So the list of a
//! large cache is small, and a stale one does no harm: places that no longer exist are passed over.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::base::{Error, FileNumber, Result};
use crate::db::family::Family;
use crate::db::reading::Reader;
use crate::db::reading::ahead::read_planned;
use crate::manifest::TableFile;
use crate::sst::{CachedBlock, ReadSettings, Slim, Table};

/// The places of the data blocks of a database that a block cache has.
/// [`Db::cached_blocks`](crate::db::Db::cached_blocks) returns the list, and
/// [`Db::warm_block_cache`](crate::db::Db::warm_block_cache) reads the blocks into the cache of a
/// later process or of a copy of the database.
///
/// As text it has a line for each table: its number, as in its file's name, and the offsets of the
/// blocks.
///
/// ```
/// use flagstone::db::CachedBlocks;
///
/// # fn main() -> flagstone::Result<()> {
/// let blocks: CachedBlocks = "12 0 4096\n15 8192\n".parse()?;
/// assert_eq!(blocks.count(), 3);
/// assert_eq!(blocks.to_string(), "000012 0 4096\n000015 8192\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CachedBlocks(BTreeMap<FileNumber, BTreeSet<u64>>);

impl CachedBlocks {
    /// How many blocks there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }
}

impl fmt::Display for CachedBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, offsets) in &self.0 {
            write!(f, "{number}")?;
            offsets.iter().try_for_each(|offset| write!(f, " {offset}"))?;
            writeln!(f)?;
        }
        Ok(())
    }
}

impl FromStr for CachedBlocks {
    type Err = Error;

    /// # Errors
    /// `InvalidArgument` for a word that is no number.
    fn from_str(text: &str) -> Result<Self> {
        let mut blocks = Self::default();
        for (at, line) in text.lines().enumerate() {
            let number = |word: &str| {
                word.parse::<u64>().map_err(|_| {
                    Error::invalid_argument(format!(
                        "line {} of the list of cached blocks: '{}' is no number",
                        at + 1,
                        word.escape_default()
                    ))
                })
            };
            let mut words = line.split_ascii_whitespace();
            let Some(table) = words.next() else { continue };
            let offsets = blocks.0.entry(FileNumber(number(table)?)).or_default();
            for word in words {
                offsets.insert(number(word)?);
            }
        }
        Ok(blocks)
    }
}

/// The open tables of the families' current versions.
fn open_tables(families: &[Arc<Family>]) -> BTreeMap<FileNumber, Arc<Table>> {
    let mut tables = BTreeMap::new();
    for family in families {
        let current = family.current.load();
        let files = current.version.files().map(|(_, file)| file);
        let open = files.filter_map(|file| Some((file.number(), file.table.get()?.clone())));
        tables.extend(open);
    }
    tables
}

/// The data blocks that the cache has of tables of these families.
pub(in crate::db) fn cached_blocks(reader: &Reader, families: &[Arc<Family>]) -> CachedBlocks {
    let tables = open_tables(families);
    let numbers: HashMap<u64, FileNumber> =
        tables.iter().map(|(number, table)| (table.cache_id(), *number)).collect();
    let mut blocks = CachedBlocks::default();
    reader.tables.caches().blocks().visit(|key, block, _| {
        if let (CachedBlock::Slim(Slim::Data(_)), Some(number)) = (block, numbers.get(&key.file)) {
            blocks.0.entry(*number).or_default().insert(key.offset);
        }
    });
    blocks
}

/// Reads blocks into the cache until they take about three quarters of it; how
/// many. Tables and places that are not there are passed over.
///
/// # Errors
/// Those of opening tables and of reading their indexes. Damaged blocks are left to readers.
pub(in crate::db) fn warm(
    reader: &Reader,
    families: &[Arc<Family>],
    blocks: &CachedBlocks,
) -> Result<usize> {
    let mut room = reader.tables.caches().blocks().capacity() as u64 / 4 * 3;
    let (settings, mut read) = (ReadSettings::default(), 0);
    for family in families {
        let current = family.current.load();
        for (_, file) in current.version.files() {
            let file: &Arc<TableFile> = file;
            let Some(offsets) = blocks.0.get(&file.number()) else { continue };
            let table = reader.tables.open_for(family, file, false)?;
            let mut planned = Vec::new();
            table.plan_offsets(|offset| offsets.contains(&offset), &settings, &mut planned)?;
            let mut planned: Vec<_> = planned.into_iter().map(|one| (table.clone(), one)).collect();
            let done = read_planned(reader, &mut planned, room, |_| read += 1);
            room = room.saturating_sub(done.bytes);
        }
    }
    Ok(read)
}
