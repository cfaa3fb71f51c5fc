//! Removing backups, and what interruptions left.
//!
//! 1. The meta file is removed: from then on the backup does not exist.
//! 2. The directory of meta files is synced. Were a file of the backup removed before, a loss of
//!    power could leave the meta file without it.
//! 3. Files that no other backup names are removed, and then the backup's own directory.
//!
//! Collecting garbage takes the steps from 2 on.

use crate::base::{Error, Result};

use super::directory::{Backups, Directory, not_found};
use super::layout::{
    BackupPath, META, PRIVATE, SHARED, SHARED_CHECKSUM, is_of_shared_file, is_temporary, parse_id,
};
use super::options::BackupId;

impl Directory {
    /// Removes a backup.
    ///
    /// # Errors
    /// `NotFound`; `IoError`. What could not be removed is garbage, if the meta file was.
    pub(super) fn delete(&self, backups: &mut Backups, ids: &[BackupId]) -> Result<()> {
        if let Some(missing) = ids.iter().find(|id| !backups.has(**id)) {
            return Err(not_found(*missing).at(&self.path));
        }
        let mut outcome = Ok(());
        for id in ids {
            match self.fs().remove(&self.meta_file(*id)) {
                Err(error) if !error.is_not_found() => outcome = Err(error),
                _ => {
                    backups.whole.remove(id);
                    backups.corrupt.remove(id);
                }
            }
        }
        self.collect_garbage(backups).and(outcome)
    }

    /// Removes the files that no backup names. While a meta file cannot be read, those of shared
    /// files stay that are complete.
    ///
    /// # Errors
    /// The first `IoError`; all else is removed nevertheless.
    pub(super) fn collect_garbage(&self, backups: &Backups) -> Result<()> {
        let meta = self.meta();
        self.names.before_making(&meta).sync()?;
        let mut outcome = Ok(());
        for name in self.fs().list(&meta)?.iter().filter(|name| is_temporary(name)) {
            keep_first(&mut outcome, self.fs().remove(&meta.join(name)));
        }
        let named = backups.named();
        for shared in [SHARED, SHARED_CHECKSUM] {
            let directory = self.path.join(shared);
            for name in self.listed(shared, &mut outcome) {
                let is_garbage = is_temporary(&name)
                    || named.as_ref().is_some_and(|named| {
                        is_of_shared_file(shared, &name)
                            && !BackupPath::parse(&format!("{shared}/{name}"))
                                .is_ok_and(|path| named.contains(&path))
                    });
                if is_garbage {
                    keep_first(&mut outcome, self.fs().remove(&directory.join(&name)));
                }
            }
        }
        for name in self.listed(PRIVATE, &mut outcome) {
            let id = parse_id(name.strip_suffix(".tmp").unwrap_or(&name));
            if id.is_some_and(|id| !backups.has(id) || name.ends_with(".tmp")) {
                keep_first(&mut outcome, self.remove_private(&name));
            }
        }
        outcome
    }

    /// Removes the directory of files that one backup had.
    fn remove_private(&self, name: &str) -> Result<()> {
        let directory = self.path.join(PRIVATE).join(name);
        for file in self.fs().list(&directory)? {
            self.fs().remove(&directory.join(file))?;
        }
        self.fs().remove_directory(&directory)
    }

    fn listed(&self, directory: &str, outcome: &mut Result<()>) -> Vec<String> {
        debug_assert_ne!(directory, META);
        match self.fs().list(&self.path.join(directory)) {
            Ok(names) => names,
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => {
                keep_first(outcome, Err(error));
                Vec::new()
            }
        }
    }
}

fn keep_first(outcome: &mut Result<(), Error>, next: Result<()>) {
    if outcome.is_ok() && next.as_ref().is_err_and(|error| !error.is_not_found()) {
        *outcome = next;
    }
}
