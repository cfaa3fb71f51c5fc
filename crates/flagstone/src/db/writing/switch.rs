//! Switching memtables: a full one becomes immutable, a new one and a new WAL take over.

use std::path::Path;
use std::sync::Arc;

use super::wal_reserve::give_back;
use super::write::Commit;
use crate::base::compression::CompressionType;
use crate::base::sync::Ordering;
use crate::base::{ColumnFamilyId, FileNumber, Mutant, Result, Sometimes, file_name};
use crate::cache::Holder;
use crate::db::DbInner;
use crate::db::disk::deletions::WaitingDeletions;
use crate::db::family::{Family, Immutable};
use crate::db::generation::Generation;
use crate::db::settings::memtable_settings;
use crate::db::state::{LiveWal, State};
use crate::db::statistics::Ticker;
use crate::env::{File, OpenMode, RangeSyncs};
use crate::wal::{self, PredecessorWal, WalWriteMode};

impl DbInner {
    /// A new, empty memtable for a family.
    pub(in crate::db) fn new_memtable(&self, family: &Family) -> Arc<Generation> {
        let settings = memtable_settings(&self.context.settings.load(), &family.options.load(), &self.arenas);
        Arc::new(Generation::new(family.order.clone(), &settings))
    }

    /// Switches every memtable that wants it.
    pub(in crate::db) fn switch_wanted_memtables(&self, commit: &mut Commit) -> Result<()> {
        let mut state = self.tree.state.lock();
        if self.wal_limit_reached(commit) {
            self.want_switch_of_oldest_wal(commit, &mut state);
        }
        if self.memtable_limit_reached(commit) {
            self.want_switch_of_largest(commit);
        }
        let wanted: Vec<ColumnFamilyId> =
            commit.targets.iter().filter(|(_, target)| target.switch_wanted).map(|(id, _)| *id).collect();
        // Where the disk is full, the next writer tries again.
        commit.asked.switch = true;
        self.switch_memtables(commit, &mut state, &wanted)?;
        commit.asked.switch = false;
        self.tree.announce_work(&mut state);
        Ok(())
    }

    /// Switches the memtables of these families, with one new WAL for all. With `atomic_flush`, those of all families.
    pub(in crate::db) fn switch_memtables(
        &self,
        commit: &mut Commit,
        state: &mut State,
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
        self.sync_pending_writes(commit, state)?;
        if commit.wal_size() > 0 {
            self.roll_wal(commit, state)?;
        }
        let wal = commit.log.number;
        for family in state.families.values_mut() {
            if family.mem.is_empty() || Mutant::LogNumberTooHigh.is_on() {
                family.mem_wal = wal;
            }
        }
        state.memtables.seals += 1;
        let mut full_bytes = 0;
        for id in families {
            let Some(target) = commit.targets.get_mut(id) else { continue };
            target.switch_wanted = false;
            if target.mem.is_empty() {
                continue;
            }
            let family = state.families.get_mut(&target.family.id).expect("a target's family has a state");
            let fresh = self.new_memtable(&target.family);
            let full = std::mem::replace(&mut family.mem, fresh.clone());
            full_bytes += full.bytes();
            let (first_wal, seal) = (family.mem_wal, state.memtables.seals);
            family.immutable.push_back(Immutable { mem: full, wal: first_wal, seal, flushing: false });
            // One that waited for more of its own would hold up the others.
            family.flush_requested |= self.tree.flushes_together();
            family.mem_wal = wal;
            family.waiting_deletions = WaitingDeletions::default();
            target.mem = fresh;
            target.count(&mut commit.memtable_bytes);
            let version = state.versions.family(target.family.id).expect("its state exists").current.clone();
            family.install(version, self.context.env.clock.now_us());
            state.note(target.family.id);
        }
        if full_bytes > 0 {
            // All at once: what was written since the last switch is in all of them.
            state.pace.note_full(full_bytes, self.context.statistics.get(Ticker::BytesWritten));
        }
        self.tree.update_stall(state);
        Ok(())
    }

