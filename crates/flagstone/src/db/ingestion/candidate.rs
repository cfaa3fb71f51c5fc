//! A table as it is before it becomes part of the database: what it holds, and whether it may.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::file_name::FileKind;
use crate::base::{
    Error, FileChecksum, FileNumber, InternalIterator, InternalKeyBuf, MAX_SEQUENCE_NUMBER,
    RangeTombstone, Result, SequenceNumber, Temperature, UniqueId, ValueType, timestamp,
};
use crate::blob::visit_references;
use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::ingestion::ExternalFiles;
use crate::db::settings::no_merge_operator;
use crate::env::{IoMode, RandomAccessFile, directory_of, hint_temperature, read_for_checksum};
use crate::manifest::{EntryStats, FileMetadata};
use crate::sst::{
    ExternalForm, IterSettings, Table, TableProperties, TableReadSettings, read_table_properties,
};

/// Who wrote a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::db) enum Origin {
    /// A writer outside of a database. All entries have sequence number 0, and get another one.
    External,
    /// A database. The entries keep their sequence numbers, from one to another.
    Database { smallest: SequenceNumber, largest: SequenceNumber },
}

/// A table that is to become part of a family.
pub(in crate::db) struct Candidate {
    pub(in crate::db) path: PathBuf,
    pub(in crate::db) size: u64,
    pub(in crate::db) origin: Origin,
    /// How many tables with other sequence numbers come before it.
    pub(in crate::db) step: u64,
    /// The smallest key as stored, range deletions included.
    pub(in crate::db) smallest: InternalKeyBuf,
    /// The largest key as stored, range deletions included.
    pub(in crate::db) largest: InternalKeyBuf,
    /// Ranges that it deletes, ascending and disjoint.
    deleted: Vec<(Vec<u8>, Vec<u8>)>,
    stats: EntryStats,
    tail_size: u64,
    unique_id: Option<UniqueId>,
    /// What the table says of itself.
    pub(in crate::db) properties: Arc<TableProperties>,
    /// The checksum of the file as it is, if new files get one.
    pub(in crate::db) checksum: Option<FileChecksum>,
}

/// Opens and checks all files of a group.
pub(in crate::db) fn examine(inner: &DbInner, group: &ExternalFiles) -> Result<Vec<Candidate>> {
    let family = &group.family.0;
    if group.options.ingest_behind && !family.options.load().cf_allow_ingest_behind {
        let message = format!(
            "column family '{}' keeps no level for it: that takes universal compaction, and allow_ingest_behind or \
             cf_allow_ingest_behind",
            family.name
        );
        return Err(Error::invalid_argument(message).context("ingest_behind"));
    }
    if group.options.ingest_behind && group.options.allow_db_generated_files {
        let message = "tables that keep their sequence numbers cannot lie below all others";
        return Err(Error::invalid_argument(message).context("ingest_behind"));
    }
    let examined = group.files.iter().enumerate().map(|(index, path)| {
        let checksum = group.file_checksums.get(index);
        examine_one(inner, group, path, checksum).map_err(|error| error.at(path))
    });
    let tables = examined.collect::<Result<Vec<_>>>()?;
    if let Some((begin, end)) = &group.atomic_replace_range {
        check_within(family, &tables, begin, end)?;
    }
    Ok(tables)
}

fn examine_one(
    inner: &DbInner,
    group: &ExternalFiles,
    path: &Path,
    given: Option<&FileChecksum>,
) -> Result<Candidate> {
    let (family, options) = (&group.family.0, &group.options);
    check_place(family, path)?;
    hint_temperature(&*inner.context.env.fs, path, group.file_temperature);
    let file = inner.context.env.fs.open_random_access(path, IoMode::Buffered)?;
    let size = file.size()?;
    let checksum = checksum_of(inner, &*file, size, (given, options.verify_file_checksum))?;
    let properties = read_table_properties(file.clone(), size)?;
    let is_external = check_properties(group, &properties)?;
    let settings = TableReadSettings {
        comparator: family.comparator().clone(),
        use_filter: false,
        ..TableReadSettings::default()
    };
    let table = Table::open(file, size, settings)?;
    let origin = if is_external { Origin::External } else { own_sequences(&table)? };
    if options.verify_checksums_before_ingest {
        verify(&table)?;
    }
    Ok(Candidate { checksum, ..Candidate::of(family, path, size, &table, origin)? })
}

