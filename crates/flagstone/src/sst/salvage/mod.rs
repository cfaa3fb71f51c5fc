//! What is left of a damaged table.
//!
//! 1. Footer, metaindex, properties, dictionary and range tombstones are read as far as they are
//!    intact.
//! 2. The index, or each intact partition of it, tells where data blocks lie. Each is read and
//!    checked; one that fails is reported with the keys that it may have held.
//! 3. If a part of this is lost, blocks are looked for by their checksums (`scan`) where none is
//!    known, and what they are is told from what they hold (`contents`).
//!
//! Only bytes whose checksum is right are taken for a block. A table without checksums, whose index
//! is lost, yields nothing.

mod contents;
mod embedded;
mod ends;
mod scan;
mod search;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use crate::base::checksum::ChecksumType;
use crate::base::compression::DecompressionDictionary;
use crate::base::{
    Comparator, Error, InternalKey, InternalKeyBuf, RangeTombstone, Result, SequenceNumber,
};
use crate::cache::Priority;
use crate::env::{RandomAccessFile, read_until_end};

use super::block::{BlockIter, GuideRoom};
use super::fetch::BlockSource;
use super::format::{BlockHandle, IndexType, meta_name};
use super::index::IndexBlock;
use super::open::{
    properties_handle, read_metaindex, read_properties, read_range_tombstones, read_tail,
};
use super::properties::TableProperties;
use super::verify::BlockFault;
use embedded::LostValues;
use ends::Effort;
use scan::Checksums;
pub use walk::RemainingEntries;

/// So many damaged blocks in a row are told one by one. What is behind them is told together: of a
/// device that has lost much there are millions.
const TOLD_IN_A_ROW: usize = 16;

/// What the caller knows of a table.
pub struct SalvageSettings<'a> {
    /// The order of keys, given the properties if they are intact.
    pub comparator: &'a dyn Fn(Option<&TableProperties>) -> Result<Comparator>,
    /// The largest sequence number that the MANIFEST gives the file; ingested files take theirs
    /// from it.
    pub largest_sequence: Option<SequenceNumber>,
}

/// What is left of a table: its intact blocks.
pub struct TableRemains {
    source: BlockSource,
    comparator: Comparator,
    global_sequence: Option<SequenceNumber>,
    /// The properties, if they are intact.
    pub properties: Option<TableProperties>,
    /// The range tombstones, as they are stored.
    pub tombstones: Vec<RangeTombstone>,
    /// Where the intact data blocks lie, in the order of the file.
    blocks: Vec<BlockHandle>,
    /// Entries in these, but for those whose values are damaged.
    pub entries: u64,
    /// The keys of entries whose values lie beside the blocks, and are damaged.
    lost: HashSet<Vec<u8>>,
    /// The largest sequence number of entries and range tombstones.
    pub largest_sequence: SequenceNumber,
    /// Whether the entries of all blocks ascend.
    pub is_sorted: bool,
    /// The smallest and the largest user key, if there are entries that ascend.
    pub bounds: Option<(Vec<u8>, Vec<u8>)>,
    /// What is damaged and held entries, or may have held some.
    pub faults: Vec<BlockFault>,
    /// How many of these, the first ones, concern the table as a whole.
    pub faults_of_table: usize,
    /// What else is damaged: nothing is lost for it.
    pub harmless: Vec<Error>,
}

/// A table being looked at.
struct Survey<'a> {
    remains: TableRemains,
    settings: &'a SalvageSettings<'a>,
    checksums: Checksums,
    /// What may still be done to find blocks.
    effort: Effort,
    meta_blocks: Vec<(String, BlockHandle)>,
    /// Blocks that an index names, with the key before the first one's entries, and the last that
    /// they may hold.
    named: Vec<(BlockHandle, Vec<u8>, Vec<u8>)>,
    /// Something that says where blocks lie is lost.
    is_incomplete: bool,
    last: Option<InternalKeyBuf>,
}

