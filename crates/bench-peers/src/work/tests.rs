use std::sync::Mutex;

use super::*;
use crate::cell::{Effort, Look};
use crate::engine::Entry;
use crate::testing;

/// Has so many entries, and notes what is done.
struct Noting {
    entries: u64,
    done: Mutex<Vec<(&'static str, u64)>>,
}

impl Noting {
    fn note(&self, what: &'static str, bytes: usize) {
        let mut done = self.done.lock().unwrap();
        match done.last_mut() {
            Some((last, sum)) if *last == what => *sum += bytes as u64,
            _ => done.push((what, bytes as u64)),
        }
    }
}

impl Engine for Noting {
    fn put(&self, key: &[u8], value: &[u8], _: Durability) -> Result<()> {
        self.note("put", key.len() + value.len());
        Ok(())
    }

    fn write(&self, _: &[Entry<'_>], _: Durability) -> Result<()> {
        Err("batches are for loads".into())
    }

    fn get(&self, _: &[u8], _: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.note("get", 0);
        Ok(true)
    }

    fn scan(
        &self,
        _: &[u8],
        _: Direction,
        count: usize,
        _: &mut dyn FnMut(&[u8]),
    ) -> Result<usize> {
        self.note("scan", 0);
        Ok(count.min(self.entries as usize))
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        self.note("settle", 0);
        Ok(())
    }

    fn statistics(&self) -> String {
        String::new()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

fn warmed_up(workload: W, scale: f64) -> Vec<(&'static str, u64)> {
    let (cell, effort) = (testing::cell(workload, 800), Effort { scale, seconds: 0.001 });
    let stage = Stage { cell, effort, seed: 1, database: "unused".into(), look: Look::Pages };
    let engine = Noting { entries: stage.keys(), done: Mutex::default() };
    warm_up(&engine, &stage).unwrap();
    engine.done.into_inner().unwrap()
}

/// Phases that read and write began with empty caches and memtables, and the memory of short ones
/// was that of who was faster.
#[test]
fn what_reads_and_writes_begins_full() {
    let data = 0.001 * (2u64 << 30) as f64;
    for workload in [W::ReadWhileWriting, W::YcsbA, W::YcsbB, W::YcsbD, W::YcsbE, W::YcsbF] {
        let [("put", put), ("settle", _), ("scan", _)] = warmed_up(workload, 0.001)[..] else {
            panic!("{workload:?} writes, waits for the background, then reads")
        };
        assert!((put as f64 / data - 1.0).abs() < 0.01, "{workload:?}: {put}");
    }
    let [("put", put), ("settle", _), ("scan", _)] = warmed_up(W::ReadWhileWriting, 1.0)[..] else {
        panic!("the same")
    };
    assert!(put <= WARM_UP_BYTES && WARM_UP_BYTES - put < 1000, "{put}");
    assert!(matches!(warmed_up(W::ReadRandom, 0.001)[..], [("scan", _), ("get", _)]));
    assert!(
        warmed_up(W::Overwrite, 0.001).is_empty() && warmed_up(W::FillRandom, 0.001).is_empty()
    );
}