/// A table of the database must not be ingested from under it: its name might be removed.
fn check_place(family: &Family, path: &Path) -> Result<()> {
    let directory = directory_of(path);
    let is_table = path
        .file_name()
        .and_then(|name| FileKind::parse(name.to_str()?))
        .is_some_and(|kind| matches!(kind, FileKind::Table(_)));
    if is_table && family.paths.directories().iter().any(|own| **own == *directory) {
        return Err(Error::invalid_argument("the file lies among the database's own"));
    }
    Ok(())
}

/// The checksum that the MANIFEST gets, if new files get one. What the caller gave is compared, or
/// taken on trust.
fn checksum_of(
    inner: &DbInner,
    file: &dyn RandomAccessFile,
    size: u64,
    (given, is_verified): (Option<&FileChecksum>, bool),
) -> Result<Option<FileChecksum>> {
    let known = inner.context.checksums();
    if let Some(given) = given.filter(|_| is_verified) {
        given.check(&read_for_checksum(file, size, known.of_function(&given.function)?)?)?;
    }
    match (known.function(), given) {
        (Some(function), Some(given)) if given.function == function => Ok(Some(given.clone())),
        _ => {
            known.for_new_file()?.map(|running| read_for_checksum(file, size, running)).transpose()
        }
    }
}

/// Whether the table was written outside of a database.
fn check_properties(group: &ExternalFiles, properties: &TableProperties) -> Result<bool> {
    let (family, options) = (&group.family.0, &group.options);
    let expected = family.comparator().name();
    if !properties.comparator.is_empty() && properties.comparator != expected {
        return Err(Error::invalid_argument(format!(
            "the table is ordered by comparator '{}', and column family '{}' by '{expected}'",
            properties.comparator, family.name
        )));
    }
    let size = family.order.timestamp_size();
    if let Some(given) = properties.timestamp_size().filter(|given| *given != size) {
        return Err(Error::invalid_argument(format!(
            "the table's keys end in timestamps of {given} bytes, and those of column family '{}' of {size}",
            family.name
        )));
    }
    if properties.num_merge_operands > 0 && family.options.load().merge_operator.is_none() {
        return Err(no_merge_operator(&family.name).context("the table has merge operands"));
    }
    let form = match properties.external_form()? {
        Some(form) => form,
        None if options.allow_db_generated_files => return Ok(false),
        None => {
            return Err(Error::invalid_argument(
                "a database wrote this table, which allow_db_generated_files would permit",
            ));
        }
    };
    if let Some(id) = properties.column_family.filter(|id| *id != family.id.0)
        && !options.allow_db_generated_files
    {
        return Err(Error::invalid_argument(format!(
            "the table was written for the column family with id {id}, and '{}' has id {}",
            family.name, family.id
        )));
    }
    match form {
        ExternalForm::Fixed if options.allow_global_seqno && !options.ingest_behind => {
            Err(Error::invalid_argument(
                "the table has no place for a sequence number, which allow_global_seqno=false would do without",
            ))
        }
        ExternalForm::Numbered(number) if number != 0 && !options.write_global_seqno => {
            Err(Error::invalid_argument(format!(
                "the table has sequence number {number} of an earlier ingestion, which write_global_seqno would replace"
            )))
        }
        _ => Ok(true),
    }
}

fn verify(table: &Table) -> Result<()> {
    let mut first = None;
    table.verify(&mut |fault| {
        first.get_or_insert(fault.error);
    });
    first.map_or(Ok(()), Err)
}

/// Reads all of a table that a database wrote.
fn own_sequences(table: &Arc<Table>) -> Result<Origin> {
    let (mut smallest, mut largest) = (MAX_SEQUENCE_NUMBER, 0);
    let mut note = |sequence: SequenceNumber| {
        (smallest, largest) = (smallest.min(sequence), largest.max(sequence));
    };
    let mut iter = table.iter(IterSettings::default());
    iter.seek_to_first();
    while iter.valid() {
        let mut refers = false;
        visit_references(iter.key().value_type(), iter.value(), |_| {
            refers = true;
            Ok(())
        })?;
        if refers {
            return Err(Error::not_supported(
                "the table refers to blob files of the database that wrote it",
            ));
        }
        note(iter.key().sequence());
        iter.next();
    }
    iter.status()?;
    table.stored_range_deletions()?.iter().for_each(|deletion| note(deletion.sequence));
    Ok(Origin::Database { smallest: smallest.min(largest), largest })
}

