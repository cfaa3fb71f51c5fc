//! Switching memtables: a full one becomes immutable, a new one and a new WAL take over.

use std::path::Path;
use std::sync::Arc;

use crate::base::sync::Ordering;
use crate::base::{ColumnFamilyId, FileNumber, Result, Sometimes, file_name};
use crate::cache::MemoryKind;
use crate::db::family::Family;
use crate::db::family::generation::Generation;
use crate::db::settings::memtable_settings;
use crate::db::tree::flushes::{OldestWal, WrittenTo};
use crate::db::tree::state::LiveWal;
use crate::db::writing::pipeline::Pipeline;
use crate::db::writing::wal_reserve::give_back;
use crate::db::writing::write::Commit;
use crate::env::{RangeSyncs, ReclaimableFile};
use crate::wal::{self, PredecessorWal, WalWriteMode};

impl Pipeline {
    /// A new, empty memtable for a family.
    pub(in crate::db) fn new_memtable(&self, family: &Family) -> Arc<Generation> {
        let settings =
            memtable_settings(&self.context.settings.load(), &family.options.load(), &self.arenas);
        Arc::new(Generation::new(family.order.clone(), &settings))
    }

    /// Switches every memtable that wants it.
    pub(in crate::db) fn switch_wanted_memtables(&self, commit: &mut Commit) -> Result<()> {
        if self.wal_limit_reached(commit) {
            self.want_switch_of_oldest_wal(commit);
        }
        if self.memtable_limit_reached(commit) {
            self.want_switch_of_largest(commit);
        }
        let wanted: Vec<ColumnFamilyId> = commit
            .targets
            .iter()
            .filter(|(_, target)| target.switch_wanted)
            .map(|(id, _)| *id)
            .collect();
        // Where the disk is full, the next writer tries again.
        commit.asked.switch = true;
        self.switch_memtables(commit, &wanted)?;
        commit.asked.switch = false;
        self.tree.call();
        Ok(())
    }

    /// Switches the memtables of these families, with one new WAL for all. With `atomic_flush`,
    /// those of all families.
    pub(in crate::db) fn switch_memtables(
        &self,
        commit: &mut Commit,
        families: &[ColumnFamilyId],
    ) -> Result<()> {
        if families.is_empty() {
            return Ok(());
        }
        let together: Vec<ColumnFamilyId>;
        let mut families = families;
        if self.tree.flushes_together() {
            together = commit.targets.keys().copied().collect();
            families = &together;
        }
        self.sync_pending_writes(commit)?;
        let ended = if commit.wal_size() > 0 { Some(self.roll_wal(commit)?) } else { None };
        let mut fresh = Vec::new();
        for id in families {
            let Some(target) = commit.targets.get_mut(id) else { continue };
            target.switch_wanted = false;
            if !target.mem.is_empty() {
                target.mem = self.new_memtable(&target.family);
                fresh.push((*id, target.mem.clone()));
                target.count(&mut commit.memtable_bytes);
            }
        }
        self.tree.seal(ended, commit.log.number, fresh);
        Ok(())
    }

    /// Ends the active WAL and starts the next; which ended.
    fn roll_wal(&self, commit: &mut Commit) -> Result<LiveWal> {
        // First: were the next one begun and this one's end not to be told from damage, recovery
        // might stop before it.
        commit.wal()?.cut().inspect_err(|error| self.tree.fail_unless_full(error))?;
        let number = self.tree.file_numbers.allocate();
        let writer = self.create_wal(number, &mut commit.log.unbegun)?;
        let ended = std::mem::replace(commit.wal()?, writer);
        let bytes = ended.offset();
        // What flushes have made superfluous needs no sync; kept open, it would keep its space on
        // the disk.
        let live = self.tree.live_wals();
        commit.debt.logs.retain(|(number, _)| live.iter().any(|(live, _)| live == number));
        commit.debt.logs.push((commit.log.number, ended.file().clone()));
        let ended = LiveWal { number: commit.log.number, bytes, created_here: true };
        commit.log.predecessor = Some(PredecessorWal {
            number: commit.log.number.0,
            size: bytes,
            last_sequence: commit.last_sequence,
        });
        commit.log.is_predecessor_noted = false;
        commit.log.number = number;
        self.wal_space.active_bytes.store(0, Ordering::Relaxed);
        Ok(ended)
    }

