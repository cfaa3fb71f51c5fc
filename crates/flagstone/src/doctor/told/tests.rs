use super::super::diagnose::diagnose;
use super::*;

/// A LOG of RocksDB 11.8, cut down, with other figures: its first report is older.
const LOG: &str = "\
2026/11/25-23:22:34.308827 9501 [db/db_impl/db_impl.cc:1532] ------- DUMPING STATS -------
2026/11/25-23:22:34.308837 9501 [db/db_impl/db_impl.cc:1534]\u{20}
** DB Stats **
Uptime(secs): 600.1 total, 600.1 interval
Cumulative stall: 00:09:0.000 H:M:S, 90.0 percent
2026/11/25-23:32:34.308827 9501 [db/db_impl/db_impl.cc:1532] ------- DUMPING STATS -------
** DB Stats **
Uptime(secs): 1200.1 total, 600.0 interval
Cumulative writes: 300K writes, 300K keys, 300 commit groups, 1.0 writes per commit group, ingest: 0.00 GB, 0.32 MB/s
Cumulative WAL: 300K writes, 12 syncs, 300.00 writes per sync, written: 0.00 GB, 0.32 MB/s
Cumulative stall: 00:10:1.500 H:M:S, 50.1 percent
Interval stall: 00:01:1.500 H:M:S, 10.3 percent
Write Stall (count): write-buffer-manager-limit-stops: 2

** Compaction Stats [photos, old] **
Level    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB)
Write Stall (count): cf-l0-file-count-limit-delays-with-ongoing-compaction: 7, \
l0-file-count-limit-delays: 8, l0-file-count-limit-stops: 1, memtable-limit-delays: 0, memtable-limit-stops: 3, \
pending-compaction-bytes-delays: 2, pending-compaction-bytes-stops: 0, total-delays: 10, total-stops: 4
Block cache AutoHyperClockCache@0x56514038a7c0#9483 capacity: 32.00 MB seed: 1177849269 usage: 4.00 KB table_size: 64
Block cache entry stats(count,size,portion): Misc(1,0.00 KB,0%)
2026/11/25-23:32:34.308887 9501 [db/db_impl/db_impl.cc:1031] STATISTICS:
 rocksdb.block.cache.miss COUNT : 900000
 rocksdb.block.cache.hit COUNT : 300000
 rocksdb.block.cache.add COUNT : 800000
 rocksdb.db.get.micros P50 : 0.000000 P95 : 0.000000 P99 : 0.000000 P100 : 0.000000 COUNT : 0 SUM : 0
2026/11/25-23:32:34.343569 9483 [db/db_impl/db_impl_compaction_flush.cc:2370] [default] Manual flush finished, status: OK
";

fn facts() -> Facts {
    let family = |name: &str| FamilyFacts { name: name.to_string(), ..FamilyFacts::default() };
    let database =
        DatabaseFacts { is_running: false, knows_cache: false, ..DatabaseFacts::default() };
    Facts { database, families: vec![family("default"), family("photos, old")], ..Facts::default() }
}

#[test]
fn rocksdb_s_log_tells_why_writers_waited() {
    let mut found = facts();
    found.add_statistics(LOG).expect("reports");
    let told = &found.database;
    assert_eq!((told.open_seconds, told.stall_us), (1200, 601_500_000));
    assert_eq!((told.keys_written, told.wal_syncs), (300_000, 12));
    assert_eq!((told.cache_bytes, told.knows_cache), (32 << 20, true));
    assert_eq!(
        (told.cache_hits, told.cache_misses, told.cache_evictions),
        (300_000, 900_000, 800_000 - 8192)
    );
    assert_eq!(told.held_up_by_all_memtables, 2);
    let [family, held_up] = &found.families[..] else { panic!("two families") };
    assert_eq!(*family, facts().families[0]);
    assert_eq!((held_up.held_up_by_level0, held_up.held_up_by_memtables), (9, 3));
    assert_eq!((held_up.held_up_by_pending_bytes, held_up.held_up_by_blob_space), (2, 0));
    let said = &diagnose(&found)[0].what;
    let expected = "writers were delayed or stopped for 601 of the 1200 s since the database was opened, mostly by tables \
                    waiting in level 0 (family 'photos, old': 9 of 16 times)";
    assert_eq!(said, expected);
}

/// A LOG of RocksDB 7.8, cut down, with other figures. Of what it calls these counts nothing was
/// known.
const OLD_LOG: &str = "\
** Compaction Stats [default] **
Uptime(secs): 100.0 total, 100.0 interval
Stalls(count): 7 level0_slowdown, 6 level0_slowdown_with_compaction, 1 level0_numfiles, \
1 level0_numfiles_with_compaction, 2 stop for pending_compaction_bytes, 3 slowdown for pending_compaction_bytes, \
4 memtable_compaction, 0 memtable_slowdown, interval 9 total count
Block cache LRUCache@0x56514038a7c0#9483 capacity: 32.00 MB collections: 1 last_copies: 1 last_secs: 5.1e-05 secs_since: 1
 rocksdb.block.cache.miss COUNT : 9000
 rocksdb.block.cache.add COUNT : 8000