fn check_within(family: &Family, tables: &[Candidate], begin: &[u8], end: &[u8]) -> Result<()> {
    let user = family.comparator();
    if user.compare(begin, end).is_ge() {
        let (begin, end) = (begin.escape_ascii(), end.escape_ascii());
        let message = format!("the range to replace, '{begin}' to '{end}', is empty");
        return Err(Error::invalid_argument(message));
    }
    let is_outside = |table: &&Candidate| {
        let largest = user.compare(table.largest.user_key(), end);
        user.compare(table.smallest.user_key(), begin).is_lt()
            || largest.is_gt()
            || largest.is_eq() && !table.ends_before_largest()
    };
    let Some(table) = tables.iter().find(is_outside) else { return Ok(()) };
    let message = format!(
        "the table has keys from '{}' to '{}', outside of the range to replace",
        table.smallest.user_key().escape_ascii(),
        table.largest.user_key().escape_ascii()
    );
    Err(Error::invalid_argument(message).at(&table.path))
}

/// Orders tables by age: each gets a larger number than all before it with which it has a key in
/// common.
///
/// # Errors
/// `InvalidArgument` if tables overlap that keep the sequence numbers they have.
pub(in crate::db) fn set_steps(group: &ExternalFiles, tables: &mut [Candidate]) -> Result<()> {
    let user = group.family.0.order.keys();
    let mut by_key: Vec<&Candidate> = tables.iter().collect();
    by_key.sort_by(|a, b| user.compare(a.smallest.user_key(), b.smallest.user_key()));
    let is_disjoint = by_key
        .windows(2)
        .all(|pair| user.compare(pair[0].largest.user_key(), pair[1].smallest.user_key()).is_lt());
    if is_disjoint {
        return Ok(());
    }
    // Of two with timestamps the newer one need not have the newer timestamps.
    let keep_numbers = group.options.ingest_behind
        || !group.options.allow_global_seqno
        || group.family.0.order.timestamp_size() > 0;
    for at in 1..tables.len() {
        let (earlier, rest) = tables.split_at_mut(at);
        let table = &mut rest[0];
        let overlap = earlier.iter().filter(|earlier| {
            user.compare(earlier.smallest.user_key(), table.largest.user_key()).is_le()
                && user.compare(table.smallest.user_key(), earlier.largest.user_key()).is_le()
        });
        let Some(step) = overlap.map(|earlier| earlier.step + 1).max() else { continue };
        if keep_numbers || table.origin != Origin::External {
            let message =
                "the table overlaps one before it, and may not get a larger sequence number";
            return Err(Error::invalid_argument(message).at(&table.path));
        }
        table.step = step;
    }
    Ok(())
}

/// Whether a memtable of the family has anything in the range of the table.
pub(in crate::db) fn overlaps_memory(family: &Family, table: &Candidate) -> bool {
    let (smallest, largest) = (table.smallest.user_key(), table.largest.user_key());
    let current = family.current.load();
    current.generations().any(|mem| has_any(family, mem, smallest, largest))
}

fn has_any(family: &Family, mem: &Generation, smallest: &[u8], largest: &[u8]) -> bool {
    let user = family.order.keys();
    let size = family.order.timestamp_size();
    let mut iter = mem.iter();
    iter.seek(
        InternalKeyBuf::for_seek(&timestamp::opening(smallest, size), MAX_SEQUENCE_NUMBER).as_key(),
    );
    if iter.valid() && user.compare(iter.key().user_key(), largest).is_le() {
        return true;
    }
    mem.range_tombstones(MAX_SEQUENCE_NUMBER).iter().any(|tombstones| {
        (0..tombstones.len()).filter_map(|at| tombstones.get(at)).any(|tombstone| {
            user.compare(tombstone.start, largest).is_le()
                && user.compare(tombstone.end, smallest).is_gt()
        })
    })
}

