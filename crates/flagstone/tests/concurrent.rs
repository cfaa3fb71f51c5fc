//! Writers, readers, flushes, compactions and changes of options at the same time.

#![expect(clippy::disallowed_methods, reason = "the test brings its own threads and time")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flagstone::base::Snapshot;
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{ReadOptions, WriteOptions};
use testkit::{compare, settings};

const WRITERS: u64 = 3;
const ACCOUNTS: u64 = 40;
/// What each writer's accounts hold together, in both families.
const TOTAL: u64 = 1_000_000;

fn account(writer: u64, number: u64) -> String {
    format!("{writer}/{number:03}")
}

/// A balance, padded so that some go to blob files.
fn balance(amount: u64, number: u64) -> Vec<u8> {
    let mut text = format!("{amount} ").into_bytes();
    text.resize(text.len() + if number.is_multiple_of(4) { 400 } else { 10 }, b'.');
    text
}

fn amount(value: &[u8]) -> u64 {
    let end = value.iter().position(|byte| *byte == b' ').expect("a blank");
    std::str::from_utf8(&value[..end]).expect("digits").parse().expect("a number")
}

struct Bank {
    db: Db,
    done: AtomicBool,
    transfers: AtomicU64,
    audits: AtomicU64,
}

impl Bank {
    /// Moves money between a writer's accounts, over both families, now and then deleting and
    /// recreating one.
    fn transfer(&self, writer: u64) {
        let other = self.db.column_family("other").expect("it was created");
        let mut random = fastrand::Rng::with_seed(writer);
        let mut balances = vec![0; ACCOUNTS as usize];
        balances[0] = TOTAL;
        while !self.done.load(Ordering::Relaxed) {
            let (from, to) = (random.u64(..ACCOUNTS), random.u64(..ACCOUNTS));
            let moved = random.u64(..=balances[from as usize]);
            balances[from as usize] -= moved;
            balances[to as usize] += moved;
            let mut batch = WriteBatch::new();
            for number in [from, to] {
                let (key, amount) = (account(writer, number), balances[number as usize]);
                let family =
                    if number.is_multiple_of(2) { self.db.default_column_family() } else { &other };
                let added = match amount {
                    0 => batch.delete_cf(family, key.as_bytes()),
                    _ => batch.put_cf(family, key.as_bytes(), balance(amount, number)),
                };
                added.expect("a small batch");
            }
            let options = WriteOptions { sync: random.u8(..20) == 0, ..WriteOptions::default() };
            self.db.write_with(&options, batch).expect("a write");
            self.transfers.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// At every moment each writer's accounts hold nothing or the total.
    fn audit(&self, seed: u64) {
        let other = self.db.column_family("other").expect("it was created");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut kept: Option<(Snapshot, [u64; WRITERS as usize])> = None;
        while !self.done.load(Ordering::Relaxed) {
            let snapshot = self.db.snapshot();
            let options =
                ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
            let sums =
                match random.u8(..3) {
                    0 => self.sums_of_lookups(&options),
                    1 => {
                        let both = [self.db.default_column_family(), &other];
                        sums(both.map(|family| {
                            compare::scan_back(&self.db, family, &options).expect("a scan")
                        }))
                    }
                    _ => {
                        let both = [self.db.default_column_family(), &other];
                        sums(both.map(|family| {
                            compare::scan(&self.db, family, &options).expect("a scan")
                        }))
                    }
                };
            assert!(sums.iter().all(|sum| [0, TOTAL].contains(sum)), "{sums:?}");
            if let Some((snapshot, then)) = &kept {
                let options =
                    ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
                assert_eq!(self.sums_of_lookups(&options), *then, "a snapshot moved");
            }
            if random.u8(..10) == 0 {
                kept = Some((snapshot, sums));
            }
            self.audits.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn sums_of_lookups(&self, options: &ReadOptions) -> [u64; WRITERS as usize] {
        let other = self.db.column_family("other").expect("it was created");
        std::array::from_fn(|writer| {
            let keys: Vec<_> = (0..ACCOUNTS).map(|number| account(writer as u64, number)).collect();
            let joint = self.db.multi_get_with(options, self.db.default_column_family(), &keys);
            let first: u64 = joint
                .into_iter()
                .flat_map(|found| found.expect("a lookup"))
                .map(|v| amount(&v))
                .sum();
            let second = keys
                .iter()
                .filter_map(|key| self.db.get_with(options, &other, key).expect("a lookup"));
            first + second.map(|value| amount(&value)).sum::<u64>()
        })
    }

    /// Everything that changes the tree, but not its contents.
    fn disturb(&self) {
        let mut random = fastrand::Rng::with_seed(99);
        let mut number = 0;
        while !self.done.load(Ordering::Relaxed) {
            let families = self.db.column_families();
            let family = &families[random.usize(..2)];
            match random.u8(..6) {
                0 => self.db.flush_all().expect("a flush"),
                1 => self
                    .db
                    .compact_range(family, None, None, &Default::default())
                    .expect("a compaction"),
                2 => {
                    let changes = settings::random_live(&mut random);
                    self.db.set_options(family, &changes).expect("live options");
                }
                3 => {
                    number += 1;
                    let extra = self
                        .db
                        .create_column_family(&format!("extra{number}"), &Default::default());
                    let extra = extra.expect("a new family");
                    self.db.put_cf(&extra, "k", "v").expect("a write");
                    self.db.drop_column_family(&extra).expect("it may be dropped");
                    assert_eq!(
                        self.db.get_cf(&extra, "k").expect("a lookup").expect("it is pinned"),
                        "v"
                    );
                }
                4 => drop(self.db.verify(|_| {})),
                _ => self.db.sync_wal().expect("a sync"),
            }
            std::thread::sleep(Duration::from_millis(random.u64(..20)));
        }
    }
}

fn sums(families: [compare::Entries; 2]) -> [u64; WRITERS as usize] {
    let mut sums = [0; WRITERS as usize];
    for (key, value) in families.iter().flatten() {
        sums[usize::from(key[0] - b'0')] += amount(value);
    }
    sums
}

#[test]
fn money_is_neither_made_nor_lost() {
    let seconds = std::env::var("FLAGSTONE_BANK_SECONDS").ok().and_then(|text| text.parse().ok());
    let mut options = settings::tiny(&Env::memory());
    let changes = [
        ("enable_blob_files", "true"),
        ("min_blob_size", "300"),
        ("max_background_jobs", "4"),
        ("enable_blob_garbage_collection", "true"),
    ];
    settings::set(&mut options, &changes);
    let listed = [("default", options.cf.clone()), ("other", options.cf.clone())];
    let db = Db::open_with_families("/db", &options, &listed).expect("a new database");
    let bank = Bank {
        db,
        done: AtomicBool::new(false),
        transfers: AtomicU64::new(0),
        audits: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let bank = &bank;
            scope.spawn(move || bank.stop_all_on_panic(|| bank.transfer(writer)));
        }
        for seed in 0..2 {
            let bank = &bank;
            scope.spawn(move || bank.stop_all_on_panic(|| bank.audit(seed)));
        }
        scope.spawn(|| bank.stop_all_on_panic(|| bank.disturb()));
        let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(3));
        while Instant::now() < end && !bank.done.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        bank.done.store(true, Ordering::Relaxed);
    });
    println!("{:?} transfers, {:?} audits", bank.transfers, bank.audits);
    compare::check_files(&bank.db);
    bank.db.close().expect("a clean close");
    drop(bank);
    let db = Db::open_with_families("/db", &options, &listed).expect("it opens again");
    let bank = Bank {
        db,
        done: AtomicBool::new(false),
        transfers: AtomicU64::new(0),
        audits: AtomicU64::new(0),
    };
    assert_eq!(bank.sums_of_lookups(&ReadOptions::default()), [TOTAL; WRITERS as usize]);
}

impl Bank {
    fn stop_all_on_panic(&self, work: impl FnOnce()) {
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _stop = Stop(&self.done);
        work();
    }
}
