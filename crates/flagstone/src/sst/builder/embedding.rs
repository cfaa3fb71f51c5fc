//! Large values that go beside the blocks (see [`embedded`](super::super::embedded)).

use super::TableBuilder;
use super::block_writer::BlockWriter;
use crate::base::entity;
use crate::base::{FileNumber, InternalKey, InternalKeyBuf, Result, ValueType};
use crate::blob::BlobIndex;
use crate::sst::embedded::EmbeddedStats;
use crate::sst::properties::{TableProperties, name};

/// Writes values beside the blocks, and what stands for them in these.
pub(super) struct Embedding {
    /// Values of so many bytes and more leave their blocks.
    min_size: u64,
    stats: EmbeddedStats,
    key: InternalKeyBuf,
    value: Vec<u8>,
}

impl Embedding {
    pub(super) fn new(min_size: u64) -> Self {
        Self {
            min_size,
            stats: EmbeddedStats::default(),
            key: InternalKeyBuf::new(b"", 0, ValueType::BlobIndex),
            value: Vec::new(),
        }
    }

    /// Notes in the properties how many values there are, if there are some.
    pub(super) fn note(&self, properties: &mut TableProperties) {
        if self.stats.count > 0 {
            properties.set(name::EMBEDDED_BLOBS, &self.stats.encode());
        }
    }

    fn takes(&self, value: &[u8]) -> bool {
        value.len() as u64 >= self.min_size
    }

    /// Writes a value, and adds to `index` where it lies.
    fn write(&mut self, value: &[u8], writer: &mut BlockWriter, index: &mut Vec<u8>) -> Result<()> {
        let handle = writer.write_raw(value)?;
        self.stats.add(handle.size);
        let file = FileNumber(0);
        BlobIndex { file, offset: handle.offset, size: handle.size, compression: 0 }.encode(index);
        Ok(())
    }

    /// Writes what of the entry is large, and keeps what stands for it in `key` and `value`;
    /// `false` if nothing is.
    fn take(
        &mut self,
        key: InternalKey<'_>,
        value: &[u8],
        writer: &mut BlockWriter,
    ) -> Result<bool> {
        match key.value_type() {
            Some(ValueType::Value) if self.takes(value) => {
                let mut index = std::mem::take(&mut self.value);
                index.clear();
                self.write(value, writer, &mut index)?;
                self.value = index;
                self.key.set(key.user_key(), key.sequence(), ValueType::BlobIndex);
                Ok(true)
            }
            // A column is no longer than its entity.
            Some(ValueType::WideColumnEntity) if self.takes(value) => {
                let is_taken = self.take_columns(value, writer)?;
                self.key.set(key.user_key(), key.sequence(), ValueType::WideColumnEntity);
                Ok(is_taken)
            }
            _ => Ok(false),
        }
    }

    fn take_columns(&mut self, entity: &[u8], writer: &mut BlockWriter) -> Result<bool> {
        let mut columns = entity::decode(entity)?;
        let mut indexes = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            if !column.is_blob && self.takes(column.value) {
                let mut index = Vec::new();
                self.write(column.value, writer, &mut index)?;
                indexes.push((at, index));
            }
        }
        for (at, index) in &indexes {
            (columns[*at].value, columns[*at].is_blob) = (index, true);
        }
        if !indexes.is_empty() {
            self.value = entity::encode_stored(&columns);
        }
        Ok(!indexes.is_empty())
    }
}

impl TableBuilder {
    /// Adds an entry whose value may go beside the blocks.
    pub(super) fn add_embedding(&mut self, key: InternalKey<'_>, value: &[u8]) -> Result<()> {
        let Some(mut embedding) = self.embedding.take() else {
            return self.add_stored(key, value);
        };
        let is_taken = embedding.take(key, value, &mut self.writer);
        let added = is_taken.map_err(|error| error.at(&self.path)).and_then(|is_taken| {
            if is_taken {
                self.add_stored(embedding.key.as_key(), &embedding.value)
            } else {
                self.add_stored(key, value)
            }
        });
        self.embedding = Some(embedding);
        added
    }
}