impl Candidate {
    /// The table that lies at `path`.
    ///
    /// # Errors
    /// `InvalidArgument` if it has no entries; `Corruption` or `IoError`.
    pub(in crate::db) fn of(
        family: &Family,
        path: &Path,
        size: u64,
        table: &Arc<Table>,
        origin: Origin,
    ) -> Result<Self> {
        let deletions = table.stored_range_deletions()?;
        let mut iter = table.iter(IterSettings::default());
        iter.seek_to_first();
        let mut smallest = iter.valid().then(|| iter.key().to_buf());
        // The next seek forgets an error of this one.
        iter.status()?;
        iter.seek_to_last();
        let mut largest = iter.valid().then(|| iter.key().to_buf());
        iter.status()?;
        let size_of_stamp = family.order.timestamp_size();
        let ends = [&smallest, &largest].into_iter().flatten().map(InternalKeyBuf::user_key);
        let ranges = deletions.iter().flat_map(|one| [&one.start[..], &one.end[..]]);
        if let Some(key) = ends.chain(ranges).find(|key| key.len() < size_of_stamp) {
            let told = timestamp::is_too_short(key, size_of_stamp);
            return Err(Error::invalid_argument(told.message()));
        }
        for deletion in &deletions {
            widen(family, deletion, &mut smallest, &mut largest);
        }
        let (Some(smallest), Some(largest)) = (smallest, largest) else {
            return Err(Error::invalid_argument("the table has no entries"));
        };
        let properties = table.properties();
        let fragments = table.range_tombstones();
        let deleted = (0..fragments.len()).filter_map(|at| fragments.get(at));
        Ok(Self {
            deleted: deleted.map(|range| (range.start.to_vec(), range.end.to_vec())).collect(),
            path: path.to_path_buf(),
            size,
            origin,
            step: 0,
            smallest,
            largest,
            stats: EntryStats::of(properties),
            tail_size: match properties.tail_start_offset {
                0 => 0,
                start => size.saturating_sub(start),
            },
            unique_id: properties.unique_id(),
            properties: Arc::new(properties.clone()),
            checksum: None,
        })
    }

    /// Its range deletions, if its entries get this sequence number.
    pub(in crate::db) fn deletions(&self, sequence: SequenceNumber) -> Vec<RangeTombstone> {
        let deletion = |(start, end): &(Vec<u8>, Vec<u8>)| RangeTombstone {
            start: start.clone(),
            end: end.clone(),
            sequence,
        };
        self.deleted.iter().map(deletion).collect()
    }

    /// Whether no entry has the largest key: a range deletion ends there.
    fn ends_before_largest(&self) -> bool {
        self.largest.as_key().sequence() == MAX_SEQUENCE_NUMBER
    }

    /// What the MANIFEST says of it: under this number, with this temperature, and with this
    /// sequence number unless its entries have their own.
    pub(in crate::db) fn metadata(
        &self,
        (number, temperature): (FileNumber, Temperature),
        sequence: SequenceNumber,
        now: u64,
    ) -> FileMetadata {
        let (mut smallest, mut largest) = (self.smallest.clone(), self.largest.clone());
        let (smallest_seqno, largest_seqno) = match self.origin {
            Origin::External => {
                for key in [&mut smallest, &mut largest] {
                    // Not the end of a range deletion, which no entry has.
                    let is_entry = key.as_key().sequence() < MAX_SEQUENCE_NUMBER;
                    if let Some(kind) = key.as_key().value_type().filter(|_| is_entry) {
                        key.set_version(sequence, kind);
                    }
                }
                (sequence, sequence)
            }
            Origin::Database { smallest, largest } => (smallest, largest),
        };
        let mut meta = FileMetadata {
            number,
            size: self.size,
            smallest,
            largest,
            smallest_seqno,
            largest_seqno,
            oldest_ancestor_time: now,
            file_creation_time: now,
            temperature,
            unique_id: self.unique_id,
            tail_size: self.tail_size,
            entry_stats: Some(self.stats),
            ..FileMetadata::default()
        };
        meta.set_checksum(self.checksum.clone());
        meta
    }
}

/// Widens bounds, as internal keys, by a range deletion.
fn widen(
    family: &Family,
    deletion: &RangeTombstone,
    smallest: &mut Option<InternalKeyBuf>,
    largest: &mut Option<InternalKeyBuf>,
) {
    let order = &family.order;
    let (start, end) = (&deletion.start, &deletion.end);
    let size = order.timestamp_size();
    let (start, end) = (timestamp::opening(start, size), timestamp::opening(end, size));
    let start = InternalKeyBuf::new(&start, deletion.sequence, ValueType::RangeDeletion);
    if smallest.as_ref().is_none_or(|known| order.compare(start.as_key(), known.as_key()).is_lt()) {
        *smallest = Some(start);
    }
    let end = InternalKeyBuf::new(&end, MAX_SEQUENCE_NUMBER, ValueType::RangeDeletion);
    if largest.as_ref().is_none_or(|known| order.compare(end.as_key(), known.as_key()).is_gt()) {
        *largest = Some(end);
    }
}
