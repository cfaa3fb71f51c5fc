//! Reads cases: the words of a command, and its drawing as a tree. In a drawing
//!
//! ```text
//! L0 7:a-c:10 6:b-d:10,busy      tables as number:smallest-largest:bytes, level 0 newest first; then, each
//!                                after a comma: busy, aside (set aside, and busy), apart, marked, settled,
//!                                end (the largest key is a tombstone's end), seq=LOW-HIGH, made=SECONDS,
//!                                born=SECONDS, blob=NUMBER,
//!                                refs=NUMBER:BYTES/NUMBER:BYTES (what it refers to in blob files; implies blob=NUMBER),
//!                                other=ENTRIES (that refer to none),
//!                                path=ID, is=TEMPERATURE,
//!                                del=DELETIONS/ENTRIES/VALUE_BYTES, covers=BYTES (of deeper tables, by its range
//!                                tombstones). A key may name its sequence number: c@5.
//! running 0->1 a-c               a compaction under way; 3->4+3 if it writes to level 3, too
//! blob 4 60/100 20               a blob file with 60 of 100 bytes garbage, in 20 blobs; 1000 if that is not said
//! deleted 7 a-d@9 f-h@9          what the range tombstones of table 7 delete
//! cursor 1 f                     where the next compaction of level 1 starts
//! keys a:10 b:10                 what is written (split), or asked for (below)
//! ```

use std::collections::{BTreeSet, HashMap};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::compression::CompressionType;
use crate::base::{
    ColumnFamilyId, Comparator, FileNumber, InternalKeyBuf, InternalKeyComparator,
    MAX_SEQUENCE_NUMBER, RangeTombstone, Temperature, ValueType,
};
use crate::blob::BlobGcSettings;
use crate::compaction::pick::{
    CompactionPlan, CompactionReason, DeletedRanges, LeveledSettings, Merging, PickContext,
    RunningCompaction, TableTemperatures,
};
use crate::manifest::{
    BlobFileAddition, BlobFileGarbage, BlobReferences, CompactCursor, EntryStats, FileMetadata,
    ObsoleteFiles, TableFile, Version, VersionBuilder, VersionEdit,
};
use crate::options::CompactionPri;

/// The `name=value` words of a command.
pub(super) struct Arguments(HashMap<String, String>);

impl Arguments {
    pub(super) fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let pair = |word: &str| {
            let (name, value) = word.split_once('=').unwrap_or_else(|| panic!("{word}"));
            (name.to_owned(), value.to_owned())
        };
        Self(words.map(pair).collect())
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn get<T: FromStr>(&self, name: &str, otherwise: T) -> T {
        self.text(name)
            .map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
    }
}

/// What a case is about.
pub(super) struct Scene {
    pub(super) arguments: Arguments,
    pub(super) settings: LeveledSettings,
    pub(super) version: Version,
    stats: HashMap<FileNumber, EntryStats>,
    pub(super) running: Vec<RunningCompaction>,
    cursors: Vec<CompactCursor>,
    merging: Option<Merging>,
    deleted: Vec<DeletedRanges>,
    pub(super) keys: Vec<(String, u64)>,
}

