//! `rocksdb.dbstats`: what was written since the database was opened, and since the report was
//! asked for last.

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

impl DbFigures {
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

pub(super) fn db_stats(db: &DbInner) -> String {
    let now = DbFigures {
        up_us: db.context.env.clock.now_us().saturating_sub(db.context.opened_at_us),
        bytes: db.context.statistics.get(Ticker::BytesWritten),
        keys: db.context.statistics.get(Ticker::KeysWritten),
        writes: db.context.statistics.get(Ticker::Writes),
        logged_writes: db.context.statistics.get(Ticker::LoggedWrites),
        wal_bytes: db.context.statistics.get(Ticker::WalBytes),
        wal_syncs: db.context.statistics.get(Ticker::WalSyncs),
        stall_us: db.context.statistics.get(Ticker::StallMicros),
    };
    let before = std::mem::replace(&mut *db.last_report.lock(), now);
    let lately = now.since(&before);
    let (total, interval) = (now.seconds(), lately.seconds());
    let up = format!("\n** DB Stats **\nUptime(secs): {total:.1} total, {interval:.1} interval\n");
    [up, now.text("Cumulative"), lately.text("Interval"), db_write_stalls(db)].concat()
}

/// `rocksdb.db-write-stall-stats`.
pub(super) fn db_write_stalls(db: &DbInner) -> String {
    let stops = db.tree.memtable_stops();
    format!("Write Stall (count): write-buffer-manager-limit-stops: {stops}\n")
}
