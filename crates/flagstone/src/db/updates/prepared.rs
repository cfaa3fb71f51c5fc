//! Transactions that are prepared in the WALs: the commit hands out what was prepared.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::{Error, FileNumber, Result, SequenceNumber};
use crate::batch::{BatchView, TransactionPolicy, WriteBatch, commit_stamps};
use crate::db::DbInner;
use crate::db::updates::{ignoring_absence, open_wal, readable_wals};
use crate::wal::{Event, SectionStep, Sections};

/// Sections whose transactions were not decided where they were last met, by name.
#[derive(Default)]
pub(in crate::db) struct PreparedSections(BTreeMap<Vec<u8>, WriteBatch>);

/// A record with markers, in a WAL.
#[derive(Clone, Copy)]
pub(in crate::db) struct Marked<'a> {
    pub(in crate::db) batch: BatchView<'a>,
    pub(in crate::db) wal: FileNumber,
}

impl PreparedSections {
    /// What a record writes: its plain operations, and those of the transactions that it commits;
    /// and the number behind them. A transaction that was prepared in a WAL that is gone is passed
    /// over.
    ///
    /// # Errors
    /// `NotSupported` for transactions that RocksDB writes before they are committed.
    pub(in crate::db) fn read(
        &mut self,
        inner: &Arc<DbInner>,
        record: Marked<'_>,
    ) -> Result<(WriteBatch, SequenceNumber)> {
        let mut sections = Sections::new(record.batch, false);
        let (mut written, mut section) = (WriteBatch::new(), WriteBatch::new());
        written.set_sequence(record.batch.sequence());
        while let Some(step) = sections.step()? {
            match step {
                SectionStep::Plain { encoded, operation, .. } => {
                    written.push_encoded(encoded, operation.is_counted())?;
                }
                SectionStep::Prepared { operation, encoded, .. } => {
                    section.push_encoded(encoded, operation.is_counted())?;
                }
                SectionStep::EndSection { policy, .. }
                    if policy != TransactionPolicy::WriteCommitted =>
                {
                    return Err(Error::not_supported(
                        "write-prepared transactions of RocksDB are not handed out",
                    ));
                }
                SectionStep::EndSection { xid, .. } => {
                    self.0.insert(xid.to_vec(), std::mem::take(&mut section));
                }
                SectionStep::Commit { xid, timestamp } => {
                    let prepared = match self.0.remove(xid) {
                        Some(prepared) => Some(prepared),
                        None => find(inner, xid, record)?,
                    };
                    // If it is gone, what follows begins behind it.
                    let Some(prepared) = prepared else { continue };
                    sections.skip(u64::from(prepared.count()));
                    let stamped = timestamp.map(|stamp| {
                        commit_stamps(prepared.as_view(), stamp, |id| inner.tree.stamp_size(id))
                    });
                    match stamped.transpose()?.flatten() {
                        Some(stamped) => written.append(&WriteBatch::from_bytes(stamped)?)?,
                        None => written.append(&prepared)?,
                    }
                }
                SectionStep::Rollback { xid } => drop(self.0.remove(xid)),
            }
        }
        // As bytes, which do not tell which keys end in timestamps.
        Ok((WriteBatch::from_bytes(written.into_bytes())?, sections.next_sequence()))
    }
}

/// Looks for the section of a transaction in the WALs up to the one in which it is committed.
fn find(inner: &Arc<DbInner>, xid: &[u8], commit: Marked<'_>) -> Result<Option<WriteBatch>> {
    let mut found = None;
    for (wal, limit) in readable_wals(inner).iter().filter(|(wal, _)| wal.number <= commit.wal) {
        let Some(mut opened) = ignoring_absence(open_wal(inner, wal, *limit))? else { continue };
        loop {
            match opened.reader.next_event()? {
                Event::End => break,
                Event::Damage(_) => continue,
                Event::Record(_) => {}
            }
            let Ok(batch) = BatchView::parse(opened.reader.record()) else { continue };
            if batch.sequence() > commit.batch.sequence() {
                break;
            }
            if !batch.validate().is_ok_and(|summary| summary.has_transaction_markers) {
                continue;
            }
            let (mut sections, mut section) = (Sections::new(batch, false), WriteBatch::new());
            while let Some(step) = sections.step()? {
                match step {
                    SectionStep::Prepared { operation, encoded, .. } => {
                        section.push_encoded(encoded, operation.is_counted())?;
                    }
                    SectionStep::EndSection { xid: prepared, .. } => {
                        let section = std::mem::take(&mut section);
                        found = if prepared == xid { Some(section) } else { found };
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(found)
}