impl Scene {
    pub(super) fn draw(arguments: Arguments, drawing: &str) -> Self {
        let order = InternalKeyComparator::new(Comparator::Bytewise);
        let mut edit = VersionEdit::new(ColumnFamilyId::DEFAULT);
        let (mut marks, mut stats) = (Marks::default(), HashMap::new());
        let (mut running, mut cursors, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        let mut punched: Vec<(FileNumber, u64)> = Vec::new();
        let mut epoch = 1000;
        let mut tombstones: Vec<(FileNumber, Vec<RangeTombstone>)> = Vec::new();
        for line in drawing.lines() {
            let mut words = line.split_whitespace();
            match words.next().unwrap() {
                "running" => {
                    let (from, to) = words.next().unwrap().split_once("->").unwrap();
                    let (smallest, largest) = words.next().unwrap().split_once('-').unwrap();
                    let (to, proximal) = to
                        .split_once('+')
                        .map_or((to, None), |(to, proximal)| (to, Some(proximal.parse().unwrap())));
                    running.push(RunningCompaction {
                        start_level: from.parse().unwrap(),
                        output_level: to.parse().unwrap(),
                        proximal_level: proximal,
                        sorted_runs: 1,
                        smallest: smallest.into(),
                        largest: largest.into(),
                    });
                }
                "blob" => blob_file(words, &mut edit, &mut punched),
                "cursor" => {
                    let level = words.next().unwrap().parse().unwrap();
                    cursors.push(CompactCursor {
                        level,
                        key: key(words.next().unwrap(), MAX_SEQUENCE_NUMBER),
                    });
                }
                "deleted" => {
                    let number = FileNumber(words.next().unwrap().parse().unwrap());
                    tombstones.push((number, words.map(tombstone).collect()));
                }
                "keys" => keys.extend(words.map(|word| {
                    let (key, size) = word.split_once(':').unwrap_or((word, "0"));
                    (key.to_owned(), size.parse().unwrap())
                })),
                level => {
                    let level: usize = level.strip_prefix('L').unwrap().parse().unwrap();
                    for word in words {
                        epoch -= 1;
                        // Level 0 is given newest first: older tables have smaller sequence
                        // numbers.
                        let seqnos = if level == 0 { (epoch * 10, epoch * 10 + 9) } else { (1, 9) };
                        let file = table(word, seqnos, &mut marks, &mut stats);
                        let file = FileMetadata { epoch_number: epoch, ..file };
                        edit.add_file(level, file);
                    }
                }
            }
        }
        let base = Version::empty(order, Arc::default(), arguments.get("levels", 5));
        let mut builder = VersionBuilder::new(&base, Arc::new(ObsoleteFiles::default()));
        builder.apply(&edit).unwrap();
        let version = builder.build().unwrap();
        version.files().for_each(|(_, file)| marks.put_on(file));
        let deleted = deleted_ranges(&version, &tombstones);
        for (number, bytes) in punched {
            version.blob_files[&number].file.holes.set_punched(bytes);
        }
        let settings = settings(&arguments);
        let merging = merging(&arguments);
        Self { arguments, settings, version, stats, running, cursors, merging, deleted, keys }
    }

    /// The tree without the inputs of a plan, whose outputs are newer than what anybody waits for.
    pub(super) fn without_inputs(&self, plan: &CompactionPlan) -> Version {
        let mut edit = VersionEdit::new(ColumnFamilyId::DEFAULT);
        plan.files().for_each(|(level, file)| edit.delete_file(level, file.number()));
        let mut builder = VersionBuilder::new(&self.version, Arc::new(ObsoleteFiles::default()));
        builder.apply(&edit).unwrap();
        builder.build().unwrap()
    }

    pub(super) fn with_context<T>(&self, work: impl FnOnce(&PickContext<'_>) -> T) -> T {
        let stats = |file: &TableFile| self.stats.get(&file.number()).copied();
        work(&PickContext {
            running: &self.running,
            bottommost_threshold: self.arguments.get("threshold", 0),
            now_unix_seconds: self.arguments.get("now", 0),
            cursors: &self.cursors,
            makes_room: self.arguments.get("room", 0u8) > 0,
            merging: self.merging.as_ref(),
            forced_gc_below: FileNumber(self.arguments.get("below", u64::MAX)),
            collecting: &self.arguments.text("collecting").map_or_else(BTreeSet::new, |files| {
                files.split('/').map(|file| FileNumber(file.parse().unwrap())).collect()
            }),
            oldest_snapshot: self.arguments.get("snapshot", MAX_SEQUENCE_NUMBER),
            deleted: &self.deleted,
            unflushed_blob_bytes: self.arguments.get("unflushed", 0),
            hole_speed: self.arguments.get("speed", 0),
            hole_size: self.arguments.text("hole").map(|bytes| bytes.parse().unwrap()),
            stats: &stats,
        })
    }
}

/// `merging=BEGIN for=REASON older=NUMBER`: without a number all tables were there when it began.
fn merging(arguments: &Arguments) -> Option<Merging> {
    let begin = arguments.text("merging")?.into();
    let reason = match arguments.text("for") {
        None => CompactionReason::SizeAmplification,
        Some("age") => CompactionReason::Periodic,
        Some("deletions") => CompactionReason::Deletions,
        Some("ratio") => CompactionReason::SizeRatio,
        Some("mark") => CompactionReason::Marked,
        Some(other) => panic!("{other}"),
    };
    Some(Merging { begin, reason, older_than: FileNumber(arguments.get("older", u64::MAX)) })
}

fn settings(arguments: &Arguments) -> LeveledSettings {
    let compressions =
        |text: &str| text.split('/').map(|name| compression_named(name).unwrap()).collect();
    let numbers = |name| {
        let split =
            |text: &str| text.split('/').map(|number| number.parse::<u64>().unwrap()).collect();
        arguments.text(name).map_or(Vec::new(), split)
    };
    LeveledSettings {
        path_sizes: numbers("paths"),
        level0_file_num_compaction_trigger: arguments.get("trigger", 4),
        runs_without_delay: arguments.get("bear", 19),
        write_buffer_size: arguments.get("memtable", 0),
        max_bytes_for_level_base: arguments.get("base", 100),
        max_bytes_for_level_multiplier: arguments.get("multiplier", 10.0),
        max_bytes_for_level_multiplier_additional: numbers("additional")
            .into_iter()
            .map(|n| n as i32)
            .collect(),
        dynamic_level_bytes: arguments.get("dynamic", false),
        target_file_size_base: arguments.get("target", 50),
        target_file_size_multiplier: arguments.get("growth", 1),
        max_compaction_bytes: arguments.get("max", 100_000),
        priority: match arguments.text("priority") {
            None => CompactionPri::MinOverlappingRatio,
            Some("size") => CompactionPri::ByCompensatedSize,
            Some("largest-seq") => CompactionPri::OldestLargestSeqFirst,
            Some("smallest-seq") => CompactionPri::OldestSmallestSeqFirst,
            Some("round-robin") => CompactionPri::RoundRobin,
            Some(other) => panic!("{other}"),
        },
        ttl_seconds: arguments.get("ttl", 0),
        periodic_compaction_seconds: arguments.get("periodic", 0),
        preserved_seconds: arguments.get("preserved", 0),
        precluded_seconds: arguments.get("young", 0),
        deletion_compaction_delay: arguments.get("delay", 0),
        max_space_amplification: arguments.get("space", 0.0),
        burst_space_amplification: arguments.get("burst", arguments.get("space", 0.0)),
        blob_gc: BlobGcSettings {
            enabled: arguments.text("cutoff").is_some(),
            age_cutoff: arguments.get("cutoff", 0.25),
            force_threshold: arguments.get("force", 1.0),
        },
        ingest_behind: arguments.get("behind", false),
        compression: CompressionType::Lz4,
        compression_per_level: arguments.text("compression").map_or(Vec::new(), compressions),
        bottommost_compression: arguments.text("bottommost").and_then(compression_named),
        temperatures: TableTemperatures {
            default: arguments.text("written").map(temperature).unwrap_or_default(),
            last_level: arguments.text("last-level").map(temperature).unwrap_or_default(),
        },
    }
}

pub(super) fn key(text: &str, sequence: u64) -> InternalKeyBuf {
    let (user_key, sequence) = match text.split_once('@') {
        Some((user_key, sequence)) => (user_key, sequence.parse().unwrap()),
        None => (text, sequence),
    };
    InternalKeyBuf::new(user_key.as_bytes(), sequence, ValueType::Value)
}

fn deleted_ranges(
    version: &Version,
    all: &[(FileNumber, Vec<RangeTombstone>)],
) -> Vec<DeletedRanges> {
    let of = |(number, tombstones): &(FileNumber, Vec<RangeTombstone>)| {
        let (level, file) = version.files().find(|(_, file)| file.number() == *number).unwrap();
        let limits = (&file.meta.smallest, &file.meta.largest);
        DeletedRanges::new(version, level, *number, limits, tombstones)
    };
    all.iter().filter_map(of).collect()
}

fn tombstone(word: &str) -> RangeTombstone {
    let (range, sequence) = word.split_once('@').unwrap();
    let (start, end) = range.split_once('-').unwrap();
    RangeTombstone { start: start.into(), end: end.into(), sequence: sequence.parse().unwrap() }
}

/// Adds a blob file: its number, garbage and total bytes, how many records, and bytes that holes
/// have given back.
fn blob_file<'a>(
    mut words: impl Iterator<Item = &'a str>,
    edit: &mut VersionEdit,
    punched: &mut Vec<(FileNumber, u64)>,
) {
    let number = FileNumber(words.next().unwrap().parse().unwrap());
    let (garbage, total) = words.next().unwrap().split_once('/').unwrap();
    edit.blob_file_additions.push(BlobFileAddition {
        number,
        total_count: words.next().map_or(1000, |count| count.parse().unwrap()),
        total_bytes: total.parse().unwrap(),
        ..Default::default()
    });
    punched.extend(words.next().map(|bytes| (number, bytes.parse().unwrap())));
    let bytes = garbage.parse().unwrap();
    edit.blob_file_garbages.push(BlobFileGarbage { number, count: 1, bytes });
}

/// What is known of tables beside what the MANIFEST says.
#[derive(Default)]
struct Marks {
    busy: Vec<FileNumber>,
    aside: Vec<FileNumber>,
    apart: Vec<FileNumber>,
    settled: Vec<FileNumber>,
}

impl Marks {
    fn put_on(&self, file: &TableFile) {
        let number = file.number();
        let is_aside = self.aside.contains(&number);
        file.set_aside.store(is_aside, Ordering::Relaxed);
        file.being_compacted.store(is_aside || self.busy.contains(&number), Ordering::Relaxed);
        if self.apart.contains(&number) {
            file.keep_apart(MAX_SEQUENCE_NUMBER);
        }
        file.settled.store(self.settled.contains(&number), Ordering::Relaxed);
    }
}

fn table(
    word: &str,
    seqnos: (u64, u64),
    marks: &mut Marks,
    stats: &mut HashMap<FileNumber, EntryStats>,
) -> FileMetadata {
    let mut attributes = word.split(',');
    let mut fields = attributes.next().unwrap().split(':');
    let number = FileNumber(fields.next().unwrap().parse().unwrap());
    let (smallest, largest) = fields.next().unwrap().split_once('-').unwrap();
    let mut meta = FileMetadata {
        number,
        size: fields.next().unwrap().parse().unwrap(),
        smallest: key(smallest, seqnos.1),
        largest: key(largest, seqnos.0),
        smallest_seqno: seqnos.0,
        largest_seqno: seqnos.1,
        ..FileMetadata::default()
    };
    let (mut references, mut others) = (Vec::new(), 0);
    for attribute in attributes {
        match attribute.split_once('=') {
            None if attribute == "busy" => marks.busy.push(number),
            None if attribute == "aside" => marks.aside.push(number),
            None if attribute == "apart" => marks.apart.push(number),
            None if attribute == "settled" => marks.settled.push(number),
            None if attribute == "marked" => meta.marked_for_compaction = true,
            None if attribute == "end" => {
                let end = meta.largest.user_key().to_vec();
                meta.largest =
                    InternalKeyBuf::new(&end, MAX_SEQUENCE_NUMBER, ValueType::RangeDeletion);
            }
            Some(("seq", range)) => {
                let (low, high) = range.split_once('-').unwrap();
                (meta.smallest_seqno, meta.largest_seqno) =
                    (low.parse().unwrap(), high.parse().unwrap());
            }
            Some(("is", name)) => meta.temperature = temperature(name),
            Some(("path", id)) => meta.path_id = id.parse().unwrap(),
            Some(("made", seconds)) => meta.file_creation_time = seconds.parse().unwrap(),
            Some(("born", seconds)) => meta.oldest_ancestor_time = seconds.parse().unwrap(),
            Some(("blob", number)) => {
                meta.oldest_blob_file = Some(FileNumber(number.parse().unwrap()))
            }
            Some(("other", count)) => others = count.parse().unwrap(),
            Some(("refs", files)) => {
                let file = |file: &str| {
                    let (number, bytes) = file.split_once(':').unwrap();
                    (FileNumber(number.parse().unwrap()), bytes.parse().unwrap())
                };
                references = files.split('/').map(file).collect();
                meta.oldest_blob_file = Some(references[0].0);
            }
            Some(("covers", bytes)) => {
                meta.compensated_range_deletion_size = bytes.parse().unwrap()
            }
            Some(("del", counts)) => {
                stats.insert(number, entry_stats(counts));
            }
            _ => panic!("unknown attribute {attribute}"),
        }
    }
    meta.blob_references = BlobReferences::new(others, references);
    meta
}

/// Deletions, entries and bytes of values, with strokes between.
fn entry_stats(counts: &str) -> EntryStats {
    let mut counts = counts.split('/').map(|count| count.parse().unwrap());
    let mut next = || counts.next().unwrap();
    let (deletions, entries, value_bytes) = (next(), next(), next());
    EntryStats { entries, deletions, value_bytes, range_deletions: 0 }
}

pub(super) fn temperature(name: &str) -> Temperature {
    Temperature::NAMES
        .iter()
        .map(|(_, value)| *value)
        .find(|value| value.to_string() == name)
        .unwrap()
}

fn compression_named(name: &str) -> Option<CompressionType> {
    CompressionType::ALL.into_iter().find(|kind| kind.short_name() == name)
}
