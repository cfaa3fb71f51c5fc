//! `rocksdb.cfstats` and its parts: what became of a family since the database was opened, in the
//! shape of RocksDB's report.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::compaction::pick::BlobWaste;
use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::properties::db_stats::seconds_up;
use crate::db::properties::human::{self, GB, MB};
use crate::db::properties::tables::blob_file_totals;
use crate::db::settings::stall_input;
use crate::db::tree::activity::{Activity, LevelActivity};
use crate::manifest::Version;

/// One line of the table.
struct Row {
    name: String,
    files: usize,
    compacting: usize,
    bytes: u64,
    score: f64,
    write_amplification: f64,
    activity: LevelActivity,
}

/// The line for the time since the last periodic report.
const INTERVAL: &str = "Int";

const COLUMNS: &str = "Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) WPreComp(GB) Wnew(GB) Moved(GB) W-Amp \
                       Rd(MB/s) Wr(MB/s) Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop Rblob(GB) Wblob(GB)";

fn head(family: &str, group: &str) -> String {
    let columns = format!("{group}    {COLUMNS}");
    format!("\n** Compaction Stats [{family}] **\n{columns}\n{}\n", "-".repeat(columns.len() + 1))
}

impl Row {
    fn of_activity(name: &str, activity: LevelActivity) -> Self {
        let name = name.to_string();
        Self {
            name,
            files: 0,
            compacting: 0,
            bytes: 0,
            score: 0.0,
            write_amplification: 0.0,
            activity,
        }
    }

