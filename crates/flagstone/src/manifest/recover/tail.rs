//! A MANIFEST that another process writes, read on from where the last look ended.
//!
//! 1. [`ManifestTail::advance`] applies the edits that have come. The last record may be half
//!    written: it is read again at the next look. So is a group of edits whose end is not there.
//! 2. Where CURRENT names another MANIFEST, that is read from its beginning, as it begins with the
//!    full state. Tables and blob files that it names as the one before did stay open.
//! 3. [`ManifestTail::versions`] makes the state that this adds up to. A family whose files have
//!    not changed keeps its version.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::blob_keys::check_blob_keys;
use super::{Replay, advised, current_manifest};
use crate::base::{ColumnFamilyId, Error, FileNumber, Result, file_name};
use crate::env::{Env, Names};
use crate::manifest::edit::VersionEdit;
use crate::manifest::identity::{new_uuid, read_identity};
use crate::manifest::live::ObsoleteFiles;
use crate::manifest::record::Reader;
use crate::manifest::version_set::{
    Family, FileNumbers, Identity, ManifestSettings, ManifestState, VersionSet,
};

use super::WantedFamilies;

/// A MANIFEST as far as it was read.
pub struct ManifestTail {
    env: Env,
    directory: PathBuf,
    names: Arc<Names>,
    wanted: WantedFamilies,
    /// Of files that are in use; nothing is ever removed.
    queue: Arc<ObsoleteFiles>,
    identity: String,
    number: FileNumber,
    reader: Reader,
    replay: Replay,
}

impl ManifestTail {
    /// Reads what there is now. `wanted` says how each family is to be opened.
    ///
    /// # Errors
    /// `InvalidArgument` for a family with another comparator than stored; `Corruption`, `IoError`;
    /// with subcode `PathNotFound` where CURRENT was replaced meanwhile.
    pub fn open(env: Env, directory: &Path, wanted: WantedFamilies) -> Result<Self> {
        let queue = Arc::new(ObsoleteFiles::default());
        let number = current_manifest(&*env.fs, directory)?;
        let (reader, replay) = begin(&env, directory, number, &wanted, &queue)?;
        let stored = read_identity(&*env.fs, directory)?.0;
        let identity = replay.db_id.clone().or(stored).unwrap_or_else(|| new_uuid(&*env.random));
        Ok(Self {
            names: Arc::new(Names::new(env.fs.clone())),
            env,
            directory: directory.to_path_buf(),
            wanted,
            queue,
            identity,
            number,
            reader,
            replay,
        })
    }

    /// Takes over what is open already of an earlier look that is given up.
    ///
    /// # Errors
    /// `InvalidArgument` if this is another database, or an earlier state.
    pub fn go_on_from(&mut self, earlier: &Self) -> Result<()> {
        earlier.check_goes_on(&self.replay)?;
        if self.identity == earlier.identity {
            self.replay.adopt(&earlier.replay);
        }
        Ok(())
    }

    /// The identity that the MANIFEST has of the database, if any.
    pub fn db_id(&self) -> Option<&str> {
        self.replay.db_id.as_deref()
    }

    /// Applies the edits that have come since. Returns whether any did.
    ///
    /// # Errors
    /// `Corruption`, `IoError`; `InvalidArgument` if another database, or an earlier state of this
    /// one, has taken its place. It is then to be opened again.
    pub fn advance(&mut self) -> Result<bool> {
        let number = current_manifest(&*self.env.fs, &self.directory)?;
        if number == self.number {
            return self.replay.read_on(&mut self.reader).map_err(advised);
        }
        let (reader, replay) =
            begin(&self.env, &self.directory, number, &self.wanted, &self.queue)?;
        self.check_goes_on(&replay)?;
        let before = std::mem::replace(&mut self.replay, replay);
        self.replay.adopt(&before);
        (self.number, self.reader) = (number, reader);
        Ok(true)
    }

    /// A new MANIFEST begins with the state that the one before had.
    fn check_goes_on(&self, next: &Replay) -> Result<()> {
        let is_other = next.db_id.as_ref().is_some_and(|id| *id != self.identity);
        let is_earlier = next.last_sequence < self.replay.last_sequence
            || next.next_file_number < self.replay.next_file_number;
        if !is_other && !is_earlier {
            return Ok(());
        }
        let what = if is_other { "another database" } else { "an earlier state of the database" };
        let message =
            format!("{what} has taken the place of the one that is followed; open it again");
        Err(Error::invalid_argument(message).at(&self.directory))
    }

