//! The policies as text: a tree in, the decision out. See `testdata/`.
//!
//! Longer than usual: one vocabulary for all policies, read and shown in one place.
//!
//! A case is a command with settings, a drawing, `----`, what is expected, and an empty line. In a drawing
//!
//! ```text
//! L0 7:a-c:10 6:b-d:10,busy      tables as number:smallest-largest:bytes, level 0 newest first; then, each
//!                                after a comma: busy, marked, end (the largest key is a tombstone's end),
//!                                seq=LOW-HIGH, made=SECONDS, born=SECONDS, blob=NUMBER,
//!                                refs=NUMBER:BYTES/NUMBER:BYTES (what it refers to in blob files; implies blob=NUMBER),
//!                                other=ENTRIES (that refer to none),
//!                                path=ID, is=TEMPERATURE,
//!                                del=DELETIONS/ENTRIES/VALUE_BYTES, covers=BYTES (of deeper tables, by its range
//!                                tombstones). A key may name its sequence number: c@5.
//! running 0->1 a-c               a compaction under way
//! blob 4 60/100 20               a blob file with 60 of 100 bytes garbage, in 20 blobs; 1000 if that is not said
//! deleted 7 a-d@9 f-h@9          what the range tombstones of table 7 delete
//! cursor 1 f                     where the next compaction of level 1 starts
//! keys a:10 b:10                 what is written (split), or asked for (below)
//! ```

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::*;
use crate::base::compression::CompressionType;
use crate::base::{
    ColumnFamilyId, Comparator, FileNumber, InternalKeyBuf, InternalKeyComparator, MAX_SEQUENCE_NUMBER,
    RangeTombstone, Temperature, ValueType,
};
use crate::blob::BlobGcSettings;
use crate::manifest::{
    BlobFileAddition, BlobFileGarbage, BlobReferences, CompactCursor, EntryStats, FileMetadata,
    ObsoleteFiles, TableFile, Version, VersionBuilder, VersionEdit,
};
use crate::options::{
    CompactionPri, CompactionStopStyle, FifoCompactionOptions, FileTemperatureAges,
    UniversalCompactionOptions,
};

#[test]
fn level_sizes_and_scores() {
    run(include_str!("testdata/shape.txt"));
}

#[test]
fn compactions_from_level_0() {
    run(include_str!("testdata/level0.txt"));
}

#[test]
fn compactions_from_deeper_levels() {
    run(include_str!("testdata/levels.txt"));
}

#[test]
fn compactions_of_single_files() {
    run(include_str!("testdata/files.txt"));
}

#[test]
fn compactions_of_ranges() {
    run(include_str!("testdata/manual.txt"));
}

#[test]
fn levels_that_are_moved() {
    run(include_str!("testdata/refit.txt"));
}

#[test]
fn ends_of_output_tables() {
    run(include_str!("testdata/output.txt"));
}

#[test]
fn universal_compactions() {
    run(include_str!("testdata/universal.txt"));
}

#[test]
fn compactions_for_blob_space() {
    run(include_str!("testdata/blob_space.txt"));
}

#[test]
fn compactions_for_deletions() {
    run(include_str!("testdata/deletions.txt"));
}

#[test]
fn directories_of_outputs() {
    run(include_str!("testdata/paths.txt"));
}

#[test]
fn fifo_compactions() {
    run(include_str!("testdata/fifo.txt"));
}

/// Runs all cases of a file, and shows every one whose decision is another.
fn run(text: &str) {
    let mut differences = String::new();
    let mut cases = 0;
    for case in text.split("\n\n").map(str::trim).filter(|case| !case.is_empty()) {
        let lines = case.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
        let Some((input, expected)) = lines.split_once("----\n") else {
            assert!(lines.is_empty(), "no ---- in:\n{case}");
            continue;
        };
        cases += 1;
        let actual = decide(input);
        if actual.trim() != expected.trim() {
            write!(differences, "{case}\n==== is now\n{actual}\n").unwrap();
        }
    }
    assert!(cases > 0 && differences.is_empty(), "{differences}");
}