    /// Creates a WAL, over the blocks of an obsolete one if there is one, and makes its name
    /// durable.
    ///
    /// `unbegun` is a WAL that could be neither begun nor removed again.
    pub(in crate::db) fn create_wal(
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
            reserves && settings.wal_write_mode == WalWriteMode::Mapped && file.is_mappable();
        let reserved = self.wal_reserve();
        self.wal_space.reserve_missing.store(0, Ordering::Relaxed);
        if reserves && recycled.is_none() && !is_mapped {
            self.reserve_wal(path, reserved, |bytes| {
                file.allocate(bytes, true).inspect_err(|_| give_back(file.truncate(0)))
            })?;
        }
        let options = wal::WriterOptions {
            // Records that say whose they are, so that recovery can tell where the last one is.
            recyclable: is_mapped || settings.recycled_wals() > 0,
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
            self.reserve_wal(path, reserved, |bytes| {
                writer.map(bytes).inspect_err(|_| give_back(writer.cut()))
            })?;
        }
        if settings.manual_wal_flush {
            writer.keep(settings.writable_file_max_buffer_size as usize);
        }
        Ok(writer)
    }

    /// Whether the WALs together have grown so large that families which keep the oldest must be
    /// flushed, or, beyond the cap, all. Asks once for each oldest WAL.
    pub(in crate::db) fn wal_limit_reached(&self, commit: &Commit) -> bool {
        let all = self.wal_space.older_bytes.load(Ordering::Relaxed) + commit.wal_size();
        if all <= self.wal_space.limit.load(Ordering::Relaxed) {
            return false;
        }
        let cap = self.wal_space.cap.load(Ordering::Relaxed);
        match self.wal_space.oldest.load(Ordering::Relaxed) {
            // There is only the active one, which ends then. Where nobody set a cap, a lone
            // family's write buffer does.
            0 => commit.targets.len() > 1 || cap < u64::MAX,
            oldest if all > cap => oldest != commit.asked.wal_cap,
            oldest => oldest != commit.asked.wal_limit,
        }
    }

    fn want_switch_of_oldest_wal(&self, commit: &mut Commit) {
        Sometimes::WalLimitReached.reached();
        let all = self.wal_space.older_bytes.load(Ordering::Relaxed) + commit.wal_size();
        // Beyond the cap there is no time for one after the other.
        let is_beyond = all > self.wal_space.cap.load(Ordering::Relaxed);
        let targets = commit.targets.iter();
        let memtables = targets.map(|(id, target)| WrittenTo {
            id: *id,
            is_empty: target.mem.is_empty(),
            is_wanted: target.switch_wanted,
        });
        let OldestWal { oldest, to_switch, is_asked } = self.tree.ask_for_oldest_wal(
            commit.log.number,
            is_beyond,
            &memtables.collect::<Vec<_>>(),
        );
        for id in to_switch {
            if let Some(target) = commit.targets.get_mut(&id) {
                target.switch_wanted = true;
            }
        }
        // Where nobody has anything, the next write brings somebody.
        if is_asked {
            commit.asked.wal_limit = oldest.0;
            if is_beyond {
                commit.asked.wal_cap = oldest.0;
            }
        }
    }
}

impl Commit {
    /// What kept the oldest WAL is no more, without a flush: whoever is to let go of it now is to
    /// be asked, too.
    pub(in crate::db) fn ask_again_for_wals(&mut self) {
        (self.asked.wal_limit, self.asked.wal_cap) = (0, 0);
    }
}

#[cfg(test)]
mod tests;
