//! A place in a log without intact records, as a search behind damage finds it, and whether a log
//! may end with it.
//!
//! A log ends at reserved zeros, or, in a recycled file, at what is left of its earlier life: the
//! rest of an older record, which looks like a damaged one, and then older records. A damaged
//! record of the log itself has the log's number in its header.
//!
//! What the bytes do not tell: a recycled log that ends inside the last record of its earlier life,
//! with nothing behind it, looks as if its own last record were damaged, and counts as torn. And a
//! last record of its own of whose header more than the number is damaged looks in front of older
//! records like the rest of one of these: then the log seems to end before it.

use super::damage::{Damage, DamageKind};
use super::format::{Header, RECYCLABLE_HEADER_SIZE, is_recyclable, number_in_header};
use crate::base::{FileNumber, Result};
use crate::env::{RandomAccessFile, read_until_end};

/// The number that the intact record bears which begins at `offset`; `None` if its header has none.
///
/// # Errors
/// `IoError`.
pub fn number_at(file: &dyn RandomAccessFile, offset: u64) -> Result<Option<u32>> {
    let header = header_at(file, offset)?;
    let is_numbered =
        Header::parse(&header).is_some_and(|header| is_recyclable(header.record_type));
    Ok(number_in_header(&header).filter(|_| is_numbered))
}

fn header_at(file: &dyn RandomAccessFile, offset: u64) -> Result<Vec<u8>> {
    let mut header = vec![0; RECYCLABLE_HEADER_SIZE];
    let read = read_until_end(file, offset, &mut header)?;
    header.truncate(read);
    Ok(header)
}

/// All damage that was met between two intact records.
#[derive(Debug, Clone)]
pub struct Gap {
    first: Damage,
    is_torn: bool,
    has_remainder: bool,
    has_old_records: bool,
}

impl Gap {
    /// One that begins with `damage` in the log `number`.
    ///
    /// # Errors
    /// `IoError`.
    pub fn new(damage: Damage, number: FileNumber, file: &dyn RandomAccessFile) -> Result<Self> {
        let mut gap = Self {
            first: damage.clone(),
            is_torn: false,
            has_remainder: false,
            has_old_records: false,
        };
        gap.judge(&damage, number, file)?;
        Ok(gap)
    }

    /// Goes on with `damage`.
    ///
    /// # Errors
    /// `IoError`.
    pub fn add(
        &mut self,
        damage: &Damage,
        number: FileNumber,
        file: &dyn RandomAccessFile,
    ) -> Result<()> {
        self.first.dropped = self.first.dropped.saturating_add(damage.dropped);
        self.judge(damage, number, file)
    }

    /// Where it begins, what is there, and how many bytes it has in all.
    pub fn damage(&self) -> &Damage {
        &self.first
    }

    /// Whether an intact log may end so.
    pub fn is_end(&self) -> bool {
        !self.is_torn && (self.has_old_records || !self.has_remainder)
    }

    fn judge(
        &mut self,
        damage: &Damage,
        number: FileNumber,
        file: &dyn RandomAccessFile,
    ) -> Result<()> {
        match damage.kind {
            DamageKind::OldRecord { in_fragment: false } => self.has_old_records = true,
            DamageKind::Zeros { in_fragment: false } => {}
            DamageKind::Checksum
            | DamageKind::Length
            | DamageKind::TruncatedHeader
            | DamageKind::TruncatedBody => {
                // The type may be what is damaged: whatever it says, a number may stand there.
                let own = number_in_header(&header_at(file, damage.offset)?);
                let is_own = own == Some(number.0 as u32);
                self.is_torn |= is_own;
                self.has_remainder = true;
            }
            _ => self.is_torn = true,
        }
        Ok(())
    }
}