impl TableRemains {
    /// Looks at all of a table of `size` bytes.
    ///
    /// What cannot be read for a failure of the device counts as damaged, too.
    ///
    /// # Errors
    /// `IoError` if the file is gone or cannot be opened, and what [`SalvageSettings::comparator`]
    /// returns.
    pub fn survey(
        file: Arc<dyn RandomAccessFile>,
        size: u64,
        settings: &SalvageSettings<'_>,
    ) -> Result<Self> {
        let path = file.path().to_path_buf();
        Survey::begin(file, size, settings)?.run().map_err(|error| error.at(path))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// The file's size in bytes.
    pub fn size(&self) -> u64 {
        self.source.file_size
    }

    /// Whether checksums protect what was read of it.
    pub fn has_checksums(&self) -> bool {
        self.source.footer.checksum != ChecksumType::None
    }

    /// Whether the table was ingested: all of its entries have one sequence number, which is not in
    /// the file.
    pub fn is_ingested(&self) -> bool {
        self.global_sequence.is_some()
    }

    /// Where the properties are lost, nothing here says that the table was ingested. Its entries
    /// are as new as the MANIFEST says that all of them are, if they have no sequence numbers of
    /// their own.
    pub fn date(&mut self, sequence: SequenceNumber) {
        if self.properties.is_some() || self.largest_sequence > 0 || sequence == 0 {
            return;
        }
        self.global_sequence = Some(sequence);
        self.largest_sequence = sequence;
        self.date_lost(sequence);
        self.tombstones.iter_mut().for_each(|tombstone| tombstone.sequence = sequence);
    }

    /// The intact entries, from the first block to the last.
    pub fn entries(self: &Arc<Self>) -> RemainingEntries {
        RemainingEntries::new(self.clone())
    }

    fn read_data(&self, handle: BlockHandle) -> Result<BlockIter> {
        let block = self.source.read_block(handle, true, true)?;
        Ok(BlockIter::new(block, self.comparator.clone(), self.global_sequence))
    }
}

impl<'a> Survey<'a> {
    /// Step 1.
    fn begin(
        file: Arc<dyn RandomAccessFile>,
        size: u64,
        settings: &'a SalvageSettings<'a>,
    ) -> Result<Self> {
        let path = file.path().to_path_buf();
        let tail = read_tail(&*file, size);
        let (checksums, footer, lost) = match tail {
            Ok((footer, _)) => (Checksums::Known(footer), footer, None),
            Err(error) => (Checksums::Unknown, scan::no_footer(), Some(error.at(path))),
        };
        let source = BlockSource {
            file,
            file_size: size,
            footer,
            cache: None,
            second_tier: None,
            cache_id: 0,
            priority: Priority::Low,
            dictionary: None,
            guide: GuideRoom::None,
            sums: None,
            records_end: None,
            tail: Vec::new(),
        };
        let remains = TableRemains {
            source,
            comparator: Comparator::Bytewise,
            global_sequence: None,
            properties: None,
            tombstones: Vec::new(),
            blocks: Vec::new(),
            entries: 0,
            lost: HashSet::new(),
            largest_sequence: 0,
            is_sorted: true,
            bounds: None,
            faults: Vec::new(),
            faults_of_table: 0,
            harmless: lost.into_iter().collect(),
        };
        let mut survey = Self {
            is_incomplete: !remains.harmless.is_empty(),
            remains,
            settings,
            checksums,
            effort: Effort::new(),
            meta_blocks: Vec::new(),
            named: Vec::new(),
            last: None,
        };
        if !survey.is_incomplete {
            match read_metaindex(&survey.remains.source, true) {
                Ok(_) if survey.footer_hides_checksums() => {
                    let error = Error::corruption(
                        "the footer says that there are no checksums, but blocks have them",
                    );
                    survey.note_incomplete(error.at(survey.remains.path()));
                    survey.checksums = Checksums::Unknown;
                }
                Ok(meta_blocks) => survey.meta_blocks = meta_blocks,
                Err(error) => survey.note_incomplete(error),
            }
        }
        Ok(survey)
    }

