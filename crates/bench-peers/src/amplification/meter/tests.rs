use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::contender::Contender;
use super::super::task::Exercise;
use super::super::task::tests::task;
use super::*;
use crate::cell::Durability;
use crate::engine;

/// The thread that watches it did not end.
#[test]
fn work_that_panics_is_watched_no_longer() {
    let directory = tempfile::tempdir().unwrap();
    let contender = Contender::Flagstone;
    let tuning = contender.tuning(&task(contender, Exercise::Space), 1);
    let path = directory.path();
    let engine = engine::open(contender.engine(), path, &tuning, Durability::Process).unwrap();
    let meter = Meter { engine: engine.as_ref(), directory: path, live_bytes: AtomicU64::new(0) };
    let measure = || meter.measure(Activity::Load, 0, || panic!("in its midst"));
    assert!(catch_unwind(AssertUnwindSafe(measure)).is_err());
}

#[test]
fn amplification_is_of_what_was_flushed() {
    let written = Written { flushed: 100, compacted: 30, collected: 0 };
    assert_eq!(written.amplification(), Some(1.3));
    assert_eq!((written - written).amplification(), None);
}
