//! stub
use std::sync::Arc;
use crate::base::{FileNumber, Result};
use crate::base::compression::CompressionType;
use crate::env::File;
pub struct Writer;
pub struct WriterOptions { pub recyclable: bool, pub compression: CompressionType }
impl Writer {
    pub fn new(_: Arc<dyn File>, _: FileNumber, _: WriterOptions) -> Result<Self> { todo!() }
    pub fn add_record(&mut self, _: &[u8]) -> Result<()> { todo!() }
    pub fn offset(&self) -> u64 { todo!() }
    pub fn file(&self) -> &Arc<dyn File> { todo!() }
}
#[derive(Clone, Copy)]
pub enum RecoveryMode { TolerateCorruptedTailRecords, AbsoluteConsistency, PointInTimeRecovery, SkipAnyCorruptedRecords }
pub mod recovery {
    use super::*;
    use crate::base::{Error, SequenceNumber};
    use crate::batch::WriteBatch;
    pub struct Stopped { pub wal: FileNumber, pub error: Error }
    pub struct RecoveryOutcome { pub next_sequence: SequenceNumber, pub stopped: Option<Stopped> }
    pub fn replay(_: &[(FileNumber, Arc<dyn File>)], _: RecoveryMode, _: SequenceNumber, _: impl FnMut(FileNumber, &WriteBatch) -> Result<SequenceNumber>) -> Result<RecoveryOutcome> { todo!() }
}
