//! The filter of a table under construction: one for the whole file, or one for every so many keys.
//!
//! Partitions are cut between user keys, independent of the index's. With prefixes, a partition
//! also holds the prefix of the first key of the next one and of the last key of the one before: a
//! seek to a key between two partitions may ask either.

use crate::base::{InternalKeyBuf, PrefixExtractor, Result, ValueType, timestamp};

use super::super::filter::FilterBuilder;
use super::super::format::BlockHandle;
use super::super::index::{IndexBlockWriter, IndexFlavor};
use super::block_writer::BlockWriter;

pub(super) struct Filters {
    builder: FilterBuilder,
    whole_keys: bool,
    prefixes: Option<PrefixExtractor>,
    /// Keys per partition; `None` for one filter over all.
    partition_keys: Option<usize>,
    partitions: Vec<Partition>,
    last: Vec<u8>,
    any: bool,
    elements: u64,
    finished_size: usize,
    /// The bytes of the timestamps that keys end in, which are not part of what is looked up.
    timestamp_size: usize,
}

struct Partition {
    filter: Vec<u8>,
    last_user_key: Vec<u8>,
}

impl Filters {
    /// With `partition_size`, filters of about that many bytes each.
    pub fn new(
        builder: FilterBuilder,
        whole_keys: bool,
        prefixes: Option<PrefixExtractor>,
        partition_size: Option<usize>,
    ) -> Self {
        let partition_keys = partition_size.map(|size| builder.keys_that_fit(size).max(1));
        Self {
            builder,
            whole_keys,
            prefixes,
            partition_keys,
            partitions: Vec::new(),
            last: Vec::new(),
            any: false,
            elements: 0,
            finished_size: 0,
            timestamp_size: 0,
        }
    }

    /// For keys that end in timestamps of so many bytes.
    #[must_use]
    pub fn of_keys_with_timestamps(self, timestamp_size: usize) -> Self {
        Self { timestamp_size, ..self }
    }

    /// Adds a user key; repetitions cost little.
    #[inline]
    pub fn add(&mut self, user_key: &[u8]) {
        let user_key = timestamp::strip(user_key, self.timestamp_size);
        if let Some(most) = self.partition_keys {
            if self.any && self.builder.len() >= most && self.last != user_key {
                self.cut(user_key);
            }
            self.last.clear();
            self.last.extend_from_slice(user_key);
        }
        self.any = true;
        if let Some(prefix) =
            self.prefixes.as_ref().and_then(|extractor| extractor.prefix(user_key))
        {
            self.builder.add(prefix);
        }
        if self.whole_keys {
            self.builder.add(user_key);
        }
    }

    fn cut(&mut self, next_user_key: &[u8]) {
        let prefix = |key| self.prefixes.as_ref().and_then(|extractor| extractor.prefix(key));
        if let Some(prefix) = prefix(next_user_key) {
            self.builder.add(prefix);
        }
        self.finish_partition();
        if let Some(prefix) =
            self.prefixes.as_ref().and_then(|extractor| extractor.prefix(&self.last))
        {
            self.builder.add(prefix);
        }
    }

    fn finish_partition(&mut self) {
        self.elements += self.builder.len() as u64;
        let filter = self.builder.finish();
        self.finished_size += filter.len();
        self.partitions.push(Partition { filter, last_user_key: self.last.clone() });
    }

    pub fn estimated_size(&self) -> usize {
        self.finished_size + self.builder.estimated_size()
    }

    /// Writes the filter: where it (or the block over its partitions) lies, its size without
    /// trailers, and how many keys and prefixes it holds. `None` if it would hold nothing.
    ///
    /// # Errors
    /// `IoError`.
    pub fn finish(
        mut self,
        writer: &mut BlockWriter,
        flavor: IndexFlavor,
        restart_interval: usize,
    ) -> Result<Option<(BlockHandle, u64, u64)>> {
        if !self.any {
            return Ok(None);
        }
        self.finish_partition();
        if self.partition_keys.is_none() {
            let handle = writer.write_raw(&self.partitions[0].filter)?;
            return Ok(Some((handle, handle.size, self.elements)));
        }
        let flavor = IndexFlavor { first_keys: false, ..flavor };
        let mut index = IndexBlockWriter::new(flavor, restart_interval);
        let mut size = 0;
        for partition in &self.partitions {
            let handle = writer.write_raw(&partition.filter)?;
            size += handle.size;
            let last = timestamp::last_of(&partition.last_user_key, self.timestamp_size);
            let separator = InternalKeyBuf::new(&last, 0, ValueType::Deletion);
            index.add(separator.as_bytes(), handle, &[]);
        }
        let handle = writer.write_raw(index.finish())?;
        Ok(Some((handle, size + handle.size, self.elements)))
    }
}
