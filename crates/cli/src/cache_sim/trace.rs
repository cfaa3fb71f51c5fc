//! A trace in memory: four bytes a request.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::text;

/// Marks a request that takes its object out.
const DELETION: u32 = 1 << 31;

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request(u32);

impl Request {
    /// The object's number, from 0 in the order of first requests.
    #[inline]
    pub fn object(self) -> u32 {
        self.0 & !DELETION
    }

    /// Whether it takes the object out instead of using it.
    #[inline]
    pub fn is_deletion(self) -> bool {
        self.0 & DELETION != 0
    }
}

/// Requests, and the objects that they are for.
#[derive(Debug, Default)]
pub struct Trace {
    /// In the order of time.
    pub requests: Vec<Request>,
    /// The bytes of each object.
    pub sizes: Vec<u64>,
    /// Requests that named another size than the first for their object.
    pub resized: u64,
    /// The size of all objects, if they have the same.
    pub uniform: Option<u64>,
}

impl Trace {
    /// An object's bytes. Where all have the same there is no need to look.
    #[inline]
    pub fn size(&self, object: u32) -> u64 {
        self.uniform.unwrap_or_else(|| self.sizes[object as usize])
    }

    /// A size of a cache for people. Where objects have one byte each, as those that are made up,
    /// it counts objects.
    pub fn shown(&self, size: u64) -> String {
        if self.uniform == Some(1) { size.to_string() } else { text::bytes(size) }
    }

    /// The bytes of all objects.
    pub fn footprint(&self) -> u64 {
        self.sizes.iter().fold(0, |sum, size| sum.saturating_add(*size))
    }
}

/// Turns keys into numbers.
#[derive(Default)]
pub struct Builder {
    trace: Trace,
    numbers: HashMap<u64, u32, BuildHasherDefault<Folding>>,
}

impl Builder {
    /// Adds a use of a key, or its deletion; `false` if there are too many requests or objects. An
    /// object without a size counts as one byte.
    pub fn push(&mut self, key: u64, size: u64, is_deletion: bool) -> bool {
        let Trace { requests, sizes, resized, .. } = &mut self.trace;
        if requests.len() >= u32::MAX as usize || sizes.len() >= DELETION as usize {
            return false;
        }
        let size = size.max(1);
        let object = *self.numbers.entry(key).or_insert_with(|| {
            sizes.push(size);
            (sizes.len() - 1) as u32
        });
        *resized += u64::from(!is_deletion && sizes[object as usize] != size);
        requests.push(Request(if is_deletion { object | DELETION } else { object }));
        true
    }

    /// The trace.
    pub fn finish(mut self) -> Trace {
        let first = self.trace.sizes.first().copied();
        self.trace.uniform =
            first.filter(|first| self.trace.sizes.iter().all(|size| size == first));
        self.trace
    }
}

/// One multiplication for keys of 64 bits.
#[derive(Default)]
struct Folding(u64);

impl Hasher for Folding {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, key: u64) {
        let product = u128::from(key ^ self.0 ^ 0x2d35_8dcc_aa6c_78a5) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