    /// Ends the active WAL and starts the next.
    fn roll_wal(&self, commit: &mut Commit, state: &mut State) -> Result<()> {
        // First: were the next one begun and this one's end not to be told from damage, recovery might stop before it.
        commit.wal()?.cut().inspect_err(|error| self.tree.fail_unless_full(state, error))?;
        let number = self.tree.file_numbers.allocate();
        let writer = self.create_wal(number, state)?;
        let ended = std::mem::replace(commit.wal()?, writer);
        let bytes = ended.offset();
        // What flushes have made superfluous needs no sync; kept open, it would keep its space on the disk.
        commit.debt.logs.retain(|(number, _)| state.wals.live.iter().any(|wal| wal.number == *number));
        commit.debt.logs.push((commit.log.number, ended.file().clone()));
        state.wals.live.push_back(LiveWal { number: commit.log.number, bytes, created_here: true });
        self.tree.note_live_wals(state);
        commit.log.predecessor = Some(PredecessorWal {
            number: commit.log.number.0,
            size: bytes,
            last_sequence: commit.last_sequence,
        });
        commit.log.is_predecessor_noted = false;
        commit.log.number = number;
        self.pipeline.wal_space.active_bytes.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Creates a WAL, over the blocks of an obsolete one if there is one, and makes its name durable.
    pub(in crate::db) fn create_wal(&self, number: FileNumber, state: &mut State) -> Result<wal::Writer> {
        // To recovery history may end at its zeros, or at what it holds of an earlier life: no WAL may come behind it.
        if let Some(unbegun) = state.wals.unbegun {
            self.disk.remove(&file_name::wal(&self.context.wal_directory, unbegun))?;
            state.wals.unbegun = None;
        }
        let path = file_name::wal(&self.context.wal_directory, number);
        // A reader that waits for the lock finds the name gone.
        let recycled = self.wal_to_recycle(state)?;
        let number_before = recycled.as_ref().map(|(old, _)| *old);
        let name = self.context.names.before_making(&self.context.wal_directory);
        let create = || {
            if let Some((old, _)) = &recycled {
                Sometimes::WalRecycled.reached();
                self.context.env.fs.rename(&file_name::wal(&self.context.wal_directory, *old), &path)?;
            }
            let writer = self.wal_writer(&path, number, number_before)?;
            if !Mutant::SkipWalDirectorySync.is_on() {
                name.sync()?;
            }
            Ok(writer)
        };
        let created = create();
        // One that could not be renamed lies there still: for the next attempt, or to be removed at close.
        if let Some(old) = number_before
            && (created.is_ok()
                || self.context.env.fs.metadata(&file_name::wal(&self.context.wal_directory, old)).is_err())
        {
            state.wals.recyclable.pop_front();
        }
        created.inspect_err(|_| {
            // A full disk is tried again with every write: do not leave a file behind each time.
            state.wals.unbegun = self.disk.remove(&path).is_err().then_some(number);
        })
    }

    /// The first obsolete WAL that may be written over, locked against readers; it stays in the list. Those that a read-only
    /// handle holds are removed.
    fn wal_to_recycle(&self, state: &mut State) -> Result<Option<(FileNumber, Arc<dyn File>)>> {
        while let Some(number) = state.wals.recyclable.front().copied() {
            let path = file_name::wal(&self.context.wal_directory, number);
            let file = self.context.env.fs.open(&path, OpenMode::Update)?;
            if file.claim()? {
                return Ok(Some((number, file)));
            }
            state.wals.recyclable.pop_front();
            Sometimes::HeldWalNotRecycled.reached();
            if let Err(error) = self.disk.remove(&path) {
                tracing::warn!(%error, "cannot remove an obsolete WAL");
            }
        }
        Ok(None)
    }

    /// The writer of a new WAL: over an obsolete one under a new name, or a new one with its space reserved.
    fn wal_writer(
        &self,
        path: &Path,
        number: FileNumber,
        recycled: Option<FileNumber>,
    ) -> Result<wal::Writer> {
        let settings = self.context.settings.load();
        let file = match recycled {
            Some(_) => self.context.env.fs.open(path, OpenMode::Update)?,
            None => self.context.env.fs.open(path, OpenMode::Create)?,
        };
        // What is not reserved cannot be mapped.
        let reserves = settings.allow_fallocate;
        let is_mapped = reserves && settings.wal_write_mode == WalWriteMode::Mapped && file.is_mappable();
        let reserved = self.wal_reserve();
        self.pipeline.wal_space.reserve_missing.store(0, Ordering::Relaxed);
        if reserves && recycled.is_none() && !is_mapped {
            self.reserve_wal(path, reserved, |bytes| {
                file.allocate(bytes, true).inspect_err(|_| give_back(file.truncate(0)))
            })?;
        }
        let options = wal::WriterOptions {
            // Records that say whose they are, so that recovery can tell where the last one is.
            recyclable: is_mapped || settings.recycled_wals() > 0,
            compression: match settings.wal_compression {
                CompressionType::Zstd => wal::WalCompression::Zstd,
                _ => wal::WalCompression::None,
            },
            reserves_nothing: !reserves,
            range_syncs: RangeSyncs::new(settings.wal_bytes_per_sync, settings.strict_bytes_per_sync),
        };
        let number = recycled.filter(|_| Mutant::KeepRecycledNumber.is_on()).unwrap_or(number);
        let mut writer = wal::Writer::new(file, number, options)?;
        writer.count_in(self.tables.account().measured(Holder::WalBuffers));
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

    /// Whether the WALs together have grown so large that families which keep the oldest must be flushed, or, beyond the cap,
    /// all.
    /// Asks once for each oldest WAL.
    pub(in crate::db) fn wal_limit_reached(&self, commit: &Commit) -> bool {
        let all = self.pipeline.wal_space.older_bytes.load(Ordering::Relaxed) + commit.wal_size();
        if all <= self.pipeline.wal_space.limit.load(Ordering::Relaxed) {
            return false;
        }
        let cap = self.pipeline.wal_space.cap.load(Ordering::Relaxed);
        match self.pipeline.wal_space.oldest.load(Ordering::Relaxed) {
            // There is only the active one, which ends then. Where nobody set a cap, a lone family's write buffer does.
            0 => commit.targets.len() > 1 || cap < u64::MAX,
            oldest if all > cap => oldest != commit.asked.wal_cap,
            oldest => oldest != commit.asked.wal_limit,
        }
    }

    fn want_switch_of_oldest_wal(&self, commit: &mut Commit, state: &mut State) {
        let oldest = state.wals.live.front().map_or(commit.log.number, |wal| wal.number);
        Sometimes::WalLimitReached.reached();
        let all = self.pipeline.wal_space.older_bytes.load(Ordering::Relaxed) + commit.wal_size();
        // Beyond the cap there is no time for one after the other.
        let is_beyond = all > self.pipeline.wal_space.cap.load(Ordering::Relaxed);
        let until = if is_beyond { commit.log.number } else { oldest };
        let mut is_kept = false;
        for target in commit.targets.values_mut() {
            let family = state.families.get_mut(&target.family.id).expect("a target's family has a state");
            if family.mem_wal <= until && !target.mem.is_empty() {
                target.switch_wanted = true;
            }
            // A family that waits for more memtables to merge keeps the WAL, too.
            let waits = target.switch_wanted || !family.immutable.is_empty();
            let keeps = waits && family.oldest_needed_wal() <= until;
            family.flush_requested |= keeps;
            is_kept |= keeps;
        }
        // Whoever kept it was dropped: it goes with the next flush, of whomever.
        let is_asked = is_kept || state.paused.deletions > 0 || want_any_flush(commit, state);
        // Where nobody has anything, the next write brings somebody.
        if is_asked {
            commit.asked.wal_limit = oldest.0;
            if is_beyond {
                commit.asked.wal_cap = oldest.0;
            }
        }
    }
}

/// Whether some family has something to flush, which is then wanted.
fn want_any_flush(commit: &mut Commit, state: &mut State) -> bool {
    let mut first = state.agenda.waiting().map(|(_, id)| id).next();
    if first.is_none()
        && let Some(target) = commit.targets.values_mut().find(|target| !target.mem.is_empty())
    {
        target.switch_wanted = true;
        first = Some(target.family.id);
    }
    let known = first.and_then(|id| state.families.get_mut(&id));
    known.is_some_and(|known| {
        known.flush_requested = true;
        true
    })
}

impl Commit {
    /// What kept the oldest WAL is no more, without a flush: whoever is to let go of it now is to be asked, too.
    pub(in crate::db) fn ask_again_for_wals(&mut self) {
        (self.asked.wal_limit, self.asked.wal_cap) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use crate::db::Db;
    use crate::env::Env;
    use crate::options::Options;

    /// What had been written counted for the first of the memtables that were switched together, and less with each of the
    /// others. With twenty families that are flushed together, flushes passed for so slow that writers waited for each to its
    /// end.
    #[test]
    fn what_was_written_counts_for_all_memtables_that_are_switched_together() {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        options.set_all("create_if_missing=true;atomic_flush=true").unwrap();
        let written = |others: usize| {
            let db = Db::open(format!("/{others}"), &options).unwrap();
            let mut families = vec![db.default_column_family().clone()];
            families.extend(
                (0..others).map(|name| db.create_column_family(&name.to_string(), &options.cf).unwrap()),
            );
            for round in 0..200_u32 {
                for family in &families {
                    db.put_cf(family, round.to_be_bytes(), [7; 1000]).unwrap();
                }
                if round % 50 == 49 {
                    db.flush_all().unwrap();
                }
            }
            db.inner().tree.state.lock().pace.written(1_000_000)
        };
        let (alone, together) = (written(0), written(19));
        assert!(together.abs_diff(alone) < alone / 5, "{together} {alone}");
    }
}
