//! What the sound files of a database hold, and where; what must hence come out of damaged ones.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use flagstone::base::file_name::FileKind;
use flagstone::base::{
    Comparator, FileNumber, FragmentedRangeTombstones, InternalKeyBuf, MAX_SEQUENCE_NUMBER,
    RangeTombstone, ValueType,
};
use flagstone::batch::{BatchView, Operation};
use flagstone::blob::{BlobIndex, RECORD_HEADER_SIZE};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem, IoMode, RandomAccessFile};
use flagstone::manifest::FileMetadata;
use flagstone::sst::{Footer, SalvageSettings, TableRemains};
use flagstone::wal::{Event, Reader};

use super::damage::Damage;
use super::{Bytes, Files, SOURCE, file_name};

/// Bytes of a file.
pub type Place = (String, Range<u64>);

/// One write that the sound files hold.
#[derive(Debug, Clone)]
pub struct Version {
    pub sequence: u64,
    pub kind: Kind,
    pub places: Vec<Place>,
    /// If one of these is intact, too, it is found.
    pub found_by: Option<[Place; 2]>,
    /// It was ingested: its sequence number is not beside it.
    is_ingested: bool,
    /// It lies in a WAL that its family has flushed: tables have it, or what became of it.
    is_flushed: bool,
}

#[derive(Debug, Clone)]
pub enum Kind {
    Deletion,
    Value(Bytes),
    /// Appended to what is older.
    Operand(Bytes),
}

/// Family and key.
pub type Key = (String, Bytes);

/// A range deletion in a table.
#[derive(Debug)]
struct RangeDeletion {
    family: String,
    tombstone: RangeTombstone,
    /// Where the MANIFEST says that the table ends: beyond that it deletes nothing. `None` for one
    /// in a WAL.
    bounds: Option<(InternalKeyBuf, InternalKeyBuf)>,
    version: Version,
}

impl RangeDeletion {
    fn covers(&self, key: &Key, version: &Version) -> bool {
        let Some((smallest, largest)) = &self.bounds else {
            return self.seems_to_cover(key, version);
        };
        let one =
            FragmentedRangeTombstones::new(&Comparator::Bytewise, vec![self.tombstone.clone()]);
        let truncated = Arc::new(one).truncated(smallest.as_key(), largest.as_key());
        let internal = InternalKeyBuf::new(&key.1, version.sequence, ValueType::Value);
        self.family == key.0
            && truncated.covering_sequence(internal.as_key(), MAX_SEQUENCE_NUMBER)
                > version.sequence
    }

    /// The same for who does not know the table's bounds.
    fn seems_to_cover(&self, key: &Key, version: &Version) -> bool {
        self.family == key.0
            && self.tombstone.start <= key.1
            && key.1 < self.tombstone.end
            && version.sequence < self.tombstone.sequence
    }
}

/// Everything that the sound files hold, newest first for each key.
#[derive(Debug, Default)]
pub struct Holdings {
    pub versions: BTreeMap<Key, Vec<Version>>,
    ranges: Vec<RangeDeletion>,
    /// Footers without which a block cannot be told from others unless its neighbour is intact too:
    /// from format version 6 on they have a number that enters all checksums.
    footers: Vec<Place>,
    /// Blocks of tables are only found one behind the other, unless the index is intact.
    is_searched: bool,
    has_operands: bool,
    /// By family: what is not newer may be in a WAL and in tables, where operands have been merged.
    flushed_until: BTreeMap<String, u64>,
}

/// The home of what is of no family any longer.
const DROPPED: &str = "(dropped)";

/// What the MANIFEST says of tables, by their names: the family, and the rest.
pub type Recorded = BTreeMap<String, (u32, FileMetadata)>;

/// By family, the first WAL that has something of it that tables have not.
fn log_numbers(fs: &MemoryFileSystem) -> BTreeMap<u32, FileNumber> {
    let manifest = flagstone::manifest::read_current(fs, Path::new(SOURCE)).expect("a MANIFEST");
    let edits = flagstone::manifest::dump(fs, &manifest).expect("readable");
    let edits = edits.map(|(_, edit)| edit.expect("sound"));
    edits.filter_map(|edit| edit.log_number.map(|number| (edit.family.0, number))).collect()
}

