//! `rocksdb.dbstats`: what was written since the database was opened, and since the report was
//! asked for last.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::db::DbInner;
use crate::db::properties::human::{self, GB, MB};
use crate::db::statistics::Ticker;

/// What the report is about, at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::db) struct DbFigures {
    up_us: u64,
    bytes: u64,
    keys: u64,
    writes: u64,
    logged_writes: u64,
    wal_bytes: u64,
    wal_syncs: u64,
    stall_us: u64,
}

/// Since when the report tells what it tells.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::db) struct DbReports {
    /// When the figures were last set to zero.
    begun: DbFigures,
    /// What it said last.
    last: DbFigures,
}

impl DbReports {
    /// Tells what follows from now on.
    pub(in crate::db) fn reset(&mut self, now: DbFigures) {
        (self.begun, self.last) = (now, now);
    }
}

impl DbFigures {
    /// What there is to tell of a database now, since it was opened.
    pub(in crate::db) fn of(db: &DbInner) -> Self {
        let counted = |ticker| db.context.statistics.get(ticker);
        Self {
            up_us: db.context.env.clock.now_us().saturating_sub(db.context.opened_at_us),
            bytes: counted(Ticker::BytesWritten),
            keys: counted(Ticker::KeysWritten),
            writes: counted(Ticker::Writes),
            logged_writes: counted(Ticker::LoggedWrites),
            wal_bytes: counted(Ticker::WalBytes),
            wal_syncs: counted(Ticker::WalSyncs),
            stall_us: counted(Ticker::StallMicros),
        }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            up_us: self.up_us.saturating_sub(before.up_us),
            bytes: self.bytes.saturating_sub(before.bytes),
            keys: self.keys.saturating_sub(before.keys),
            writes: self.writes.saturating_sub(before.writes),
            logged_writes: self.logged_writes.saturating_sub(before.logged_writes),
            wal_bytes: self.wal_bytes.saturating_sub(before.wal_bytes),
            wal_syncs: self.wal_syncs.saturating_sub(before.wal_syncs),
            stall_us: self.stall_us.saturating_sub(before.stall_us),
        }
    }

    fn seconds(&self) -> f64 {
        self.up_us as f64 / 1e6
    }

    /// Each write is a commit of its own: there are no groups. What an interval ingested is told in
    /// MB.
    fn text(&self, period: &str) -> String {
        let seconds = self.seconds().max(0.001);
        let (unit, unit_bytes) = if period == "Interval" { ("MB", MB) } else { ("GB", GB) };
        let (writes, per_commit) =
            (human::count(self.writes), if self.writes > 0 { 1.0 } else { 0.0 });
        let mut text = format!(
            "{period} writes: {writes} writes, {} keys, {writes} commit groups, ",
            human::count(self.keys)
        );
        let _ = writeln!(
            text,
            "{per_commit:.1} writes per commit group, ingest: {:.2} {unit}, {:.2} MB/s",
            self.bytes as f64 / unit_bytes,
            self.bytes as f64 / MB / seconds
        );
        let _ = writeln!(
            text,
            "{period} WAL: {} writes, {} syncs, {:.2} writes per sync, written: {:.2} GB, {:.2} MB/s",
            human::count(self.logged_writes),
            human::count(self.wal_syncs),
            self.logged_writes as f64 / self.wal_syncs.max(1) as f64,
            self.wal_bytes as f64 / GB,
            self.wal_bytes as f64 / MB / seconds
        );
        let percent = self.stall_us as f64 / 10_000.0 / seconds;
        let _ = writeln!(
            text,
            "{period} stall: {}, {percent:.1} percent",
            human::micros(self.stall_us)
        );
        text
    }
}

/// How long the figures have been counted, in seconds.
pub(super) fn seconds_up(db: &DbInner) -> f64 {
    let begun = db.reports.lock().begun;
    DbFigures::of(db).since(&begun).seconds()
}

/// `rocksdb.dbstats` by RocksDB's names. A write is never done by another writer.
pub(super) fn db_map(db: &DbInner) -> BTreeMap<String, String> {
    let begun = db.reports.lock().begun;
    let now = DbFigures::of(db).since(&begun);
    let counts = [
        ("db.wal_bytes_written", now.wal_bytes),
        ("db.wal_syncs", now.wal_syncs),
        ("db.user_bytes_written", now.bytes),
        ("db.user_keys_written", now.keys),
        ("db.user_writes_by_other", 0),
        ("db.user_writes_by_self", now.writes),
        ("db.user_writes_with_wal", now.logged_writes),
        ("db.user_write_stall_micros", now.stall_us),
    ];
    let mut map: BTreeMap<_, _> =
        counts.iter().map(|(name, count)| (name.to_string(), count.to_string())).collect();
    map.extend(write_stalls_map(db));
    map.insert("db.uptime".to_string(), format!("{:.6}", now.seconds()));
    map
}

/// `rocksdb.db-write-stall-stats` by RocksDB's names.
pub(super) fn write_stalls_map(db: &DbInner) -> BTreeMap<String, String> {
    let stops = db.tree.memtable_stops().to_string();
    BTreeMap::from([("write-buffer-manager-limit-stops".to_string(), stops)])
}

pub(super) fn db_stats(db: &DbInner) -> String {
    let (now, lately) = {
        let mut reports = db.reports.lock();
        let now = DbFigures::of(db);
        let before = std::mem::replace(&mut reports.last, now);
        (now.since(&reports.begun), now.since(&before))
    };
    let (total, interval) = (now.seconds(), lately.seconds());
    let up = format!("\n** DB Stats **\nUptime(secs): {total:.1} total, {interval:.1} interval\n");
    [up, now.text("Cumulative"), lately.text("Interval"), db_write_stalls(db)].concat()
}

/// `rocksdb.db-write-stall-stats`.
pub(super) fn db_write_stalls(db: &DbInner) -> String {
    let stops = db.tree.memtable_stops();
    format!("Write Stall (count): write-buffer-manager-limit-stops: {stops}\n")
}