fn decide(input: &str) -> String {
    let (command, drawing) = input.split_once('\n').unwrap();
    let mut words = command.split(' ');
    let command = words.next().unwrap();
    let scene = Scene::draw(Arguments::parse(words), drawing);
    match command {
        "pick" => scene.with_context(|context| {
            pick(&scene.version, &scene.settings, context).map_or("nothing".to_owned(), |plan| show(&plan))
        }),
        "drop" => scene.with_context(|context| {
            drop_deleted(&scene.version, context).map_or("nothing".to_owned(), |plan| show(&plan))
        }),
        "within" => scene.within(),
        "punch" => scene.with_context(|context| {
            let files = pick_punch(&scene.version, &scene.settings, context);
            let files: Vec<_> = files.iter().map(|file| file.0.to_string()).collect();
            if files.is_empty() { "nothing".to_owned() } else { files.join(" ") }
        }),
        "universal" => scene.universal(),
        "fifo" => scene.fifo(),
        "shape" => scene.shape(),
        "range" => scene.range(),
        "refit" => scene.refit(),
        "paths" => scene.paths(),
        "split" => scene.split(),
        "below" => scene.below(),
        other => panic!("unknown command {other}"),
    }
}

/// The `name=value` words of a command.
struct Arguments(HashMap<String, String>);

impl Arguments {
    fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let pair = |word: &str| {
            let (name, value) = word.split_once('=').unwrap_or_else(|| panic!("{word}"));
            (name.to_owned(), value.to_owned())
        };
        Self(words.map(pair).collect())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn get<T: FromStr>(&self, name: &str, otherwise: T) -> T {
        self.text(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
    }
}

struct Scene {
    arguments: Arguments,
    settings: LeveledSettings,
    version: Version,
    stats: HashMap<FileNumber, EntryStats>,
    running: Vec<RunningCompaction>,
    cursors: Vec<CompactCursor>,
    deleted: Vec<DeletedRanges>,
    keys: Vec<(String, u64)>,
}

impl Scene {
    fn draw(arguments: Arguments, drawing: &str) -> Self {
        let order = InternalKeyComparator::new(Comparator::Bytewise);
        let mut edit = VersionEdit::new(ColumnFamilyId::DEFAULT);
        let (mut busy, mut stats) = (Vec::new(), HashMap::new());
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
                    running.push(RunningCompaction {
                        start_level: from.parse().unwrap(),
                        output_level: to.parse().unwrap(),
                        smallest: smallest.into(),
                        largest: largest.into(),
                    });
                }
                "blob" => blob_file(words, &mut edit, &mut punched),
                "cursor" => {
                    let level = words.next().unwrap().parse().unwrap();
                    cursors
                        .push(CompactCursor { level, key: key(words.next().unwrap(), MAX_SEQUENCE_NUMBER) });
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
                        // Level 0 is given newest first: older tables have smaller sequence numbers.
                        let seqnos = if level == 0 { (epoch * 10, epoch * 10 + 9) } else { (1, 9) };
                        let file = table(word, seqnos, &mut busy, &mut stats);
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
        for (_, file) in version.files() {
            file.being_compacted.store(busy.contains(&file.number()), Ordering::Relaxed);
        }
        let deleted = deleted_ranges(&version, &tombstones);
        for (number, bytes) in punched {
            version.blob_files[&number].file.holes.set_punched(bytes);
        }
        let settings = settings(&arguments);
        Self { arguments, settings, version, stats, running, cursors, deleted, keys }
    }

