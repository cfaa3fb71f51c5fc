//! Values that expire: stamps that are missing, or mean anything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use flagstone::db::{ColumnFamily, TtlDb, TtlIter, TtlOptions};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{ReadOptions, WriteOptions};
use flagstone::ttl::{STAMP_MIN, TTL_MAX};

use super::input::{Input, ok};
use crate::{settings, steps};

const STEPS_MAX: usize = 40;
const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// How long values live, then writes with stamps and of any bytes, at any time; reads of all kinds
/// must agree.
pub fn ttl(data: &[u8]) {
    let mut input = Input::new(data);
    let ttl_options = TtlOptions {
        ttl_seconds: input.choose(&[0, 1, 60, 1 << 20, TTL_MAX, TTL_MAX + 1]),
        strict_reads: input.u8().is_multiple_of(2),
        eternal_values: input.u8().is_multiple_of(4),
    };
    let env = steps::world(Arc::new(MemoryFileSystem::new()), 1);
    let mut options = settings::tiny(&env);
    settings::set(&mut options, &[("enable_blob_files", "true"), ("min_blob_size", "40")]);
    let Some(db) = ok(TtlDb::open("/db", &options, ttl_options)) else { return };
    let family = db.base().default_column_family().clone();
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        let (what, key) = (input.u8() % 12, input.choose(&KEYS));
        match what {
            0 => drop(ok(db.base().put(key, input.piece()))),
            1 => drop(ok(db.base().merge(key, input.piece()))),
            2 => drop(ok(db.put(key, input.piece()))),
            3 => drop(ok(db.merge(key, input.piece()))),
            4 => {
                let expiry = STAMP_MIN.wrapping_add(input.u64() >> (input.u8() % 64));
                ok(db.put_until(&WriteOptions::default(), &family, key, input.piece(), expiry));
            }
            5 => drop(ok(db.put_for_ever(&WriteOptions::default(), &family, key, input.piece()))),
            6 => drop(ok(db.delete(key))),
            7 => drop(ok(db.set_ttl(&family, u64::from(input.u32())))),
            8 => env.clock.sleep(Duration::from_secs(u64::from(input.u32() >> (input.u8() % 32)))),
            9 => drop(ok(db.base().flush_all())),
            10 => drop(ok(db.base().compact_range(&family, None, None, &Default::default()))),
            _ => read_all(&db, &family),
        }
    }
    read_all(&db, &family);
    ok(db.base().close());
}

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// What lookups find, whole and in part, and what cursors meet.
fn read_all(db: &TtlDb, family: &ColumnFamily) {
    let options = ReadOptions::default();
    let mut found = Contents::new();
    let mut is_sound = true;
    for (key, together) in KEYS.iter().zip(db.multi_get(&KEYS)) {
        let alone =
            db.get_with_expiry(&options, family, key).map(|found| found.map(|found| found.value));
        let part = db.get_range(&options, family, key, 0..u64::MAX);
        is_sound &= alone.is_ok();
        let alone = ok(alone).flatten().map(|value| value.to_vec());
        assert_eq!(ok(together).flatten().map(|value| value.to_vec()), alone, "{key}");
        assert_eq!(ok(part).flatten().map(|part| part.bytes.to_vec()), alone, "{key}");
        found.extend(alone.map(|value| (key.as_bytes().to_vec(), value)));
    }
    for forward in [true, false] {
        let (met, is_whole) = walk(db.iter(&options).expect("a cursor"), forward);
        assert!(!is_sound || is_whole && met == found, "{met:?}, and lookups find {found:?}");
    }
}

/// What a cursor meets, and whether it came to the end.
fn walk(mut iter: TtlIter, forward: bool) -> (Contents, bool) {
    if forward {
        iter.seek_to_first()
    } else {
        iter.seek_to_last()
    }
    let mut met = Contents::new();
    let mut is_whole = true;
    while iter.valid() {
        let value = ok(iter.value().map(<[u8]>::to_vec));
        is_whole &= value.is_some();
        met.extend(value.map(|value| (iter.key().to_vec(), value)));
        if forward { iter.next() } else { iter.prev() }
    }
    (met, is_whole & ok(iter.status()).is_some())
}