    /// The columns by RocksDB's names.
    fn figures(&self) -> [(&'static str, f64); 22] {
        let activity = &self.activity;
        let gb = |bytes: u64| bytes as f64 / GB;
        let seconds = activity.micros as f64 / 1e6;
        [
            ("NumFiles", self.files as f64),
            ("CompactedFiles", self.compacting as f64),
            ("SizeBytes", self.bytes as f64),
            ("Score", self.score),
            ("ReadGB", gb(activity.read())),
            ("RnGB", gb(activity.read_above)),
            ("Rnp1GB", gb(activity.read_here)),
            ("WriteGB", gb(activity.written)),
            ("WPreCompGB", gb(activity.written_raw)),
            ("WnewGB", gb(activity.written) - gb(activity.read_here)),
            ("MovedGB", gb(activity.moved)),
            ("WriteAmp", self.write_amplification),
            ("ReadMBps", self.per_second(activity.read())),
            ("WriteMBps", self.per_second(activity.all_written())),
            ("CompSec", seconds),
            // Processor time is not measured.
            ("CompMergeCPU", 0.0),
            ("CompCount", activity.count as f64),
            ("AvgSec", seconds / activity.count.max(1) as f64),
            ("KeyIn", activity.entries_read as f64),
            ("KeyDrop", activity.entries_dropped as f64),
            ("RblobGB", gb(activity.read_blob)),
            ("WblobGB", gb(activity.written_blob)),
        ]
    }

    /// MiB a second, for the time that flushes and compactions took.
    fn per_second(&self, bytes: u64) -> f64 {
        bytes as f64 / MB / ((self.activity.micros + 1) as f64 / 1e6)
    }

    fn text(&self) -> String {
        let Self { name, files, compacting, score, write_amplification, activity, .. } = self;
        let size = human::bytes(self.bytes);
        let gb = |bytes: u64| bytes as f64 / GB;
        let seconds = activity.micros as f64 / 1e6;
        let per_second = |bytes: u64| self.per_second(bytes);
        let read = activity.read();
        // Negative where a compaction wrote less than it read of its own level.
        let new = gb(activity.written) - gb(activity.read_here);
        let average = seconds / activity.count.max(1) as f64;
        let mut text = format!("{name:>4} {files:>6}/{compacting:<3} {size:>10} {score:5.1} ");
        let _ = write!(text, "{:8.1} {:7.1} ", gb(read), gb(activity.read_above));
        let _ = write!(text, "{:8.1} {:9.1} ", gb(activity.read_here), gb(activity.written));
        let _ =
            write!(text, "{:9.1} {new:8.1} {:9.1} ", gb(activity.written_raw), gb(activity.moved));
        let _ = write!(text, "{write_amplification:5.1} {:8.1} ", per_second(read));
        let _ = write!(text, "{:8.1} ", per_second(activity.all_written()));
        // Processor time is not measured.
        let _ = write!(text, "{seconds:9.2} {:17.2} {:9} {average:8.3} ", 0.0, activity.count);
        let (keys, dropped) =
            (human::count(activity.entries_read), human::count(activity.entries_dropped));
        let _ = write!(text, "{keys:>7} {dropped:>6} ");
        let _ = writeln!(text, "{:9.1} {:9.1}", gb(activity.read_blob), gb(activity.written_blob));
        text
    }
}

fn amplification(written: u64, ingested: u64) -> f64 {
    if ingested == 0 { 0.0 } else { written as f64 / ingested as f64 }
}

/// A line for each level that has tables or was written to, one for their sum, and one for the time
/// since the last periodic report: there are none, so that it is all time.
fn levels(version: &Version, scores: &[f64], activity: &Activity) -> Vec<Row> {
    let flushed = activity.flushes.all_written();
    let mut rows = Vec::new();
    let mut sum = Row::of_activity("Sum", LevelActivity::default());
    for (level, files) in version.levels.iter().enumerate() {
        let done = activity.level(level);
        if files.is_empty() && done == LevelActivity::default() {
            continue;
        }
        let ingested =
            if level == 0 { flushed } else { done.read_above.saturating_add(done.read_blob) };
        let row = Row {
            name: format!("L{level}"),
            files: files.len(),
            compacting: files.iter().filter(|file| file.is_being_compacted()).count(),
            bytes: version.level_bytes(level),
            score: scores.get(level).copied().unwrap_or(0.0),
            write_amplification: amplification(done.all_written(), ingested),
            activity: done,
        };
        sum.files += row.files;
        sum.compacting += row.compacting;
        sum.bytes = sum.bytes.saturating_add(row.bytes);
        sum.activity.add(&done);
        rows.push(row);
    }
    sum.write_amplification = amplification(sum.activity.all_written(), flushed);
    let interval = Row {
        write_amplification: amplification(sum.activity.all_written(), flushed + 1),
        ..Row::of_activity(INTERVAL, sum.activity)
    };
    rows.extend([sum, interval]);
    rows
}

/// How often what held writers up, by RocksDB's names; each time that it began.
fn stall_counts(activity: &Activity) -> [(&'static str, u64); 11] {
    let Activity {
        by_memtables, by_level0, by_busy_level0, by_pending_bytes, by_blob_space, ..
    } = activity;
    let all = [by_memtables, by_level0, by_pending_bytes, by_blob_space];
    [
        ("blob-space-delays", by_blob_space.delays),
        ("cf-l0-file-count-limit-delays-with-ongoing-compaction", by_busy_level0.delays),
        ("cf-l0-file-count-limit-stops-with-ongoing-compaction", by_busy_level0.stops),
        ("l0-file-count-limit-delays", by_level0.delays),
        ("l0-file-count-limit-stops", by_level0.stops),
        ("memtable-limit-delays", by_memtables.delays),
        ("memtable-limit-stops", by_memtables.stops),
        ("pending-compaction-bytes-delays", by_pending_bytes.delays),
        ("pending-compaction-bytes-stops", by_pending_bytes.stops),
        ("total-delays", all.iter().map(|stalls| stalls.delays).sum()),
        ("total-stops", all.iter().map(|stalls| stalls.stops).sum()),
    ]
}

pub(super) fn write_stalls(activity: &Activity) -> String {
    let figures: Vec<_> =
        stall_counts(activity).iter().map(|(name, count)| format!("{name}: {count}")).collect();
    format!("Write Stall (count): {}\n", figures.join(", "))
}

/// `rocksdb.cf-write-stall-stats`.
pub(super) fn cf_write_stalls(db: &DbInner, family: &Family) -> String {
    db.tree.activity(family).map_or(String::new(), |activity| write_stalls(&activity))
}

/// `rocksdb.cf-write-stall-stats` as a map.
pub(super) fn cf_write_stalls_map(db: &DbInner, family: &Family) -> BTreeMap<String, String> {
    let activity = db.tree.activity(family).unwrap_or_default();
    let counts = stall_counts(&activity);
    counts.iter().map(|(name, count)| (name.to_string(), count.to_string())).collect()
}

/// `rocksdb.cfstats` as a map: a row for each level that the text has, and for their sum.
pub(super) fn cf_map(db: &DbInner, family: &Family) -> BTreeMap<String, String> {
    let version = family.current.load().version.clone();
    let (activity, scores) = db.tree.activity_and_scores(family, &version);
    let mut map = cf_write_stalls_map(db, family);
    for row in levels(&version, &scores, &activity).iter().filter(|row| row.name != INTERVAL) {
        let figures = row.figures().into_iter();
        map.extend(figures.map(|(figure, value)| {
            (format!("compaction.{}.{figure}", row.name), format!("{value:.6}"))
        }));
    }
    map
}

/// `rocksdb.cfstats-no-file-histogram`: the latencies of reads are not measured.
pub(super) fn cf_stats(db: &DbInner, family: &Family) -> String {
    let current = family.current.load();
    let version = &current.version;
    let (activity, scores) = db.tree.activity_and_scores(family, version);
    let mut text = head(&family.name, "Level");
    let rows = levels(version, &scores, &activity);
    text.extend(rows.iter().map(Row::text));
    text.push_str(&head(&family.name, "Priority"));
    for (name, done) in [("Low", activity.compactions), ("High", activity.flushes)] {
        if done.count > 0 {
            text.push_str(&Row::of_activity(name, done).text());
        }
    }
    let blobs = blob_file_totals(version);
    let _ = writeln!(
        text,
        "\nBlob file count: {}, total size: {:.1} GB, garbage size: {:.1} GB, space amp: {:.1}\n",
        version.blob_files.len(),
        blobs.total as f64 / GB,
        blobs.garbage as f64 / GB,
        blobs.amplification()
    );
    text.push_str(&sums_of_cf(db, &activity));
    let options = family.options.load();
    let pending = stall_input(&options, version, current.immutable.len(), BlobWaste::default());
    let _ =
        writeln!(text, "Estimated pending compaction bytes: {}", pending.pending_compaction_bytes);
    text.push_str(&write_stalls(&activity));
    text
}

fn sums_of_cf(db: &DbInner, activity: &Activity) -> String {
    let up = seconds_up(db);
    let flushed = activity.flushes.all_written() as f64 / GB;
    let mut all = activity.flushes;
    all.add(&activity.compactions);
    let (written, read) = (all.all_written(), all.read());
    let per_second = |bytes: u64| bytes as f64 / MB / up.max(0.001);
    let mut text = format!("Uptime(secs): {up:.1} total, {up:.1} interval\n");
    let _ = writeln!(text, "Flush(GB): cumulative {flushed:.3}, interval {flushed:.3}");
    // There is no ingestion of tables.
    text.push_str("AddFile(GB): cumulative 0.000, interval 0.000\n");
    for what in ["Total Files", "L0 Files", "Keys"] {
        let _ = writeln!(text, "AddFile({what}): cumulative 0, interval 0");
    }
    for period in ["Cumulative", "Interval"] {
        let _ = writeln!(
            text,
            "{period} compaction: {:.2} GB write, {:.2} MB/s write, {:.2} GB read, {:.2} MB/s read, {:.1} seconds",
            written as f64 / GB,
            per_second(written),
            read as f64 / GB,
            per_second(read),
            all.micros as f64 / 1e6
        );
    }
    text
}