pub fn recorded_tables(fs: &MemoryFileSystem) -> Recorded {
    let manifest = flagstone::manifest::read_current(fs, Path::new(SOURCE)).expect("a MANIFEST");
    let edits = flagstone::manifest::dump(fs, &manifest).expect("readable");
    edits
        .flat_map(|(_, edit)| {
            let edit = edit.expect("sound");
            edit.new_files.into_iter().map(move |(_, file)| (edit.family.0, file))
        })
        .map(|(family, file)| (format!("{}.sst", file.number), (family, file)))
        .collect()
}

impl Holdings {
    /// What these files hold; with `is_searched` blocks of tables are only found one behind the
    /// other, unless the index is intact.
    pub fn of(fs: &MemoryFileSystem, files: &Files, is_searched: bool) -> Self {
        let mut holdings = Self { is_searched, ..Self::default() };
        let names: BTreeMap<u32, String> = flagstone::manifest::list_column_families(
            &Env::os().with_fs(Arc::new(fs.clone())),
            Path::new(SOURCE),
        )
        .expect("families")
        .into_iter()
        .map(|family| (family.id.0, family.name))
        .collect();
        let recorded = recorded_tables(fs);
        let log_numbers = log_numbers(fs);
        for (name, bytes) in files {
            let open = || {
                fs.open_random_access(&Path::new(SOURCE).join(name), IoMode::Buffered)
                    .expect("a file")
            };
            match FileKind::parse(file_name(name)) {
                Some(FileKind::Table(_)) => {
                    let (family, meta) = &recorded[file_name(name)];
                    let size = bytes.len() as u64;
                    holdings.add_table(name, open(), size, files, (&names[family], meta));
                }
                Some(FileKind::Wal(number)) => {
                    let is_flushed =
                        |id: u32| log_numbers.get(&id).is_some_and(|first| number < *first);
                    holdings.add_wal(name, (open(), number), &names, &is_flushed, files);
                }
                _ => {}
            }
        }
        for versions in holdings.versions.values_mut() {
            versions.sort_by_key(|version| std::cmp::Reverse(version.sequence));
        }
        holdings
    }

    fn add(
        &mut self,
        family: &str,
        key: &[u8],
        sequence: u64,
        value: (ValueType, &[u8]),
        (place, found_by, is_ingested, is_flushed): (Place, Option<[Place; 2]>, bool, bool),
        files: &Files,
    ) {
        let mut places = vec![place];
        let kind = match value.0 {
            ValueType::Deletion => Kind::Deletion,
            ValueType::Value => Kind::Value(value.1.to_vec()),
            ValueType::Merge => {
                self.has_operands = true;
                Kind::Operand(value.1.to_vec())
            }
            ValueType::BlobIndex => {
                let index = BlobIndex::decode(value.1).expect("an index");
                let file = format!("{}.blob", index.file);
                // It is gone where a WAL is kept of what was flushed and moved on long ago.
                let Some(file) = files.keys().find(|name| file_name(name) == file).cloned() else {
                    return;
                };
                let start = index.offset - (RECORD_HEADER_SIZE + key.len()) as u64;
                let end = index.offset + index.size;
                let stored = &files[&file][index.offset as usize..end as usize];
                let kind =
                    flagstone::base::compression::CompressionType::from_byte(index.compression)
                        .expect("known");
                places.push((file, start..end));
                let value = flagstone::base::compression::decompress(kind, stored, None, 1 << 30);
                Kind::Value(value.expect("sound"))
            }
            other => panic!("{other:?} is not written here"),
        };
        let version = Version { sequence, kind, places, found_by, is_ingested, is_flushed };
        self.versions.entry((family.to_string(), key.to_vec())).or_default().push(version);
    }

