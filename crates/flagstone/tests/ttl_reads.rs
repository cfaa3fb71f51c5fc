//! What is read of a database whose values expire, in parts and by tasks, knows nothing of stamps.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};

use flagstone::base::Code;
use flagstone::db::{TtlAsyncIter, TtlDb, TtlOptions};
use flagstone::env::Env;
use flagstone::options::{
    BottommostLevelCompaction, CompactRangeOptions, ReadOptions, WriteOptions,
};
use testkit::{HandClock, settings};

fn world() -> (Env, Arc<HandClock>) {
    let clock = Arc::new(HandClock::at(1_700_000_000));
    (Env { clock: clock.clone(), ..Env::memory() }, clock)
}

#[test]
fn a_part_of_a_value_knows_nothing_of_its_stamp() {
    let (env, clock) = world();
    let mut options = settings::tiny(&env);
    let blobs =
        [("enable_blob_files", "true"), ("min_blob_size", "100"), ("blob_commit_min_size", "100")];
    settings::set(&mut options, &blobs);
    let db = TtlDb::open("/db", &options, TtlOptions::strict(60)).unwrap();
    let family = db.base().default_column_family().clone();
    let of_size = |size: u32| (0..size).map(|at| (at / 251 * 31 + at) as u8).collect::<Vec<_>>();
    let values: Vec<_> = [0, 3, 99, 5_000, 65_532, 65_533, 131_070, 300_000].map(of_size).into();
    for value in &values {
        db.put(format!("k{}", value.len()), value).unwrap();
    }
    db.base().put("stampless", "abc").unwrap();
    db.base().put("stampless and large", [0; 100_000]).unwrap();
    db.base().flush_all().unwrap();
    let once = ReadOptions { fill_cache: false, ..ReadOptions::default() };
    let unverified = ReadOptions { verify_checksums: false, ..ReadOptions::default() };
    for read in [&once, &unverified, &ReadOptions::default(), &ReadOptions::default()] {
        for value in &values {
            let size = value.len() as u64;
            let key = format!("k{size}");
            let ends =
                [0, 1, 65_535, 65_536, 65_537, size.saturating_sub(1), size, size + 3, u64::MAX];
            for (start, end) in ends.iter().flat_map(|start| ends.map(|end| (*start, end))) {
                let part = db.get_range(read, &family, &key, start..end).unwrap().expect("a value");
                let expected =
                    value.get(start.min(size) as usize..end.min(size) as usize).unwrap_or_default();
                assert!(part.bytes == expected, "{start}..{end} of {size}");
                assert_eq!(part.value_size, size);
            }
        }
        assert!(db.get_range(read, &family, "none", 0..1).unwrap().is_none());
        for (key, size) in [("stampless", "3 bytes"), ("stampless and large", "100000 bytes")] {
            let error = db.get_range(read, &family, key, 0..1).unwrap_err();
            assert!(error.is_corruption() && error.to_string().contains(size), "{error}");
        }
    }
    clock.advance(61);
    for value in &values {
        let key = format!("k{}", value.len());
        assert!(db.get_range(&once, &family, key, 0..1).unwrap().is_none(), "it has expired");
    }
}

#[test]
fn a_value_in_pieces_expires_as_any_other() {
    let (env, clock) = world();
    let db = TtlDb::open("/db", &settings::tiny(&env), TtlOptions::strict(60)).unwrap();
    let family = db.base().default_column_family().clone();
    for (key, pieces) in [("small", 1), ("large", 40)] {
        let mut writer =
            db.put_stream(&family, key, &WriteOptions::default()).unwrap().with_buffer(2000);
        (0..pieces).for_each(|piece| writer.append(&[piece; 1000]).unwrap());
        assert_eq!(writer.size(), 1000 * u64::from(pieces), "its stamp is not of it");
        assert!(db.get(key).unwrap().is_none());
        clock.advance(10);
        writer.commit().unwrap();
        let value = db.get(key).unwrap().expect("it was committed");
        assert!(value.chunks(1000).enumerate().all(|(piece, bytes)| bytes == [piece as u8; 1000]));
        let (expiring, now) =
            (db.get_with_expiry(&ReadOptions::default(), &family, key), env.clock.unix_seconds());
        assert_eq!(
            expiring.unwrap().unwrap().expiry,
            Some(now + 60),
            "it lives from its commit on"
        );
    }
    clock.advance(61);
    let found = ["small", "large"].map(|key| db.get(key).unwrap().is_some());
    assert_eq!(found, [false, false]);
}

#[test]
fn entries_come_one_after_the_other_without_stamps_and_without_what_has_expired() {
    let (env, clock) = world();
    let db = TtlDb::open("/db", &settings::tiny(&env), TtlOptions::strict(60)).unwrap();
    db.put("a", "old").unwrap();
    clock.advance(30);
    ["b", "c"].iter().for_each(|key| db.put(key, "new").unwrap());
    clock.advance(31);
    db.put("d", "").unwrap();
    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    assert!(iter.next_entry().unwrap().is_none(), "nobody has sent it anywhere");
    iter.seek_to_first();
    let entries: Vec<_> =
        std::iter::from_fn(|| iter.next_entry().transpose()).map(Result::unwrap).collect();
    let expected = [("b", "new"), ("c", "new"), ("d", "")];
    assert_eq!(entries, expected.map(|(key, value)| (key.into(), value.into())));
    db.base().put("c", "abc").unwrap();
    let mut iter = db.iter(&ReadOptions::default()).unwrap();
    iter.seek("c");
    assert!(iter.next_entry().unwrap_err().is_corruption(), "it has no stamp");
}

