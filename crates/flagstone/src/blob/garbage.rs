//! How much of each blob file a compaction turns into garbage.
//!
//! Every reference among the compaction's inputs flows in, every reference among its outputs flows
//! out. What of an older blob file flows in and not out has become garbage: no table refers to it
//! any longer. Files written by the compaction itself only have outflow and are left aside.

use std::collections::BTreeMap;

use super::format::BlobIndex;
use crate::base::{Error, FileNumber, Result, counted};

/// New garbage in one blob file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GarbageDelta {
    /// The blob file.
    pub number: FileNumber,
    /// How many more of its blobs nothing refers to.
    pub count: u64,
    /// Bytes of their records, headers and keys included.
    pub bytes: u64,
}

/// References to one blob file among the outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outflow {
    /// How many.
    pub count: u64,
    /// Bytes of the records that they refer to.
    pub bytes: u64,
}

/// Measures what flows in and out of one compaction.
#[derive(Debug, Default)]
pub struct GarbageMeter {
    flows: BTreeMap<FileNumber, Flow>,
    /// The file of the last reference: neighbours mostly lie in the same one, which saves the
    /// look-up.
    last: Option<(FileNumber, Flow)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    count_in: u64,
    bytes_in: u64,
    count_out: u64,
    bytes_out: u64,
}

impl GarbageMeter {
    /// Nothing has flowed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// An input entry of a key of `user_key_size` bytes refers to `index`.
    pub fn flow_in(&mut self, user_key_size: usize, index: &BlobIndex) {
        let bytes = index.record_bytes(user_key_size);
        let flow = self.flow(index.file);
        flow.count_in += 1;
        flow.bytes_in = flow.bytes_in.saturating_add(bytes);
    }

    /// An output entry of a key of `user_key_size` bytes refers to `index`.
    pub fn flow_out(&mut self, user_key_size: usize, index: &BlobIndex) {
        let bytes = index.record_bytes(user_key_size);
        let flow = self.flow(index.file);
        flow.count_out += 1;
        flow.bytes_out = flow.bytes_out.saturating_add(bytes);
    }

    /// Adds what another part of the same compaction measured.
    pub fn absorb(&mut self, mut other: Self) {
        self.put_back();
        other.put_back();
        for (number, flow) in other.flows {
            let sum = self.flows.entry(number).or_default();
            sum.count_in += flow.count_in;
            sum.bytes_in = sum.bytes_in.saturating_add(flow.bytes_in);
            sum.count_out += flow.count_out;
            sum.bytes_out = sum.bytes_out.saturating_add(flow.bytes_out);
        }
    }

    /// Leaves a file out of the result, as its garbage is not what flowed in and not out; what
    /// flowed out.
    pub fn take(&mut self, number: FileNumber) -> Outflow {
        self.put_back();
        let flow = self.flows.remove(&number).unwrap_or_default();
        Outflow { count: flow.count_out, bytes: flow.bytes_out }
    }

    /// The new garbage, by file number; files without any are left out.
    ///
    /// # Errors
    /// `Corruption` if more of an older file flowed out than in: the outputs cannot be right.
    pub fn finish(mut self) -> Result<Vec<GarbageDelta>> {
        self.put_back();
        let older = self.flows.into_iter().filter(|(_, flow)| flow.count_in > 0);
        let deltas = older.map(|(number, flow)| {
            let count = flow.count_in.checked_sub(flow.count_out);
            let bytes = flow.bytes_in.checked_sub(flow.bytes_out);
            let (Some(count), Some(bytes)) = (count, bytes) else {
                return Err(Error::corruption(format!(
                    "the compaction wrote {} to blob file {number} but read only {}",
                    counted(flow.count_out, "reference"),
                    flow.count_in
                )));
            };
            Ok(GarbageDelta { number, count, bytes })
        });
        deltas.filter(|delta| !matches!(delta, Ok(GarbageDelta { count: 0, .. }))).collect()
    }

    fn flow(&mut self, number: FileNumber) -> &mut Flow {
        if self.last.is_none_or(|(last, _)| last != number) {
            self.put_back();
            self.last = Some((number, self.flows.get(&number).copied().unwrap_or_default()));
        }
        &mut self.last.as_mut().expect("set above").1
    }

    fn put_back(&mut self) {
        if let Some((number, flow)) = self.last.take() {
            self.flows.insert(number, flow);
        }
    }
}

#[cfg(test)]
mod tests;
