//! One thread of a life.

use std::time::Duration;

use flagstone::base::{Result, SubCode};
use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db};
use flagstone::env::Env;
use flagstone::options::{CompactRangeOptions, FlushOptions, WriteOptions};

use super::life::Progress;
use super::slots::{Slots, Stamp};

/// Keys of one thread.
const KEYS: usize = 120;

/// A thread that is refused tries again after so long.
const PAUSE: Duration = Duration::from_millis(1);

pub struct Writer<'a> {
    pub db: &'a Db,
    pub env: &'a Env,
    pub progress: &'a Progress,
    pub families: [ColumnFamily; 2],
    pub thread: usize,
    pub random: fastrand::Rng,
    pub version: u64,
    pub slots: Slots,
}

impl Writer<'_> {
    /// Works until it is told to stop; what it wrote, or what went wrong.
    pub fn work(mut self) -> std::result::Result<Slots, String> {
        while !self.progress.is_stopping() {
            self.step()?;
        }
        Ok(self.slots)
    }

    fn key(&self, number: usize) -> Vec<u8> {
        format!("{}-{number:04}", self.thread).into_bytes()
    }

    fn step(&mut self) -> std::result::Result<(), String> {
        let number = self.random.usize(..KEYS);
        let family = self.families[self.random.usize(..2)].clone();
        match self.random.u16(..1000) {
            0..4 => self.permit("a flush", |db| db.flush(&family, &FlushOptions::default())),
            4..6 => {
                let options = CompactRangeOptions::default();
                self.permit("a compaction", |db| db.compact_range(&family, None, None, &options))
            }
            6..150 => self.look(number),
            150..180 => self.delete_some(number),
            180..300 => self.delete(number),
            _ => self.put(number),
        }
    }

    /// Something that a full disk may keep from being done.
    fn permit(
        &self,
        what: &str,
        work: impl FnOnce(&Db) -> Result<()>,
    ) -> std::result::Result<(), String> {
        match work(self.db) {
            Err(error) if error.subcode() != SubCode::NoSpace => Err(format!("{what}: {error}")),
            _ => Ok(()),
        }
    }

    fn look(&self, number: usize) -> std::result::Result<(), String> {
        let key = self.key(number);
        let expected = self.slots.get(&key).and_then(|slot| slot.held).map(Stamp::bytes);
        for family in &self.families {
            let found =
                self.db.get_cf(family, &key).map_err(|error| format!("a lookup: {error}"))?;
            if found.as_deref() != expected.as_deref() {
                let slot = self.slots.get(&key);
                return Err(format!(
                    "a lookup of {} found something else: {slot:?}",
                    key.escape_ascii()
                ));
            }
        }
        Ok(())
    }

    fn put(&mut self, number: usize) -> std::result::Result<(), String> {
        self.version += 1;
        let stamp = Stamp::draw(self.version, &mut self.random);
        let (key, value) = (self.key(number), stamp.bytes());
        self.write(std::slice::from_ref(&key), Some(stamp), |batch, family| {
            batch.put_cf(family, &key, &value)
        })
    }

    fn delete(&mut self, number: usize) -> std::result::Result<(), String> {
        let key = self.key(number);
        self.write(std::slice::from_ref(&key), None, |batch, family| batch.delete_cf(family, &key))
    }

    fn delete_some(&mut self, number: usize) -> std::result::Result<(), String> {
        let end = (number + self.random.usize(1..10)).min(KEYS);
        let keys: Vec<_> = (number..end).map(|number| self.key(number)).collect();
        let (first, behind) = (self.key(number), self.key(end));
        self.write(&keys, None, |batch, family| batch.delete_range_cf(family, &first, &behind))
    }

    /// Writes the same to both families.
    fn write(
        &mut self,
        keys: &[Vec<u8>],
        stamp: Option<Stamp>,
        add: impl Fn(&mut WriteBatch, &ColumnFamily) -> Result<()>,
    ) -> std::result::Result<(), String> {
        let mut batch = WriteBatch::new();
        for family in &self.families {
            add(&mut batch, family).map_err(|error| format!("a batch: {error}"))?;
        }
        let options = WriteOptions { sync: self.random.u8(..50) == 0, ..WriteOptions::default() };
        let outcome = self.db.write_with(&options, batch);
        for key in keys {
            let slot = self.slots.entry(key.clone()).or_default();
            match &outcome {
                Ok(()) => slot.acknowledge(stamp),
                Err(_) => slot.perhaps.push(stamp),
            }
        }
        match outcome {
            Ok(()) => self.progress.acknowledged(self.thread),
            Err(error) if error.subcode() == SubCode::NoSpace => {
                self.progress.refused(self.thread);
                self.env.clock.sleep(PAUSE);
            }
            Err(error) => return Err(format!("a write: {error}")),
        }
        Ok(())
    }
}