    fn add_table(
        &mut self,
        name: &str,
        file: Arc<dyn RandomAccessFile>,
        size: u64,
        files: &Files,
        (family, meta): (&str, &FileMetadata),
    ) {
        let comparator = |_: Option<&_>| Ok(Comparator::Bytewise);
        let settings =
            SalvageSettings { comparator: &comparator, largest_sequence: Some(meta.largest_seqno) };
        let table = Arc::new(TableRemains::survey(file, size, &settings).expect("a table"));
        assert!(table.faults.is_empty() && table.harmless.is_empty(), "{name}: {:?}", table.faults);
        if table.properties.as_ref().is_some_and(|properties| properties.format_version >= 6) {
            self.footers.push((name.to_string(), size - Footer::SIZE_MAX as u64..size));
        }
        // Where the range deletions lie is not told; the tail of the file is where, with the index.
        let tail =
            (name.to_string(), table.properties.as_ref().expect("properties").data_size..size);
        let flushed = self.flushed_until.entry(family.to_string()).or_default();
        // What is at the bottom of a tree has lost its own number.
        let noted = table.properties.as_ref().expect("properties").flushed_until();
        let is_ingested = table.is_ingested();
        let own = if is_ingested { 0 } else { table.largest_sequence };
        *flushed = noted.unwrap_or(own).max(*flushed);
        let mut entries = table.entries();
        while entries.advance().expect("sound") {
            let block = entries.block().expect("a block");
            let (key, value) = entries.entry();
            let kind = key.value_type().expect("a kind");
            let place = (name.to_string(), block.offset..block.end());
            let found_by = match (table.has_checksums(), self.is_searched) {
                // Nothing but the index tells where blocks are.
                (false, _) => Some([tail.clone(), tail.clone()]),
                (true, true) => Some([tail.clone(), (name.to_string(), 0..block.offset)]),
                (true, false) => None,
            };
            let whence = (place, found_by, is_ingested, false);
            self.add(family, key.user_key(), key.sequence(), (kind, value), whence, files);
        }
        for tombstone in &table.tombstones {
            let version = deletion(tombstone.sequence, tail.clone());
            assert!(!is_ingested, "{name}: no range deletions were ingested");
            let bounds = Some((meta.smallest.clone(), meta.largest.clone()));
            self.ranges.push(RangeDeletion {
                family: family.to_string(),
                tombstone: tombstone.clone(),
                bounds,
                version,
            });
        }
    }

    fn add_wal(
        &mut self,
        name: &str,
        (file, number): (Arc<dyn RandomAccessFile>, FileNumber),
        names: &BTreeMap<u32, String>,
        is_flushed: &dyn Fn(u32) -> bool,
        files: &Files,
    ) {
        let mut reader = Reader::new(file, number);
        loop {
            let record = match reader.next_event().expect("readable") {
                Event::Record(record) => record.to_vec(),
                Event::End => return,
                // What is left of its earlier life.
                Event::Damage(_) => {
                    while reader.next_event().expect("readable") != Event::End {
                        assert!(reader.record().is_empty(), "{name}: a record behind the end");
                    }
                    return;
                }
            };
            let place = || (name.to_string(), reader.record_offset()..reader.good_until());
            let batch = BatchView::parse(&record).expect("a batch");
            let home = |id: u32| names.get(&id).map_or(DROPPED, String::as_str);
            let mut sequence = batch.sequence();
            for operation in batch.iter() {
                let (cf, key, value) = match operation.expect("an operation") {
                    Operation::Put { cf, key, value } => (cf, key, (ValueType::Value, value)),
                    Operation::BlobIndex { cf, key, index } => {
                        (cf, key, (ValueType::BlobIndex, index))
                    }
                    Operation::Delete { cf, key } => (cf, key, (ValueType::Deletion, &b""[..])),
                    Operation::Merge { cf, key, operand } => (cf, key, (ValueType::Merge, operand)),
                    Operation::DeleteRange { cf, begin, end } => {
                        let tombstone =
                            RangeTombstone { start: begin.to_vec(), end: end.to_vec(), sequence };
                        let family = home(cf.0).to_string();
                        let version =
                            Version { is_flushed: is_flushed(cf.0), ..deletion(sequence, place()) };
                        self.ranges.push(RangeDeletion {
                            family,
                            tombstone,
                            bounds: None,
                            version,
                        });
                        sequence += 1;
                        continue;
                    }
                    Operation::LogData(_) | Operation::Noop => continue,
                    other => panic!("{other:?} is not written so late"),
                };
                let whence = (place(), None, false, is_flushed(cf.0));
                self.add(home(cf.0), key, sequence, value, whence, files);
                sequence += 1;
            }
        }
    }