    /// Where there are none, 0 is in their place, and from format version 6 on what depends on the
    /// block's. A footer with a flipped bit would have damaged blocks believed.
    fn footer_hides_checksums(&self) -> bool {
        let source = &self.remains.source;
        let BlockHandle { offset, size } = source.footer.metaindex;
        let mut stored = [0; 4];
        let at = offset + size + 1;
        let is_read =
            read_until_end(&*source.file, at, &mut stored).is_ok_and(|read| read == stored.len());
        let is_none = source.footer.checksum == ChecksumType::None;
        is_none && is_read && stored != source.footer.checksum_of(&[], 0, offset).to_le_bytes()
    }

    fn note_incomplete(&mut self, error: Error) {
        self.is_incomplete = true;
        self.remains.harmless.push(error);
    }

    fn run(mut self) -> Result<TableRemains> {
        let mut found = Vec::new();
        if self.is_incomplete {
            // Where nothing tells the meta blocks from the others, all blocks are needed first.
            let all = 0..self.remains.source.file_size;
            self.find(all.clone(), &mut found)?;
            if found.is_empty() && matches!(self.checksums, Checksums::Known(_)) {
                // The footer may name another kind of checksum than is right: older ones have no
                // checksum themselves.
                self.checksums = Checksums::Unknown;
                self.find(all, &mut found)?;
            }
            if let Some(handle) = contents::find_metaindex(&self.remains.source, &found) {
                self.remains.source.footer.metaindex = handle;
                match read_metaindex(&self.remains.source, true) {
                    Ok(meta_blocks) => self.meta_blocks = meta_blocks,
                    Err(error) => self.note_incomplete(error),
                }
            }
        }
        self.read_meta_blocks(&found)?;
        if self.read_index()? {
            self.read_named_blocks()?;
        }
        if self.is_incomplete {
            if found.is_empty() {
                for gap in self.gaps() {
                    self.find(gap, &mut found)?;
                }
            }
            self.take_found(&found)?;
        }
        Ok(self.finish())
    }

    fn meta_block(&self, name: &str) -> Option<BlockHandle> {
        self.meta_blocks.iter().find(|(other, _)| other == name).map(|&(_, handle)| handle)
    }

    /// Properties, dictionary, range tombstones.
    fn read_meta_blocks(&mut self, found: &[BlockHandle]) -> Result<()> {
        let properties = match properties_handle(&self.meta_blocks) {
            Some(handle) => read_properties(&self.remains.source, handle, true),
            // An intact metaindex does not list any: LevelDB's tables have none.
            None if !self.meta_blocks.is_empty() => Ok(TableProperties::default()),
            None => contents::find_properties(&self.remains.source, found)
                .ok_or_else(|| Error::corruption("the table's properties are lost")),
        };
        match properties {
            Ok(properties) => self.remains.properties = Some(properties),
            Err(error) => self.note_incomplete(error.at(self.remains.path())),
        }
        self.remains.tell_records();
        self.remains.comparator = (self.settings.comparator)(self.remains.properties.as_ref())?;
        self.tell_sequence();
        if let Some(handle) = self.meta_block(meta_name::DICTIONARY) {
            match self.remains.source.read_raw(handle, true) {
                Ok(bytes) => {
                    self.remains.source.dictionary = Some(DecompressionDictionary::new(bytes))
                }
                Err(error) => self.remains.harmless.push(error.context("compression dictionary")),
            }
        }
        if let Some(handle) = self.meta_block(meta_name::RANGE_DELETIONS) {
            let sequence = self.remains.global_sequence;
            match read_range_tombstones(&self.remains.source, handle, sequence, true) {
                Ok(tombstones) => self.remains.tombstones = tombstones,
                Err(error) => self.fault_of_table(
                    error.context("range deletions are lost: what they hid may come back"),
                ),
            }
        }
        Ok(())
    }

