//! Making WALs: over an obsolete one where one is kept for that, with space reserved.

mod reserve;

use std::path::Path;
use std::sync::Arc;

use crate::base::sync::Ordering;
use crate::base::{FileNumber, Result, Sometimes, file_name};
use crate::cache::MemoryKind;
use crate::db::context::Context;
use crate::db::disk::Disk;
use crate::db::limits::Limits;
use crate::db::tables::Tables;
use crate::db::tree::{Below, Tree};
use crate::db::wal_space::WalSpace;
use crate::db::writing::wal_files::reserve::give_back;
use crate::env::{RangeSyncs, ReclaimableFile};
use crate::wal::{self, WalWriteMode};

/// Makes the files that WALs are written to.
pub(super) struct WalFiles {
    context: Arc<Context>,
    tree: Arc<Tree>,
    disk: Arc<Disk>,
    limits: Arc<Limits>,
    tables: Arc<Tables>,
    space: Arc<WalSpace>,
}

impl WalFiles {
    pub(super) fn new(below: &Below, tree: &Arc<Tree>) -> Self {
        Self {
            context: below.context.clone(),
            tree: tree.clone(),
            disk: below.disk.clone(),
            limits: below.limits.clone(),
            tables: below.tables.clone(),
            space: below.wal_space.clone(),
        }
    }

    /// Creates a WAL, over the blocks of an obsolete one if there is one, and makes its name
    /// durable.
    ///
    /// `unbegun` is a WAL that could be neither begun nor removed again.
    pub(super) fn create(
        &self,
        number: FileNumber,
        unbegun: &mut Option<FileNumber>,
    ) -> Result<wal::Writer> {
        // To recovery history may end at its zeros, or at what it holds of an earlier life: no WAL
        // may come behind it.
        if let Some(unbegun) = *unbegun {
            self.disk.remove(&file_name::wal(&self.context.wal_directory, unbegun))?;
        }
        *unbegun = None;
        let path = file_name::wal(&self.context.wal_directory, number);
        // A reader that waits for the lock finds the name gone.
        let recycled = self.wal_to_recycle()?;
        let number_before = recycled.as_ref().map(|(old, _)| *old);
        let name = self.context.names.before_making(&self.context.wal_directory);
        let create = || {
            if let Some((old, _)) = &recycled {
                Sometimes::WalRecycled.reached();
                self.context
                    .env
                    .fs
                    .rename(&file_name::wal(&self.context.wal_directory, *old), &path)?;
            }
            let writer = self.wal_writer(&path, number, number_before)?;
            name.sync()?;
            Ok(writer)
        };
        let created = create();
        // One that could not be renamed lies there still: for the next attempt, or to be removed at
        // close.
        if let Some(old) = number_before
            && created.is_err()
            && self
                .context
                .env
                .fs
                .metadata(&file_name::wal(&self.context.wal_directory, old))
                .is_ok()
        {
            self.tree.put_back_recyclable_wal(old);
        }
        created.inspect_err(|_| {
            // A full disk is tried again with every write: do not leave a file behind each time.
            *unbegun = self.disk.remove(&path).is_err().then_some(number);
        })
    }

    /// The first obsolete WAL that may be written over, locked against readers. Those that a
    /// read-only handle holds are removed.
    fn wal_to_recycle(&self) -> Result<Option<(FileNumber, Arc<dyn ReclaimableFile>)>> {
        while let Some(number) = self.tree.take_recyclable_wal() {
            let path = file_name::wal(&self.context.wal_directory, number);
            let claimed = self.context.env.fs.open_reclaimable(&path).and_then(|file| {
                let is_free = file.claim()?;
                Ok(is_free.then_some(file))
            });
            match claimed {
                Ok(Some(file)) => return Ok(Some((number, file))),
                Ok(None) => {}
                Err(error) => {
                    self.tree.put_back_recyclable_wal(number);
                    return Err(error);
                }
            }
            Sometimes::HeldWalNotRecycled.reached();
            if let Err(error) = self.disk.remove(&path) {
                tracing::warn!(%error, "cannot remove an obsolete WAL");
            }
        }
        Ok(None)
    }

    /// The writer of a new WAL: over an obsolete one under a new name, or a new one with its space
    /// reserved.
    fn wal_writer(
        &self,
        path: &Path,
        number: FileNumber,
        recycled: Option<FileNumber>,
    ) -> Result<wal::Writer> {
        let settings = self.context.settings.load();
        let file = match recycled {
            Some(_) => self.context.env.fs.reopen_log(path)?,
            None => self.context.env.fs.create_log(path)?,
        };
        // What is not reserved cannot be mapped.
        let reserves = settings.allow_fallocate;
        let is_mapped =
            reserves && settings.wal_mode_in_force() == WalWriteMode::Mapped && file.is_mappable();
        let reserved = self.reserve_size();
        self.space.reserve_missing.store(0, Ordering::Relaxed);
        if reserves && recycled.is_none() && !is_mapped {
            self.reserve(path, reserved, |bytes| {
                file.allocate(bytes, true).inspect_err(|_| give_back(file.truncate(0)))
            })?;
        }
        let options = wal::WriterOptions {
            // Records that say whose they are, so that recovery can tell where the last one is.
            recyclable: is_mapped || self.context.recycled_wals() > 0,
            compression: settings.wal_compression,
            reserves_nothing: !reserves,
            range_syncs: RangeSyncs::new(
                settings.wal_bytes_per_sync,
                settings.strict_bytes_per_sync,
            ),
        };
        let mut writer = wal::Writer::of_log(file, number, options)?;
        writer.count_in(self.tables.account().measured(MemoryKind::WalBuffers));
        if is_mapped {
            self.reserve(path, reserved, |bytes| {
                writer.map(bytes).inspect_err(|_| give_back(writer.cut()))
            })?;
        }
        if settings.manual_wal_flush {
            writer.keep(settings.writable_file_max_buffer_size as usize);
        }
        Ok(writer)
    }
}
