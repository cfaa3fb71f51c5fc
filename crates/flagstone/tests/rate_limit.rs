//! A rate limiter in the life of databases that share it, with a clock that only waiting moves.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::sync::Arc;

use common::{create, entries, temporary};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, Ticker};
use flagstone::env::Env;
use flagstone::options::{
    BottommostLevelCompaction, CompactRangeOptions, IoPriority, Options, RateLimiter,
    RateLimiterMode, RateLimiterOptions, WriteOptions,
};
use testkit::{HandClock, compare, settings};

/// A limiter of so many bytes a second, and options of a database in memory that holds it.
fn limited(bytes_per_second: u64, mode: RateLimiterMode) -> (Arc<RateLimiter>, Options) {
    let clock = Arc::new(HandClock::at(1_700_000_000));
    let wanted = RateLimiterOptions { mode, ..RateLimiterOptions::new(bytes_per_second) };
    let limiter = Arc::new(RateLimiter::with_clock(wanted, clock.clone()).unwrap());
    let mut options = settings::tiny(&Env { clock, ..Env::memory() });
    settings::set(
        &mut options,
        &[("write_buffer_size", "1000000"), ("disable_auto_compactions", "true")],
    );
    options.rate_limiter = Some(limiter.clone());
    (limiter, options)
}

fn fill(db: &Db) {
    for number in 0..100 {
        db.put(format!("{number:03}"), vec![number; 1000]).unwrap();
    }
    db.flush_all().unwrap();
}

fn compact(db: &Db) {
    let everything = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    db.compact_range(db.default_column_family(), None, None, &everything).unwrap();
}

/// What flushes and compactions write takes the time that the rate gives it, and is told apart.
#[test]
fn flushes_and_compactions_take_their_time() {
    let (limiter, options) = limited(10_000, RateLimiterMode::WritesOnly);
    let db = Db::open("/db", &options).unwrap();
    fill(&db);
    let flushed = limiter.bytes_through(IoPriority::High);
    assert!(
        flushed >= db.statistics().get(Ticker::FlushWriteBytes) && flushed > 100_000,
        "{flushed}"
    );
    assert_eq!(limiter.bytes_through(IoPriority::Mid), 0);
    let waited = limiter.waited_us() / 1000;
    assert!(
        (flushed / 10 - 200..=flushed / 10 + 200).contains(&waited),
        "{flushed} bytes took {waited} ms"
    );
    compact(&db);
    assert!(
        limiter.bytes_through(IoPriority::Mid) >= db.statistics().get(Ticker::CompactWriteBytes)
    );
    assert_eq!(db.statistics().get(Ticker::RateLimiterMicros), limiter.waited_us());
    let through: u64 =
        IoPriority::ALL.iter().map(|priority| limiter.bytes_through(*priority)).sum();
    assert_eq!(db.statistics().get(Ticker::RateLimiterBytes), through);
    assert_eq!(entries(&db, db.default_column_family()).len(), 100);
    compare::check_files(&db);
}

#[test]
fn databases_that_hold_the_same_limiter_share_it() {
    let (limiter, options) = limited(1 << 30, RateLimiterMode::WritesOnly);
    let (one, other) = (Db::open("/one", &options).unwrap(), Db::open("/other", &options).unwrap());
    fill(&one);
    let of_one = limiter.bytes_through(IoPriority::High);
    fill(&other);
    assert_eq!(limiter.bytes_through(IoPriority::High), 2 * of_one);
    let rate = |db: &Db| {
        db.property(db.default_column_family(), "flagstone.rate-limiter-bytes-per-second")
    };
    assert_eq!(rate(&one).unwrap(), (1u64 << 30).to_string());
    limiter.set_bytes_per_second(5000).unwrap();
    assert_eq!(rate(&other).unwrap(), "5000");
    let before = limiter.waited_us();
    fill(&one);
    assert!(limiter.waited_us() - before > 10_000_000, "the new rate is in force at once");
}

