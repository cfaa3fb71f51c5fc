//! stub
use crate::base::{ColumnFamilyId, Result, SequenceNumber};
pub struct WriteBatch { rep: Vec<u8> }
pub enum Operation<'a> {
    Put { cf: ColumnFamilyId, key: &'a [u8], value: &'a [u8] },
    Delete { cf: ColumnFamilyId, key: &'a [u8] },
    SingleDelete { cf: ColumnFamilyId, key: &'a [u8] },
    Merge { cf: ColumnFamilyId, key: &'a [u8], operand: &'a [u8] },
    DeleteRange { cf: ColumnFamilyId, begin: &'a [u8], end: &'a [u8] },
    BlobIndex { cf: ColumnFamilyId, key: &'a [u8], index: &'a [u8] },
    PutEntity { cf: ColumnFamilyId, key: &'a [u8], entity: &'a [u8] },
    TimedPut { cf: ColumnFamilyId, key: &'a [u8], value: &'a [u8] },
    LogData(&'a [u8]),
}
impl WriteBatch {
    pub fn new() -> Self { todo!() }
    pub fn with_capacity(_: usize) -> Self { todo!() }
    pub fn put_cf(&mut self, _cf: impl Into<ColumnFamilyId>, _k: &[u8], _v: &[u8]) -> Result<()> { todo!() }
    pub fn merge_cf(&mut self, _cf: impl Into<ColumnFamilyId>, _k: &[u8], _v: &[u8]) -> Result<()> { todo!() }
    pub fn delete_range_cf(&mut self, _cf: impl Into<ColumnFamilyId>, _k: &[u8], _v: &[u8]) -> Result<()> { todo!() }
    pub fn delete_cf(&mut self, _cf: impl Into<ColumnFamilyId>, _k: &[u8]) -> Result<()> { todo!() }
    pub fn single_delete_cf(&mut self, _cf: impl Into<ColumnFamilyId>, _k: &[u8]) -> Result<()> { todo!() }
    pub fn count(&self) -> u32 { todo!() }
    pub fn is_empty(&self) -> bool { todo!() }
    pub fn byte_size(&self) -> usize { todo!() }
    pub fn data(&self) -> &[u8] { todo!() }
    pub fn sequence(&self) -> SequenceNumber { todo!() }
    pub fn set_sequence(&mut self, _: SequenceNumber) { todo!() }
    pub fn iter(&self) -> impl Iterator<Item = Result<Operation<'_>>> { std::iter::empty() }
}