/// Compactions drop what has expired whatever snapshots there are, as in RocksDB: whoever goes over
/// to newer files does without.
#[test]
fn what_expires_stays_for_a_cursor_unless_it_refreshes_itself() {
    for refreshes in [false, true] {
        let (env, clock) = world();
        let db = TtlDb::open("/db", &settings::tiny(&env), TtlOptions::strict(60)).unwrap();
        (0..100).for_each(|key| db.put(format!("{key:03}"), "value").unwrap());
        let options = ReadOptions {
            snapshot: Some(db.base().snapshot()),
            auto_refresh_iterator_with_snapshot: refreshes,
            ..ReadOptions::default()
        };
        let mut iter = db.iter(&options).unwrap();
        iter.seek_to_first();
        clock.advance(61);
        db.base().flush_all().unwrap();
        let family = db.base().default_column_family();
        let forced = CompactRangeOptions {
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            ..CompactRangeOptions::default()
        };
        db.base().compact_range(family, None, None, &forced).unwrap();
        let found =
            std::iter::from_fn(|| iter.next_entry().transpose()).map(Result::unwrap).count();
        assert_eq!(found, if refreshes { 32 } else { 100 });
    }
}

/// The number of a family means another one in another database: that one's values lived as long
/// from then on.
#[test]
fn how_long_values_live_is_not_asked_of_another_database() {
    let (env, _clock) = world();
    let options = settings::tiny(&env);
    let db = TtlDb::open("/db", &options, TtlOptions::strict(60)).unwrap();
    let other = TtlDb::open("/other", &options, TtlOptions::strict(5)).unwrap();
    let foreign = other.base().default_column_family();
    assert_eq!(db.set_ttl(foreign, 9).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(db.ttl(foreign).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(db.ttl(db.base().default_column_family()).unwrap(), 60);
}

/// Polls, as often as the future wants it, and says how often that was.
fn polled<T>(future: impl Future<Output = T>) -> (T, usize) {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = pin!(future);
    for polls in 1.. {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return (done, polls),
            Poll::Pending => std::thread::park(),
        }
    }
    unreachable!()
}

#[test]
fn a_task_reads_what_lives_without_its_stamp() {
    let (env, clock) = world();
    let db = TtlDb::open("/db", &settings::tiny(&env), TtlOptions::strict(60)).unwrap();
    let (family, read) = (db.base().default_column_family().clone(), ReadOptions::default());
    for number in 0..40 {
        db.put(format!("early{number:02}"), "e".repeat(number)).unwrap();
    }
    clock.advance(30);
    for key in ["a", "f", "g", "h"] {
        db.put(key, key.repeat(3)).unwrap();
    }
    let mut standing = db.iter_async(&family, &read).unwrap();
    clock.advance(31);
    let get = |key: &str| polled(db.get_async(&read, &family, key.as_bytes())).0;
    assert_eq!(get("f").unwrap().unwrap(), "fff");
    assert!(get("early05").unwrap().is_none());
    let keys = ["a", "early05", "nothing"].map(|key| key.as_bytes().to_vec());
    let all = polled(db.multi_get_async(&read, &family, keys.into())).0;
    let all: Vec<_> = all.into_iter().map(Result::unwrap).collect();
    assert!(all[0].as_ref().unwrap() == "aaa" && all[1].is_none() && all[2].is_none(), "{all:?}");

    let in_text = |batch: Vec<(Vec<u8>, Vec<u8>)>| {
        let texts = batch.iter().map(|(key, value)| [key.as_slice(), b"=", value].concat());
        texts.map(|text| String::from_utf8(text).unwrap()).collect::<Vec<_>>().join(" ")
    };
    let mut iter = db.iter_async(&family, &read).unwrap();
    let next = |iter: &mut TtlAsyncIter, count| in_text(polled(iter.next_batch(count)).0.unwrap());
    assert_eq!(next(&mut iter, 0), "");
    assert_eq!(next(&mut iter, 1), "a=aaa");
    let (batch, polls) = polled(iter.next_batch(2));
    assert_eq!(in_text(batch.unwrap()), "f=fff g=ggg");
    assert!(polls > 1, "others had their turn while it passed over what has expired");
    assert_eq!(next(&mut iter, 2), "h=hhh");
    assert_eq!((next(&mut iter, 2), next(&mut iter, 2)), (String::new(), String::new()));
    iter.seek(b"g");
    assert_eq!(next(&mut iter, 9), "g=ggg h=hhh");
    assert_eq!(
        polled(standing.next_batch(99)).0.unwrap().len(),
        44,
        "it sees what was there when it was made"
    );

    db.base().put("gap", [0; 9]).unwrap();
    let mut iter = db.iter_async(&family, &read).unwrap();
    iter.seek(b"f");
    assert_eq!(next(&mut iter, 9), "f=fff g=ggg");
    for _ in 0..2 {
        assert!(polled(iter.next_batch(9)).0.unwrap_err().is_corruption());
    }
    iter.seek(b"h");
    assert_eq!(next(&mut iter, 9), "h=hhh");
    assert!(get("gap").unwrap_err().is_corruption());
}