    /// The state as far as it was read, to be read only.
    ///
    /// Its last sequence number is that of its files. The MANIFEST may know a higher one, of a
    /// write that no file has yet, as RocksDB buffers its WAL with `manual_wal_flush`.
    ///
    /// # Errors
    /// `Corruption` if files contradict each other; `InvalidArgument` for too many levels.
    pub fn versions(&mut self) -> Result<VersionSet> {
        let path = file_name::manifest(&self.directory, self.number);
        let counters = self.replay.counters().map_err(|error| error.at(&path))?;
        let mut families = BTreeMap::new();
        for (id, family) in &mut self.replay.families {
            let Some(open) = &mut family.open else { continue };
            if std::mem::take(&mut open.has_changed) {
                let built = open.builder.build_so_far().map_err(|error| {
                    error.context(format!("column family '{}'", open.facts.name)).at(&path)
                });
                let built = built.and_then(|built| {
                    let (stored, given) = (family.comparator.as_deref(), &open.spec.comparator);
                    check_blob_keys(&open.facts.name, stored, given, &built)?;
                    Ok(built)
                });
                open.facts.current = Arc::new(built.inspect_err(|_| open.has_changed = true)?);
            }
            families.insert(*id, open.facts.as_read());
        }
        let largest = families.values().map(|family| family.current.largest_seqno()).max();
        let next_file_number = FileNumber(counters.next_file_number.0.saturating_add(1));
        Ok(VersionSet {
            directory: self.directory.clone(),
            names: self.names.clone(),
            env: self.env.clone(),
            settings: ManifestSettings::default(),
            read_only: true,
            families,
            file_numbers: Arc::new(FileNumbers::starting_at(next_file_number)),
            // Each state has its own: the handle of a family belongs to one of them.
            obsolete: Arc::new(ObsoleteFiles::default()),
            last_sequence: largest.unwrap_or(0),
            min_log_number_to_keep: self.replay.min_log_number_to_keep,
            max_column_family: self.replay.max_column_family,
            identity: Identity { db_id: self.identity.clone(), is_file_missing: false },
            manifest: ManifestState::new(self.number, true),
        })
    }

    /// The largest number that a family was ever given.
    pub fn max_column_family(&self) -> ColumnFamilyId {
        self.replay.max_column_family
    }

    /// Names a family that is wanted and not there.
    pub fn missing<'a>(&self, mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        names.find(|name| !self.replay.families.values().any(|family| family.name == *name))
    }
}

/// Reads a MANIFEST from its beginning.
fn begin(
    env: &Env,
    directory: &Path,
    number: FileNumber,
    wanted: &WantedFamilies,
    queue: &Arc<ObsoleteFiles>,
) -> Result<(Reader, Replay)> {
    let path = file_name::manifest(directory, number);
    let mut reader = Reader::open_following(&*env.fs, &path)?;
    let mut replay = Replay::new(wanted.clone(), queue.clone())?;
    replay.read_on(&mut reader).map_err(advised)?;
    Ok((reader, replay))
}

impl Replay {
    /// Applies the edits up to the last that is whole. Returns whether there were any.
    fn read_on(&mut self, reader: &mut Reader) -> Result<bool> {
        let path = reader.path().to_path_buf();
        let mut has_any = false;
        while let Some((offset, record)) = reader.next_following()? {
            has_any = true;
            VersionEdit::decode(record)
                .and_then(|edit| self.take(edit))
                .map_err(|error| error.at(&path).at_offset(offset))?;
        }
        Ok(has_any)
    }

    fn adopt(&mut self, earlier: &Self) {
        for (id, family) in &mut self.families {
            let known = earlier.families.get(id).and_then(|known| known.open.as_ref());
            if let (Some(open), Some(known)) = (&mut family.open, known) {
                open.builder.adopt(&known.builder);
            }
        }
    }
}

impl Family {
    /// The family as it is now, for a state of its own.
    fn as_read(&self) -> Self {
        Self {
            id: self.id,
            name: self.name.clone(),
            comparator: self.comparator.clone(),
            log_number: self.log_number,
            known_wal: self.known_wal,
            current: self.current.clone(),
            next_epoch_number: self.next_epoch_number,
            compact_cursors: Vec::new(),
            full_history_ts_low: self.full_history_ts_low.clone(),
            persists_timestamps: self.persists_timestamps,
        }
    }
}