    /// The sequence number that all entries have, if the table was ingested. Nothing protects the
    /// one that is stored; that of the MANIFEST has a checksum.
    fn tell_sequence(&mut self) {
        let Some(properties) = &self.remains.properties else { return };
        let largest = self.settings.largest_sequence;
        let error = match properties.global_sequence(largest) {
            Ok(sequence) => return self.remains.global_sequence = sequence,
            Err(error) => error.at(self.remains.path()),
        };
        match largest.filter(|_| properties.is_external()) {
            Some(largest) => {
                self.remains.global_sequence = (largest != 0).then_some(largest);
                self.remains.harmless.push(error.context("the MANIFEST's sequence number is used"));
            }
            None => {
                self.fault_of_table(error.context(
                    "the age of the entries is unknown; older versions may take their place",
                ))
            }
        }
    }

    fn fault(&mut self, error: Error, key_range: Option<(Vec<u8>, Vec<u8>)>) {
        let error = error.at(self.remains.source.path());
        self.remains.faults.push(BlockFault { error, key_range });
    }

    fn fault_of_table(&mut self, error: Error) {
        let error = error.at(self.remains.source.path());
        self.remains
            .faults
            .insert(self.remains.faults_of_table, BlockFault { error, key_range: None });
        self.remains.faults_of_table += 1;
    }

    /// Step 2: what the index names; `false` if there is none.
    fn read_index(&mut self) -> Result<bool> {
        let footer = self.remains.source.footer;
        let handle = self.meta_block(meta_name::INDEX).or(footer.index);
        let (Some(handle), Some(properties)) = (handle, &self.remains.properties) else {
            self.is_incomplete = true;
            return Ok(false);
        };
        let flavor =
            properties.index_type().and_then(|kind| Ok((kind, properties.index_flavor(kind)?)));
        let (kind, flavor) = match flavor {
            Ok(known) => known,
            Err(error) => {
                self.note_incomplete(error.at(self.remains.path()));
                return Ok(false);
            }
        };
        let decode = |source: &BlockSource, comparator: &Comparator, handle| {
            let block = source.read_block(handle, true, false)?;
            IndexBlock::decode(&block, flavor, comparator, source.file_size)
                .map_err(|error| source.locate(error, handle))
        };
        let top = decode(&self.remains.source, &self.remains.comparator, handle);
        let top = match top {
            Ok(top) => top,
            Err(error) => {
                self.note_incomplete(error.context("index"));
                return Ok(false);
            }
        };
        if kind != IndexType::TwoLevel {
            self.name_blocks(&top, Vec::new());
            return Ok(true);
        }
        let mut lower = Vec::new();
        for at in 0..top.len() {
            let handle = top.handle(at);
            match decode(&self.remains.source, &self.remains.comparator, handle) {
                Ok(partition) => self.name_blocks(&partition, std::mem::take(&mut lower)),
                Err(error) => self.note_incomplete(error.context("index partition")),
            }
            lower = top.user_key(at);
        }
        Ok(true)
    }

    fn name_blocks(&mut self, index: &IndexBlock, mut lower: Vec<u8>) {
        for at in 0..index.len() {
            let upper = index.user_key(at);
            self.named.push((
                index.handle(at),
                std::mem::replace(&mut lower, upper.clone()),
                upper,
            ));
        }
    }