    fn with_context<T>(&self, work: impl FnOnce(&PickContext<'_>) -> T) -> T {
        let stats = |file: &TableFile| self.stats.get(&file.number()).copied();
        work(&PickContext {
            running: &self.running,
            bottommost_threshold: self.arguments.get("threshold", 0),
            now_unix_seconds: self.arguments.get("now", 0),
            cursors: &self.cursors,
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

    fn shape(&self) -> String {
        let targets = LevelTargets::new(&self.version, &self.settings);
        let mut out = format!("base level {}", targets.base_level);
        if let Some(level) = targets.lowest_unnecessary {
            write!(out, ", unnecessary down to {level}").unwrap();
        }
        let sized =
            (targets.base_level..self.version.levels.len()).filter(|&level| targets.bytes(level) < u64::MAX);
        let mut sizes: Vec<_> = sized.map(|level| format!("L{level} {}", targets.bytes(level))).collect();
        if sizes.is_empty() {
            sizes.push("none".to_owned());
        }
        write!(out, "\ntargets {}\nscores", sizes.join(", ")).unwrap();
        let sizes = self.with_context(|context| compensated_sizes(&self.version, context));
        for score in scores(&self.version, &self.settings, &targets, &sizes).iter().filter(|s| s.score > 0.0)
        {
            write!(out, " L{} {:.3}", score.level, score.score).unwrap();
        }
        let pending = pending_compaction_bytes(&self.version, &self.settings, &targets);
        write!(out, "\npending {pending}").unwrap();
        out
    }

    fn range(&self) -> String {
        let level = self.arguments.get("level", 0);
        let request = RangeRequest {
            level,
            output_level: self.arguments.get("to", level + 1),
            begin: self.arguments.text("begin").map(str::as_bytes),
            end: self.arguments.text("end").map(str::as_bytes),
            path_id: self.arguments.get("path", 0),
            allow_trivial_move: self.arguments.text("move") != Some("no"),
        };
        self.with_context(|context| show_range(plan_range(&self.version, &self.settings, context, &request)))
    }

    fn refit(&self) -> String {
        let target = self.arguments.text("to").map(|level| level.parse().unwrap());
        let planned = plan_refit(&self.version, &self.settings, self.arguments.get("level", 0), target);
        match planned {
            Ok(RangePlan::Ready { plan, .. }) => {
                assert!(plan.trivial_move, "nothing is rewritten");
                let numbers: Vec<_> = plan.files().map(|(_, file)| file.number().0.to_string()).collect();
                let (from, to) = (plan.start_level(), plan.output_level);
                format!("{}: L{from} [{}] -> L{to}, trivial move", plan.reason, numbers.join(" "))
            }
            Ok(other) => show_range(other),
            Err(error) => format!("{:?}: {}", error.code(), error.message()),
        }
    }

    fn within(&self) -> String {
        let ends =
            self.arguments.text("ranges").unwrap().split('/').map(|range| range.split_once('-').unwrap());
        let ranges: Vec<KeyRange<'_>> = ends
            .map(|(begin, end)| {
                let bound = |text: &str| !text.is_empty();
                (bound(begin).then_some(begin.as_bytes()), bound(end).then_some(end.as_bytes()))
            })
            .collect();
        let include_end = self.arguments.text("end") == Some("included");
        files_within(&self.version, &ranges, include_end).map_or("nothing".to_owned(), |plan| show(&plan))
    }

    fn universal(&self) -> String {
        let arguments = &self.arguments;
        let universal = UniversalCompactionOptions {
            size_ratio: arguments.get("ratio", 1),
            min_merge_width: arguments.get("min-width", 2),
            max_merge_width: arguments.get("max-width", u32::MAX),
            max_size_amplification_percent: arguments.get("amplification", 200),
            compression_size_percent: arguments.get("compressed", -1),
            stop_style: match arguments.text("stop") {
                None => CompactionStopStyle::TotalSize,
                Some("similar") => CompactionStopStyle::SimilarSize,
                Some(other) => panic!("{other}"),
            },
            allow_trivial_move: arguments.text("move").is_some(),
            incremental: arguments.text("incremental").is_some(),
            max_read_amp: arguments.get("runs", -1),
        };
        self.with_context(|context| match arguments.text("all") {
            None => pick_universal(&self.version, &self.settings, &universal, context)
                .map_or("nothing".to_owned(), |plan| show(&plan)),
            Some(how) => {
                let output = (arguments.get("path", 0), how == "rewrite");
                show_range(plan_full(&self.version, &self.settings, &universal, context, output))
            }
        })
    }

    fn fifo(&self) -> String {
        let thresholds = self.arguments.text("ages").into_iter().flat_map(|ages| ages.split('/'));
        let threshold = |text: &str| {
            let (name, age) = text.split_once(':').unwrap();
            (temperature(name), age.parse().unwrap())
        };
        let thresholds: Vec<_> = thresholds.map(threshold).collect();
        let fifo = FifoCompactionOptions {
            max_table_files_size: self.arguments.get("size", 1000),
            allow_compaction: self.arguments.text("merge").is_some(),
            age_for_warm: self.arguments.get("warm", 0),
            file_temperature_age_thresholds: FileTemperatureAges::of(&thresholds),
        };
        self.with_context(|context| {
            pick_fifo(&self.version, &self.settings, &fifo, self.arguments.get("buffer", 100), context)
                .map_or("nothing".to_owned(), |plan| show(&plan))
        })
    }

    /// Of all levels, or of runs of the sizes that are asked for.
    fn paths(&self) -> String {
        let of_run =
            |size: &u64| path_of_run(&self.settings.path_sizes, self.arguments.get("ratio", 1), *size);
        let answers: Vec<_> = match self.arguments.text("runs") {
            Some(runs) => {
                runs.split('/').map(|run| format!("{run} in {}", of_run(&run.parse().unwrap()))).collect()
            }
            None => (0..self.version.levels.len())
                .map(|level| format!("L{level} in {}", path_of_level(&self.settings, level)))
                .collect(),
        };
        answers.join(", ")
    }

    fn split(&self) -> String {
        let rule = SplitRule {
            cuts: true,
            target_file_size: self.arguments.get("target", 100),
            max_output_file_size: self.arguments.get("most", 200),
            max_compaction_bytes: self.arguments.get("max", 100_000),
            grandparents: self.version.levels[1].clone(),
        };
        let mut splitter = OutputSplitter::new(rule, Comparator::Bytewise);
        let (mut out, mut size) = (String::new(), None);
        for (text, bytes) in &self.keys {
            let before = match (splitter.should_stop_before(key(text, 5).as_key(), size), size) {
                (true, _) => " | ",
                (false, None) => "",
                (false, Some(_)) => " ",
            };
            out = out + before + text;
            size = Some(if before == " | " { 0 } else { size.unwrap_or(0) } + bytes);
        }
        out
    }

    fn below(&self) -> String {
        let mut below = KeysBelow::new(&self.version, self.arguments.get("level", 1));
        let answers = self.keys.iter().map(|(key, _)| {
            let answer = if below.surely_absent(key.as_bytes()) { "absent" } else { "maybe" };
            format!("{key} {answer}")
        });
        let mut answers: Vec<_> = answers.collect();
        let keys = self.arguments.text("begin").zip(self.arguments.text("end"));
        if let Some((begin, end)) = keys {
            let level = self.arguments.get("level", 1);
            let absent = range_surely_absent(&self.version, level, begin.as_bytes(), end.as_bytes());
            answers.push(format!("{begin}-{end} {}", if absent { "absent" } else { "maybe" }));
        }
        answers.join(", ")
    }
}

fn settings(arguments: &Arguments) -> LeveledSettings {
    let compressions = |text: &str| text.split('/').map(|name| compression_named(name).unwrap()).collect();
    let numbers = |name| {
        let split = |text: &str| text.split('/').map(|number| number.parse::<u64>().unwrap()).collect();
        arguments.text(name).map_or(Vec::new(), split)
    };
    LeveledSettings {
        path_sizes: numbers("paths"),
        level0_file_num_compaction_trigger: arguments.get("trigger", 4),
        runs_without_delay: arguments.get("bear", 19),
        write_buffer_size: arguments.get("memtable", 10),
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
        deletion_compaction_delay: arguments.get("delay", 0),
        max_space_amplification: arguments.get("space", 0.0),
        blob_gc: BlobGcSettings {
            enabled: arguments.text("cutoff").is_some(),
            age_cutoff: arguments.get("cutoff", 0.25),
            force_threshold: arguments.get("force", 1.0),
        },
        ingest_behind: arguments.get("behind", false),
        compression: CompressionType::Lz4,
        compression_per_level: arguments.text("compression").map_or(Vec::new(), compressions),
        bottommost_compression: arguments.text("bottommost").and_then(compression_named),
    }
}

fn key(text: &str, sequence: u64) -> InternalKeyBuf {
    let (user_key, sequence) = match text.split_once('@') {
        Some((user_key, sequence)) => (user_key, sequence.parse().unwrap()),
        None => (text, sequence),
    };
    InternalKeyBuf::new(user_key.as_bytes(), sequence, ValueType::Value)
}

fn deleted_ranges(version: &Version, all: &[(FileNumber, Vec<RangeTombstone>)]) -> Vec<DeletedRanges> {
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

/// Adds a blob file: its number, garbage and total bytes, how many records, and bytes that holes have given back.
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

fn table(
    word: &str,
    seqnos: (u64, u64),
    busy: &mut Vec<FileNumber>,
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
            None if attribute == "busy" => busy.push(number),
            None if attribute == "marked" => meta.marked_for_compaction = true,
            None if attribute == "end" => {
                let end = meta.largest.user_key().to_vec();
                meta.largest = InternalKeyBuf::new(&end, MAX_SEQUENCE_NUMBER, ValueType::RangeDeletion);
            }
            Some(("seq", range)) => {
                let (low, high) = range.split_once('-').unwrap();
                (meta.smallest_seqno, meta.largest_seqno) = (low.parse().unwrap(), high.parse().unwrap());
            }
            Some(("is", name)) => meta.temperature = temperature(name),
            Some(("path", id)) => meta.path_id = id.parse().unwrap(),
            Some(("made", seconds)) => meta.file_creation_time = seconds.parse().unwrap(),
            Some(("born", seconds)) => meta.oldest_ancestor_time = seconds.parse().unwrap(),
            Some(("blob", number)) => meta.oldest_blob_file = Some(FileNumber(number.parse().unwrap())),
            Some(("other", count)) => others = count.parse().unwrap(),
            Some(("refs", files)) => {
                let file = |file: &str| {
                    let (number, bytes) = file.split_once(':').unwrap();
                    (FileNumber(number.parse().unwrap()), bytes.parse().unwrap())
                };
                references = files.split('/').map(file).collect();
                meta.oldest_blob_file = Some(references[0].0);
            }
            Some(("covers", bytes)) => meta.compensated_range_deletion_size = bytes.parse().unwrap(),
            Some(("del", counts)) => {
                let mut counts = counts.split('/').map(|count| count.parse().unwrap());
                let mut next = || counts.next().unwrap();
                let (deletions, entries, value_bytes) = (next(), next(), next());
                stats.insert(number, EntryStats { entries, deletions, value_bytes, range_deletions: 0 });
            }
            _ => panic!("unknown attribute {attribute}"),
        }
    }
    meta.blob_references = BlobReferences::new(others, references);
    meta
}

fn show_range(plan: RangePlan) -> String {
    match plan {
        RangePlan::Nothing => "nothing".to_owned(),
        RangePlan::Blocked => "blocked".to_owned(),
        RangePlan::Ready { plan, rest } => {
            show(&plan) + &rest.map_or(String::new(), |key| format!(", rest from {}", key.escape_ascii()))
        }
    }
}

fn show(plan: &CompactionPlan) -> String {
    let numbers = |files: &[Arc<TableFile>]| {
        files.iter().map(|file| file.number().0.to_string()).collect::<Vec<_>>().join(" ")
    };
    let inputs: Vec<_> =
        plan.inputs.iter().map(|input| format!("L{} [{}]", input.level, numbers(&input.files))).collect();
    if plan.drops_inputs {
        return format!("{}: {} dropped", plan.reason, inputs.join(" + "));
    }
    let mut out = format!("{}: {} -> L{}", plan.reason, inputs.join(" + "), plan.output_level);
    if plan.path_id > 0 {
        write!(out, " in path {}", plan.path_id).unwrap();
    }
    if plan.trivial_move {
        out += ", trivial move";
    }
    if plan.bottommost {
        out += ", bottommost";
    }
    if plan.temperature.is_known() {
        write!(out, ", {}", plan.temperature).unwrap();
    }
    if !plan.emptied.is_empty() {
        let files: Vec<_> = plan.emptied.iter().map(|file| file.0.to_string()).collect();
        write!(out, ", empties [{}]", files.join(" ")).unwrap();
    }
    if plan.compression != CompressionType::Lz4 {
        write!(out, ", {}", plan.compression).unwrap();
    }
    if !plan.grandparents.is_empty() {
        write!(out, ", grandparents [{}]", numbers(&plan.grandparents)).unwrap();
    }
    if plan.output_level > 0 && plan.target_file_size != 50 {
        write!(out, ", files of {}", plan.target_file_size).unwrap();
    }
    out
}

fn temperature(name: &str) -> Temperature {
    Temperature::NAMES.iter().map(|(_, value)| *value).find(|value| value.to_string() == name).unwrap()
}

fn compression_named(name: &str) -> Option<CompressionType> {
    CompressionType::ALL.into_iter().find(|kind| kind.short_name() == name)
}
