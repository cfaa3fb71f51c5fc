//! How the choice of a memtable reads and prints. RocksDB's names, those of its option strings, and
//! the engine's own:
//!
//! ```text
//! factory := name [":" number] | "{" "id=" name ";" pairs "}"
//! name    := "SkipListFactory"        the engine's default, as it is RocksDB's: a B+tree
//!          | "btree"                  the same
//!          | "skip_list"              a skip list; printed as {id=SkipListFactory;lookahead=0;}
//!          | "VectorRepFactory"       | "vector"
//!          | "HashSkipListRepFactory" | "prefix_hash"        number: buckets
//!          | "HashLinkListRepFactory" | "hash_linkedlist"    the same
//! ```
//!
//! RocksDB has no B+tree, and takes the default's name for a skip list that serves the same
//! purpose. It never writes `lookahead` itself: a file that has it was written here and asked for
//! the skip list.

use super::text::{pairs, without_braces};
use super::value::{RandomBits, SettingValue};
use crate::base::{Error, Result, SubCode};

/// The data structure of memtables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemTableFactory {
    /// A B+tree in plain byte order, a skip list in any other order.
    #[default]
    BTree,
    /// A skip list.
    SkipList,
    /// Unsorted until first read. For bulk loads that are read only once the memtable is full.
    Vector,
    /// Small lists found by a hash of the key's prefix; needs `prefix_extractor`.
    PrefixHash {
        /// Maximum number of lists; small memtables get fewer.
        bucket_count: u64,
    },
}

/// With fewer bytes of a memtable for each bucket, most would stay empty. A RocksDB whose buckets
/// fill the memtable fails.
const BUFFER_BYTES_PER_BUCKET: u64 = 128;

/// RocksDB's.
const DEFAULT_BUCKET_COUNT: u64 = 1_000_000;

/// RocksDB's parameters that shape structures which are others here.
const WITHOUT_EFFECT: [&str; 7] = [
    "count",
    "skiplist_height",
    "branching_factor",
    "threshold",
    "logging_threshold",
    "log_when_flash",
    "huge_page_size",
];

impl MemTableFactory {
    /// Whether RocksDB's structure of that name lets several threads insert at a time.
    pub(super) fn allows_concurrent_writes_in_rocksdb(self) -> bool {
        matches!(self, Self::BTree | Self::SkipList)
    }

    /// The same for memtables of that size: with no more buckets than they have use for.
    pub fn fitted(self, write_buffer_size: u64) -> Self {
        match self {
            Self::PrefixHash { bucket_count } => {
                let bucket_count_max = (write_buffer_size / BUFFER_BYTES_PER_BUCKET).max(1);
                Self::PrefixHash { bucket_count: bucket_count.min(bucket_count_max) }
            }
            other => other,
        }
    }

    fn parse(text: &str) -> Result<Self> {
        let inner = without_braces(text);
        if !inner.contains('=') {
            let (name, number) =
                inner.split_once(':').map_or((inner, None), |(name, n)| (name, Some(n)));
            return match (name, number) {
                ("SkipListFactory", Some(lookahead)) => Self::SkipList.with_number(Some(lookahead)),
                _ => Self::named(name)?.with_number(number),
            };
        }
        let found = pairs(inner)?;
        let (_, id) = *found.iter().find(|(name, _)| *name == "id").ok_or_else(|| unknown(text))?;
        let mut factory = Self::named(id)?;
        for (name, value) in found {
            match (name, &mut factory) {
                ("id", _) => {}
                ("lookahead", Self::BTree | Self::SkipList) => {
                    factory = Self::SkipList.with_number(Some(value))?
                }
                ("bucket_count", Self::PrefixHash { .. }) => {
                    factory = factory.with_number(Some(value))?
                }
                (name, Self::Vector | Self::PrefixHash { .. })
                    if WITHOUT_EFFECT.contains(&name) => {}
                _ => {
                    return Err(Error::invalid_argument(format!(
                        "'{id}' has no parameter '{name}'"
                    ))
                    .with_subcode(SubCode::OtherRelease));
                }
            }
        }
        Ok(factory)
    }

    fn named(name: &str) -> Result<Self> {
        match name {
            "SkipListFactory" | "btree" => Ok(Self::BTree),
            "skip_list" => Ok(Self::SkipList),
            "VectorRepFactory" | "vector" => Ok(Self::Vector),
            "HashSkipListRepFactory"
            | "prefix_hash"
            | "HashLinkListRepFactory"
            | "hash_linkedlist" => Ok(Self::PrefixHash { bucket_count: DEFAULT_BUCKET_COUNT }),
            _ => Err(unknown(name)),
        }
    }

    fn with_number(self, text: Option<&str>) -> Result<Self> {
        let Some(text) = text else { return Ok(self) };
        let mut number = 0u64;
        number.assign(text)?;
        match self {
            Self::PrefixHash { .. } if number == 0 => {
                Err(Error::invalid_argument("bucket_count is 0; there must be at least one bucket"))
            }
            Self::PrefixHash { .. } => Ok(Self::PrefixHash { bucket_count: number }),
            // Room for so many entries, which grows here as it is needed.
            Self::Vector => Ok(self),
            Self::SkipList if number == 0 => Ok(self),
            Self::SkipList => Err(Error::not_supported(format!(
                "lookahead {number} is not supported; use 0 or leave it out"
            ))),
            Self::BTree => Err(Error::invalid_argument("a B+tree takes no parameter")),
        }
    }
}

/// As for everything that RocksDB may know and we do not: an OPTIONS file may say so.
fn unknown(text: &str) -> Error {
    Error::not_supported(format!(
        "memtable '{text}' is not supported: expected btree, skip_list, vector or prefix_hash, or RocksDB's \
         SkipListFactory, VectorRepFactory, HashSkipListRepFactory or HashLinkListRepFactory"
    ))
}

impl SettingValue for MemTableFactory {
    fn assign(&mut self, text: &str) -> Result<()> {
        *self = Self::parse(text)?;
        Ok(())
    }

    fn text(&self) -> String {
        match self {
            Self::BTree => "SkipListFactory".to_string(),
            Self::SkipList => "{id=SkipListFactory;lookahead=0;}".to_string(),
            Self::Vector => "VectorRepFactory".to_string(),
            Self::PrefixHash { bucket_count } => {
                format!("{{id=HashSkipListRepFactory;bucket_count={bucket_count};}}")
            }
        }
    }

    fn sample(random: RandomBits<'_>) -> Self {
        match random() % 4 {
            0 => Self::BTree,
            1 => Self::SkipList,
            2 => Self::Vector,
            _ => Self::PrefixHash { bucket_count: 1 + random() % 1000 },
        }
    }
}

#[cfg(test)]
mod tests;