    fn read_named_blocks(&mut self) -> Result<()> {
        let mut named = std::mem::take(&mut self.named);
        named.sort_by_key(|(handle, ..)| handle.offset);
        let mut in_a_row = 0;
        for (handle, lower, upper) in &named {
            let taken = self.take_block(*handle);
            let faults = &mut self.remains.faults;
            let before = faults.last_mut().and_then(|fault| fault.key_range.as_mut());
            match (taken, before) {
                (Ok(()), _) => {
                    self.tell_row(in_a_row);
                    in_a_row = 0;
                }
                (Err(_), Some(before)) if in_a_row >= TOLD_IN_A_ROW && before.1 == *lower => {
                    before.1.clone_from(upper);
                    in_a_row += 1;
                }
                (Err(error), _) => {
                    if in_a_row >= TOLD_IN_A_ROW {
                        // Something is lost between: this one begins a row.
                        self.tell_row(in_a_row);
                        in_a_row = 0;
                    }
                    self.fault(
                        error.at_offset(handle.offset),
                        Some((lower.clone(), upper.clone())),
                    );
                    in_a_row += 1;
                }
            }
        }
        self.tell_row(in_a_row);
        self.named = named;
        Ok(())
    }

    /// Says of the last fault how many it stands for.
    fn tell_row(&mut self, in_a_row: usize) {
        let (faults, more) = (&mut self.remains.faults, in_a_row.saturating_sub(TOLD_IN_A_ROW));
        if let Some(last) = faults.last_mut().filter(|_| more > 0) {
            let what = format!("the first of {} damaged blocks in a row", more + 1);
            last.error = last.error.clone().context(what);
        }
    }

    /// Reads an intact data block to its end before it counts.
    fn take_block(&mut self, handle: BlockHandle) -> Result<()> {
        let mut iter = self.remains.read_data(handle)?;
        iter.seek_to_first();
        let (mut entries, mut largest, mut is_sorted) = (0, 0, true);
        let mut last = self.last.clone();
        let mut first = None;
        let mut lost = LostValues::default();
        while iter.valid() {
            let key = iter.key();
            is_sorted &= last.as_ref().is_none_or(|last| self.is_before(last.as_key(), key));
            entries += u64::from(!lost.takes(&self.remains, (&iter, handle), last.as_ref()));
            largest = largest.max(key.sequence());
            first.get_or_insert_with(|| key.user_key().to_vec());
            match &mut last {
                Some(last) => last.set_from(key),
                last => *last = Some(key.to_buf()),
            }
            iter.next();
        }
        iter.status()?;
        self.last = last;
        let remains = &mut self.remains;
        lost.tell(&mut remains.faults, &mut remains.lost);
        remains.blocks.push(handle);
        remains.entries += entries;
        remains.largest_sequence = remains.largest_sequence.max(largest);
        remains.is_sorted &= is_sorted;
        if let (Some(first), Some(last)) = (first, &self.last) {
            let upper = last.as_key().user_key().to_vec();
            remains.bounds = Some((remains.bounds.take().map_or(first, |(lower, _)| lower), upper));
        }
        Ok(())
    }

    fn is_before(&self, a: InternalKey<'_>, b: InternalKey<'_>) -> bool {
        let order = self.remains.comparator.compare(a.user_key(), b.user_key());
        order.is_lt() || order.is_eq() && a.packed() > b.packed()
    }

    fn finish(mut self) -> TableRemains {
        let newest = self.remains.tombstones.iter().map(|tombstone| tombstone.sequence).max();
        self.remains.largest_sequence = self.remains.largest_sequence.max(newest.unwrap_or(0));
        let is_whole = self.remains.properties.as_ref().is_some_and(|properties| {
            let counted = self.remains.entries + self.remains.tombstones.len() as u64;
            properties.num_entries == counted
        });
        if self.effort.is_spent && !is_whole {
            let what = "blocks may be left over: too many places look like the start of one to try them all";
            self.fault_of_table(Error::corruption(what));
        }
        if self.is_incomplete && !is_whole && self.remains.faults.is_empty() {
            let error = self.remains.harmless.first().cloned();
            let error = error.unwrap_or_else(|| Error::corruption("the table's index is lost"));
            let context =
                "parts of the table cannot be found; it is unknown whether they held entries";
            self.fault_of_table(error.context(context));
        }
        self.remains
    }
}