#[test]
fn reads_of_compactions_are_limited_where_they_should_be() {
    for (mode, reads, writes) in [
        (RateLimiterMode::WritesOnly, false, true),
        (RateLimiterMode::ReadsOnly, true, false),
        (RateLimiterMode::AllIo, true, true),
    ] {
        let (limiter, mut options) = limited(100_000, mode);
        let blobs = [
            ("enable_blob_files", "true"),
            ("min_blob_size", "2000"),
            ("blob_commit_min_size", "2000"),
        ];
        settings::set(&mut options, &blobs);
        let db = Db::open("/db", &options).unwrap();
        fill(&db);
        assert_eq!(limiter.bytes_through(IoPriority::High) > 0, writes, "{mode:?}");
        compact(&db);
        let (read, written) = (
            db.statistics().get(Ticker::CompactReadBytes),
            db.statistics().get(Ticker::CompactWriteBytes),
        );
        let least = if reads { read / 2 } else { 0 } + if writes { written } else { 0 };
        assert!(limiter.bytes_through(IoPriority::Mid) >= least, "{mode:?}");
        assert_eq!(entries(&db, db.default_column_family()).len(), 100);
    }
}

/// What is read to find out where holes may be was read as fast as the device goes.
#[test]
fn looking_for_holes_takes_its_time() {
    let (limiter, mut options) = limited(1 << 30, RateLimiterMode::ReadsOnly);
    let blobs = [
        ("enable_blob_files", "true"),
        ("min_blob_size", "2000"),
        ("blob_commit_min_size", "2000"),
        // A job's thread does what the job leaves to do: none finds the job's version in the way.
        ("max_background_jobs", "1"),
    ];
    settings::set(&mut options, &blobs);
    let db = Db::open("/db", &options).unwrap();
    for round in 1..3u8 {
        // The second time every other value dies.
        for number in (0..40u8).step_by(usize::from(round)) {
            db.put(format!("{number:03}"), vec![round; 40_000]).unwrap();
        }
        db.flush_all().unwrap();
    }
    compact(&db);
    let before = limiter.bytes_through(IoPriority::Low);
    db.set_options(db.default_column_family(), &[("disable_auto_compactions", "false")]).unwrap();
    db.wait_for_compactions().unwrap();
    assert!(db.statistics().get(Ticker::BlobPunchedBytes) > 0);
    assert_eq!(db.statistics().get(Ticker::BlobGcRelocatedKeys), 0, "nothing was moved");
    assert!(limiter.bytes_through(IoPriority::Low) > before);
}

#[test]
fn a_write_asks_if_it_is_told_to() {
    let (limiter, options) = limited(1000, RateLimiterMode::WritesOnly);
    let db = Db::open("/db", &options).unwrap();
    let write = |rate_limiter_priority| {
        let mut batch = WriteBatch::new();
        batch.put(b"key", [1; 5000]).unwrap();
        db.write_with(&WriteOptions { rate_limiter_priority, ..WriteOptions::default() }, batch)
            .unwrap();
    };
    write(None);
    assert_eq!(limiter.bytes_through(IoPriority::User), 0);
    write(Some(IoPriority::User));
    assert!(limiter.bytes_through(IoPriority::User) > 5000 && limiter.waited_us() > 4_000_000);
}

/// Closing waited for a limiter that let a byte a second pass.
#[test]
fn closing_waits_for_no_limiter() {
    let (limiter, mut options) = limited(1 << 30, RateLimiterMode::WritesOnly);
    settings::set(&mut options, &[("avoid_flush_during_shutdown", "false")]);
    let db = Db::open("/db", &options).unwrap();
    limiter.set_bytes_per_second(1).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"key", [1; 5000]).unwrap();
    db.write_with(&WriteOptions { disable_wal: true, ..WriteOptions::default() }, batch).unwrap();
    db.close().unwrap();
    assert!(limiter.waited_us() <= 1_000_000, "{}", limiter.waited_us());
    drop(db);
    options.rate_limiter = None;
    let db = Db::open("/db", &options).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap().len(), 5000);
}

