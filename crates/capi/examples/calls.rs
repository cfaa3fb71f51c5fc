//! What `calls.c` measures, through Rust: the same keys, values, options and calls.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures the time of the machine")]

use std::path::Path;
use std::time::Instant;

use flagstone::db::{Db, Iter};
use flagstone::options::{CompactRangeOptions, Options, ReadOptions};

type Fault = Box<dyn std::error::Error>;

const VALUE_SIZE: usize = 100;
const KEYS_A_CALL: usize = 32;
const STEPS: usize = 10;

struct Drawn {
    seed: u64,
    keys: u64,
}

impl Drawn {
    fn number(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed
    }

    fn key(&mut self) -> [u8; 16] {
        let mut key = [0; 16];
        let mut number = self.number() % self.keys;
        for digit in key.iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        key
    }

    fn value(&mut self) -> [u8; VALUE_SIZE] {
        let mut value = [b'v'; VALUE_SIZE];
        for piece in value[..VALUE_SIZE / 2].chunks_mut(8) {
            piece.copy_from_slice(&self.number().to_le_bytes()[..piece.len()]);
        }
        value
    }
}

fn opened(directory: &Path) -> flagstone::Result<Db> {
    let mut options = Options::default();
    options.create_if_missing = true;
    options.set("compression", "kLZ4Compression")?;
    options.set("write_buffer_size", "64M")?;
    options.set("max_background_jobs", "2")?;
    options.set("block_cache", "1G")?;
    options.set("filter_policy", "bloomfilter:10")?;
    options.set("enable_blob_files", "false")?;
    Db::open(directory, &options)
}

fn measure(
    name: &str,
    count: u64,
    mut call: impl FnMut() -> flagstone::Result<u64>,
) -> Result<(), Fault> {
    let mut found = 0;
    for _ in 0..count / 4 {
        found += call()?;
    }
    let begin = Instant::now();
    for _ in 0..count {
        found += call()?;
    }
    let cost = begin.elapsed().as_secs_f64() * 1e9 / count as f64;
    if found == 0 {
        return Err("nothing was found".into());
    }
    println!("{name} {cost:.1}");
    Ok(())
}

fn walk(cursor: &mut Iter, key: &[u8]) -> flagstone::Result<u64> {
    let mut found = 0;
    cursor.seek(key);
    for _ in 0..STEPS {
        if !cursor.valid() {
            break;
        }
        found += u64::from(cursor.value()?[0] % 2);
        cursor.next();
    }
    Ok(found)
}

fn main() -> Result<(), Fault> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("usage: calls DIRECTORY [KEYS]")?;
    let keys = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let mut drawn = Drawn { seed: 88_172_645_463_325_252, keys };
    let db = opened(Path::new(&directory))?;
    let begin = Instant::now();
    for _ in 0..keys {
        let key = drawn.key();
        db.put(key, drawn.value())?;
    }
    println!("fillrandom {:.1}", begin.elapsed().as_secs_f64() * 1e9 / keys as f64);
    let family = db.default_column_family().clone();
    db.compact_range(&family, None, None, &CompactRangeOptions::default())?;
    let read = ReadOptions::default();
    for name in ["warm", "get"] {
        measure(name, keys, || {
            let value = db.get_with(&read, &family, drawn.key())?.map(|value| value.to_vec());
            Ok(value.map_or(0, |value| 1 + u64::from(value[0] % 2)))
        })?;
    }
    measure("get_pinned", keys, || {
        let value = db.get_with(&read, &family, drawn.key())?;
        Ok(value.map_or(0, |value| 1 + u64::from(value[0] % 2)))
    })?;
    let mut cursor = db.iter_cf(&family, &read)?;
    measure("seek+10", keys / 4, || walk(&mut cursor, &drawn.key()))?;
    measure("multi_get32", keys / 16, || {
        let keys: [[u8; 16]; KEYS_A_CALL] = std::array::from_fn(|_| drawn.key());
        let mut found = 0;
        for value in db.multi_get_with(&read, &family, &keys) {
            found += u64::from(value?.map(|value| value.to_vec()).is_some());
        }
        Ok(found)
    })
}