";

#[test]
fn an_older_rocksdb_s_log_tells_it_too() {
    let mut found = facts();
    found.add_statistics(OLD_LOG).expect("a report");
    let family = &found.families[0];
    let told =
        [family.held_up_by_level0, family.held_up_by_pending_bytes, family.held_up_by_memtables];
    assert_eq!(told, [8, 5, 4]);
    // The cache still had room for all of them.
    assert_eq!((found.database.cache_misses, found.database.cache_evictions), (9000, 0));
}

/// Sums and products of what a damaged log says went beyond 64 bits.
#[test]
fn no_number_is_too_large() {
    let most = u64::MAX;
    let mut found = facts();
    let report = format!(
        "Uptime(secs): {most} total, 1.0 interval\nCumulative stall: {most}:00:0.000 H:M:S, 1.0 percent\n\
         Cumulative writes: {most}G writes, {most}G keys, 1 commit groups\n\
         Write Stall (count): write-buffer-manager-limit-stops: {most}\n** Compaction Stats [default] **\n\
         Write Stall (count): l0-file-count-limit-delays: {most}, memtable-limit-delays: {most}, \
         memtable-limit-stops: {most}\n\
         rocksdb.wal.synced COUNT : {most}\nrocksdb.block.cache.miss COUNT : {most}\n\
         rocksdb.block.cache.hit COUNT : 1\nflagstone.block.cache.evictions COUNT : {most}\n\
         rocksdb.blobdb.gc.bytes.relocated COUNT : {most}\nflagstone.file.reopens COUNT : {most}\n\
         flagstone.rate.limiter.micros COUNT : {most}\nrocksdb.bytes.written COUNT : {most}\n** State **\n\
         writers held up : {most} us\nwriters stopped : {most} s\nblock cache capacity : 1 bytes\n\
         ** Who keeps what **\nsnapshots : 1\n  of 1, for {most} s, {most} writes ago, taken at a\niterators : 1\n  \
         of family default, for {most} s, made at b, one of 1 that keep 1 files of {most} bytes and memtables of {most} \
         bytes, which\n"
    );
    found.add_statistics(&report).expect("a report");
    found.families[0].table_bytes = most;
    let said: String = diagnose(&found).iter().map(|finding| format!("{finding}\n")).collect();
    for expected in
        ["writers were delayed or stopped", "100% of", "a snapshot taken", "an iterator created"]
    {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    // Who syncs that often within a second.
    found.database.open_seconds = 1;
    diagnose(&found);
}

/// They reached the terminal of who asked.
#[test]
fn control_characters_are_not_told_on() {
    let mut found = facts();
    let report = "** State **\nstate : poisoned \u{1b}[2J\n** Who keeps what **\nsnapshots : 1\n\
                  of 1, for 2 s, 3 writes ago, taken at \u{7}a\niterators : 1\nof family x, for 1 s, made at \u{9b}b, \
                  one of 1 that keep 1 files of 5 bytes and memtables of 6 bytes\n";
    found.add_statistics(report).expect("a report");
    let DatabaseFacts { state, snapshot_taken_at, iterator_made_at, .. } = found.database;
    assert_eq!([state, snapshot_taken_at, iterator_made_at], ["poisoned ?[2J", "?a", "?b"]);
}

/// A program's own line became a finding.
#[test]
fn only_a_report_s_own_lines_are_of_the_database() {
    let mut found = facts();
    let report = "state : starting\n** State **\nwriters stopped : 7 s\n** Who keeps what **\nsnapshots : 0\n\
                  iterators : 0\nstate : stopping\nwriters stopped : 8 s\n** DB Stats **\nsnapshots : 9\n";
    found.add_statistics(report).expect("a report");
    let DatabaseFacts { state, stopped_seconds, .. } = found.database;
    assert_eq!((state.as_str(), stopped_seconds), ("healthy", 7));
}

#[test]
fn what_says_nothing_of_a_database_is_refused() {
    let of_a_program = ["state : starting", "snapshots : 3", "** Jobs **\nwriters : 2"];
    let texts = ["", "hello", "2026/11/25 started : yes", "Uptime(secs): soon", "a COUNT : b"];
    for text in texts.into_iter().chain(of_a_program) {
        let error = facts().add_statistics(text).expect_err(text);
        assert!(error.to_string().contains("no report of a running database"), "{error}");
    }
}

/// Whatever is cut off or mixed in: no panic, and nothing of what is not told changes.
#[test]
fn half_a_report_tells_what_it_holds() {
    for end in 0..LOG.len() {
        let mut found = facts();
        let _ = found.add_statistics(&LOG[..end]);
        assert_eq!(found.database.state, "healthy");
    }
}