    /// What must come out for each key: `None` for nothing. Keys for which that is not certain are
    /// not in it.
    pub fn expected(&self, damage: &Damage) -> BTreeMap<Key, Option<Bytes>> {
        let mut expected = BTreeMap::new();
        let is_manifest_touched = damage.touches_file("MANIFEST") || damage.touches_file("CURRENT");
        // What was ingested has its sequence number from the MANIFEST, or from the table's own
        // properties.
        let is_undated = |version: &Version| is_manifest_touched && version.is_ingested;
        for ((family, key), versions) in
            self.versions.iter().filter(|((family, _), _)| family != DROPPED)
        {
            let key = (family.clone(), key.clone());
            let covers = |range: &&RangeDeletion| {
                versions.iter().any(|version| range.seems_to_cover(&key, version))
            };
            // Of a tail that was touched it is not known whether its range deletions were; of a
            // record in a WAL it is.
            let is_known = |range: &RangeDeletion| {
                !range.version.is_flushed
                    && (range.bounds.is_none() || damage.spares(&range.version))
            };
            // Where no MANIFEST tells whether its table counts, it deletes of what has lost its
            // sequence number only what lies in older tables.
            let is_doubtful = |range: &RangeDeletion| {
                let table = file_name(&range.version.places[0].0);
                let is_newer = |version: &Version| {
                    version.sequence == 0
                        && table < file_name(&version.places[0].0)
                        && range.seems_to_cover(&key, version)
                };
                is_manifest_touched && range.bounds.is_some() && versions.iter().any(is_newer)
            };
            let is_certain = self
                .ranges
                .iter()
                .filter(covers)
                .all(|range| is_known(range) && !is_doubtful(range));
            let is_hidden = |version: &Version| {
                let mut ranges = self.ranges.iter().filter(|range| damage.spares(&range.version));
                ranges.any(|range| range.covers(&key, version))
            };
            let intact =
                versions.iter().filter(|version| !is_hidden(version) && damage.spares(version));
            let lies_in = |place: &Place| {
                versions
                    .iter()
                    .any(|version| version.places.iter().any(|(file, _)| *file == place.0))
            };
            let lost_footers = self.footers.iter().filter(|place| !damage.spares_place(place));
            let is_found = !versions.iter().any(|version| damage.may_hide(version));
            if is_certain
                && is_found
                && !versions.iter().any(|version| is_undated(version) || version.is_flushed)
                && self.is_clear(&key.0, versions)
                && !lost_footers.into_iter().any(lies_in)
            {
                let value = merged(intact);
                expected.insert(key, value);
            }
        }
        expected
    }

    /// Whether no operand of a key can be there twice, in a WAL and merged in a table.
    fn is_clear(&self, family: &str, versions: &[Version]) -> bool {
        let has_operand = versions.iter().any(|version| matches!(version.kind, Kind::Operand(_)));
        let flushed = self.flushed_until.get(family).copied().unwrap_or(0);
        let is_of_flushed_log = |version: &Version| {
            version.places[0].0.ends_with(".log") && version.sequence <= flushed
        };
        !has_operand || !versions.iter().any(is_of_flushed_log)
    }

    /// Whether WALs have range deletions.
    pub fn has_ranges_in_wals(&self) -> bool {
        self.ranges.iter().any(|range| range.bounds.is_none())
    }

    /// Whether a key has operands.
    pub fn has_operand(&self, family: &str, key: &[u8]) -> bool {
        let versions = &self.versions[&(family.to_string(), key.to_vec())];
        versions.iter().any(|version| matches!(version.kind, Kind::Operand(_)))
    }

    /// Whether a value of a key consists of what was written.
    /// `may_be_dropped` says that the family may be one that had been dropped.
    pub fn explain(&self, (family, key): &Key, value: &[u8], may_be_dropped: bool) -> bool {
        let is_home = |home: &String| {
            home == family || family.starts_with("salvaged") || may_be_dropped && home == DROPPED
        };
        let homes = self.versions.iter().filter(|((home, other), _)| other == key && is_home(home));
        let written: Vec<&Bytes> = homes
            .flat_map(|(_, versions)| versions)
            .filter_map(|version| match &version.kind {
                Kind::Deletion => None,
                Kind::Value(value) | Kind::Operand(value) => Some(value),
            })
            .collect();
        if written.iter().any(|whole| **whole == value) {
            return true;
        }
        let parts = |value: &[u8]| {
            value.split(|&byte| byte == b',').map(<[u8]>::to_vec).collect::<BTreeSet<_>>()
        };
        let all: BTreeSet<Bytes> = written.into_iter().flat_map(|whole| parts(whole)).collect();
        self.has_operands && parts(value).is_subset(&all)
    }
}

fn deletion(sequence: u64, place: Place) -> Version {
    Version {
        sequence,
        kind: Kind::Deletion,
        places: vec![place],
        found_by: None,
        is_ingested: false,
        is_flushed: false,
    }
}

/// What versions, newest first, come to.
fn merged<'a>(versions: impl Iterator<Item = &'a Version>) -> Option<Bytes> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for version in versions {
        match &version.kind {
            Kind::Deletion => break,
            Kind::Operand(operand) => parts.push(operand),
            Kind::Value(value) => {
                parts.push(value);
                break;
            }
        }
    }
    parts.reverse();
    (!parts.is_empty()).then(|| parts.join(&b','))
}
