//! What a family holds in two numbers, to compare what this engine and RocksDB read.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::Path;

use flagstone::base::{Result, counted};
use flagstone::db::{ColumnFamily, Db};
use flagstone::options::ReadOptions;
use serde_json::{Value, json};

/// How many keys, and a hash of all keys and values in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    pub count: u64,
    hash: u64,
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, hash {:016x}", counted(self.count, "key"), self.hash)
    }
}

#[derive(Default)]
struct Sum {
    count: u64,
    hasher: DefaultHasher,
}

impl Sum {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.count += 1;
        for part in [key, value] {
            self.hasher.write_usize(part.len());
            self.hasher.write(part);
        }
    }

    fn finish(&self) -> Contents {
        Contents { count: self.count, hash: self.hasher.finish() }
    }
}

/// What this engine reads.
pub fn of_family(db: &Db, family: &ColumnFamily) -> Result<Contents> {
    let mut sum = Sum::default();
    let mut iter =
        db.iter_cf(family, &ReadOptions { total_order_seek: true, ..ReadOptions::default() })?;
    iter.seek_to_first();
    while iter.valid() {
        let key = iter.key().to_vec();
        sum.add(&key, iter.value()?);
        iter.next();
    }
    iter.status()?;
    Ok(sum.finish())
}

/// The key and the value of a dump's line, `COLUMN_FAMILY HEXKEY HEXVALUE`.
fn entry(line: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let bytes = |digits: &str| {
        let digit = |byte: &u8| (*byte as char).to_digit(16);
        let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
        let byte = |[high, low]: &[u8; 2]| Some((digit(high)? << 4 | digit(low)?) as u8);
        pairs.iter().map(byte).collect::<Option<Vec<u8>>>().filter(|_| rest.is_empty())
    };
    let (rest, value) = line.rsplit_once(' ')?;
    let (_, key) = rest.rsplit_once(' ')?;
    Some((bytes(key)?, bytes(value)?))
}

/// What a dump shows; a line that is none shows in the hash.
pub fn of_dump(dump: &str) -> Contents {
    let mut sum = Sum::default();
    for line in dump.lines() {
        match entry(line) {
            Some((key, value)) => sum.add(&key, &value),
            None => sum.add(line.as_bytes(), b"not a line of a dump"),
        }
    }
    sum.finish()
}

/// Writes down the contents by family.
pub fn save(path: &Path, contents: &BTreeMap<String, Contents>) -> io::Result<()> {
    let listed: BTreeMap<_, _> =
        contents.iter().map(|(name, sum)| (name, json!([sum.count, sum.hash]))).collect();
    std::fs::write(path, json!(listed).to_string())
}

/// Reads them back.
pub fn load(path: &Path) -> io::Result<BTreeMap<String, Contents>> {
    let listed: BTreeMap<String, Value> = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let number = |sum: &Value, at: usize| sum[at].as_u64().unwrap_or(0);
    Ok(listed
        .into_iter()
        .map(|(name, sum)| (name, Contents { count: number(&sum, 0), hash: number(&sum, 1) }))
        .collect())
}