/// Around the system's cache, the thread that writes behind is the one that waits.
#[test]
fn what_is_written_directly_is_limited_too() {
    let directory = temporary();
    let limiter = Arc::new(RateLimiter::new(RateLimiterOptions::new(1 << 30)).unwrap());
    let mut options = create();
    options.rate_limiter = Some(limiter.clone());
    options.use_direct_io_for_flush_and_compaction = true;
    let Ok(db) = Db::open(directory.path().join("db"), &options) else { return };
    // Of whatever priority: on a slow machine a flush may hold writers up, and is then as urgent as
    // they are.
    let asked =
        || IoPriority::ALL.iter().map(|priority| limiter.bytes_through(*priority)).sum::<u64>();
    fill(&db);
    let (flushed, of_flush) = (db.statistics().get(Ticker::FlushWriteBytes), asked());
    assert!(of_flush >= flushed && flushed > 0, "{of_flush} of {flushed}");
    compact(&db);
    let (compacted, of_compaction) =
        (db.statistics().get(Ticker::CompactWriteBytes), asked() - of_flush);
    assert!(of_compaction >= compacted && compacted > 0, "{of_compaction} of {compacted}");
    assert_eq!(entries(&db, db.default_column_family()).len(), 100);
}

#[test]
fn a_limiter_is_made_by_name() {
    let mut options = create();
    assert_eq!(options.get("rate_limiter_bytes_per_sec").unwrap(), "0");
    options.set("rate_limiter_bytes_per_sec", "64m").unwrap();
    assert_eq!(options.get("rate_limiter_bytes_per_sec").unwrap(), (64 << 20).to_string());
    assert_eq!(options.rate_limiter.as_ref().unwrap().bytes_per_second(), 64 << 20);
    options.set("rate_limiter_bytes_per_sec", "0").unwrap();
    assert!(options.rate_limiter.is_none());
}

/// `rate_limiter_auto_tuned` was no option: whichever comes first, the limiter is made with both,
/// and it follows what there is to do.
#[test]
fn a_limiter_that_tunes_itself_is_made_by_name() {
    const LIMIT: u64 = 1_000_000;
    for text in [
        "rate_limiter_auto_tuned=true;rate_limiter_bytes_per_sec=1000000",
        "rate_limiter_bytes_per_sec=1000000;rate_limiter_auto_tuned=true",
    ] {
        let (_, mut options) = limited(1, RateLimiterMode::WritesOnly);
        options.set("rate_limiter_bytes_per_sec", "0").unwrap();
        options.set_all(text).unwrap();
        let db = Db::open("/db", &options).unwrap();
        let rate = || {
            let rate =
                db.property(db.default_column_family(), "flagstone.rate-limiter-bytes-per-second");
            rate.unwrap().parse::<u64>().unwrap()
        };
        assert_eq!(rate(), LIMIT / 2, "it begins in the middle");
        // Hundreds of periods in which nothing is asked for.
        fill(&db);
        options.env.clock.sleep(std::time::Duration::from_secs(60));
        fill(&db);
        assert_eq!(rate(), LIMIT / 20);
        // What was set is told, and not what that is now.
        assert_eq!(options.get("rate_limiter_bytes_per_sec").unwrap(), LIMIT.to_string());
        assert_eq!(options.get("rate_limiter_auto_tuned").unwrap(), "true");
        options.set("rate_limiter_auto_tuned", "false").unwrap();
        assert_eq!(
            options.rate_limiter.as_ref().unwrap().options(),
            RateLimiterOptions::new(LIMIT)
        );
    }
    let mut options = create();
    assert_eq!(options.get("rate_limiter_auto_tuned").unwrap(), "false");
    options.set("rate_limiter_auto_tuned", "1").unwrap();
    assert!(
        options.rate_limiter.is_none() && options.get("rate_limiter_auto_tuned").unwrap() == "true"
    );
    assert!(options.set("rate_limiter_auto_tuned", "perhaps").is_err());
}
