//! Making a backup.
//!
//! 1. What earlier interruptions left is removed.
//! 2. The database lists its files and keeps them (`db/copied_files.rs`).
//! 3. Each file is copied, unless an earlier backup has it. A shared file gets its name once it is
//!    complete and synced.
//! 4. The directories are synced. Then the meta file is written, synced and renamed, and its
//!    directory is synced: the backup exists.
//!
//! After a failure the files that no backup names are removed again.

use std::collections::BTreeMap;
use std::path::Path;

use crate::base::file_name::FileKind;
use crate::base::sync::{AtomicBool, Ordering};
use crate::base::{Code, Error, FileChecksum, Result};
use crate::db::{Change, CopiedFile, CopyOptions, Db, FileBytes, FilesToCopy, files_to_copy};
use crate::env::{FileSystem, IoMode, NewNames};
use crate::sst::read_table_properties;

use super::directory::{Backups, Directory, shared_directory};
use super::format::{Meta, MetaFile};
use super::layout::BackupPath;
use super::options::{
    BackupEngineOptions, BackupId, CreateBackupOptions, MaybeExcludeBackupFile, ShareFilesNaming,
};
use super::transfer::{Passed, Progress, Transfer, on_all};

/// More bytes of an application's metadata are refused, as RocksDB does.
const APP_METADATA_MAX: usize = 1 << 20;

/// Makes a backup in `directory`.
pub(super) struct Creation<'a> {
    pub(super) directory: &'a Directory,
    pub(super) options: &'a BackupEngineOptions,
    pub(super) request: &'a CreateBackupOptions,
    pub(super) backups: &'a Backups,
    pub(super) id: BackupId,
    pub(super) limiter: Option<&'a crate::env::RateLimiter>,
    pub(super) stop: &'a AtomicBool,
}

/// Where a file of the database goes.
enum Destination {
    Private(BackupPath),
    /// A path that is known before the file is read.
    Shared(BackupPath),
    /// Among the shared files, by a checksum that is known once the file was read.
    ByChecksum,
}

struct Planned<'a> {
    file: &'a CopiedFile,
    destination: Destination,
}

/// A file that earlier backups share.
type Shared = BTreeMap<BackupPath, (MetaFile, u64)>;

impl Creation<'_> {
    /// # Errors
    /// As [`super::BackupEngine::create_new_backup`].
    pub(super) fn run(&self, db: &Db, app_metadata: &[u8]) -> Result<()> {
        self.check(app_metadata)?;
        self.directory.collect_garbage(self.backups)?;
        let log_size_for_flush = if self.request.flush_before_backup { 0 } else { u64::MAX };
        let options = CopyOptions {
            with_wals: self.options.backup_log_files,
            ..CopyOptions::whole(log_size_for_flush)
        };
        let source = files_to_copy(db, options)?;
        self.write(&source, app_metadata).inspect_err(|_| {
            // Best effort: the caller hears the first error, and the next call tries again. The
            // meta file may be there if its directory could not be synced.
            match self.directory.fs().remove(&self.directory.meta_file(self.id)) {
                Err(error) if !error.is_not_found() => {}
                _ => {
                    let _ = self.directory.collect_garbage(self.backups);
                }
            }
        })
    }

    fn check(&self, app_metadata: &[u8]) -> Result<()> {
        if app_metadata.len() > APP_METADATA_MAX {
            return Err(Error::invalid_argument(format!(
                "the application's metadata have {} bytes, more than {APP_METADATA_MAX}",
                app_metadata.len()
            )));
        }
        if self.request.exclude_files_callback.is_some() && self.options.schema_version < 2 {
            let message = "exclude_files_callback needs a schema_version of 2";
            return Err(Error::invalid_argument(message));
        }
        if self.request.atomic_flush {
            let message = "atomic_flush of one backup is not supported; set the database's option";
            return Err(Error::not_supported(message));
        }
        Ok(())
    }

    fn write(&self, source: &FilesToCopy<'_>, app_metadata: &[u8]) -> Result<()> {
        let env = source.env();
        let private = self.directory.private(self.id);
        self.directory.names.create_directory(&private)?;
        let shared_name = self.shared_directory();
        let shared_path = shared_name.map(|name| self.directory.path.join(name));
        let new_names: Vec<NewNames> = [Some(private), shared_path]
            .into_iter()
            .flatten()
            .map(|path| self.directory.names.before_making(&path))
            .collect();
        let progress = Progress {
            callback: self.request.progress_callback.clone(),
            interval: self.options.callback_trigger_interval_size,
            total: source.files.iter().map(|file| size_of(&file.bytes)).sum(),
            ..Progress::default()
        };
        let transfer = Transfer {
            limiter: self.limiter,
            buffer_size: self.options.io_buffer_size,
            sync: self.options.sync,
            stop: self.stop,
            progress: &progress,
        };
        let shared = self.backups.shared();
        let job = Job { creation: self, fs: &*env.fs, shared: &shared, transfer: &transfer };
        let threads = self.options.max_background_operations;
        let plan = |file| job.plan(file);
        let planned = on_all(&*env.spawner, threads, source.files.iter().collect(), plan)?;
        let mut meta = Meta {
            timestamp: env.clock.unix_seconds(),
            sequence: source.sequence,
            app_metadata: app_metadata.to_vec(),
            ..Meta::default()
        };
        let planned = self.exclude(planned, &shared, &mut meta);
        meta.files = on_all(&*env.spawner, threads, planned, |planned| job.finish(&planned))?;
        transfer.check_running()?;
        self.write_meta(&meta, &new_names)
    }

    fn write_meta(&self, meta: &Meta, new_names: &[NewNames]) -> Result<()> {
        let text = meta.encode(self.options.schema_version);
        let target = self.directory.meta_file(self.id);
        let temporary = self.directory.meta().join(format!(".{}.tmp", self.id));
        if self.options.sync {
            new_names.iter().try_for_each(NewNames::sync)?;
            return self.directory.names.replace_file(&temporary, &target, text.as_bytes());
        }
        let fs = self.directory.fs();
        fs.create_writable(&temporary, IoMode::Buffered)?.write_at(0, text.as_bytes())?;
        fs.rename(&temporary, &target)
    }

    fn shared_directory(&self) -> Option<&'static str> {
        let options = self.options;
        shared_directory(options.share_table_files, options.share_files_with_checksum)
    }

    /// Leaves out the files that the caller decides to leave out.
    fn exclude<'p>(
        &self,
        planned: Vec<Planned<'p>>,
        shared: &Shared,
        meta: &mut Meta,
    ) -> Vec<Planned<'p>> {
        let Some(decide) = &self.request.exclude_files_callback else { return planned };
        let is_open = |planned: &Planned<'_>| match &planned.destination {
            Destination::Shared(path) => !shared.contains_key(path),
            Destination::Private(_) | Destination::ByChecksum => false,
        };
        let (open, mut kept): (Vec<_>, Vec<_>) = planned.into_iter().partition(is_open);
        let mut asked: Vec<MaybeExcludeBackupFile> = open
            .iter()
            .map(|planned| {
                let Destination::Shared(path) = &planned.destination else { unreachable!() };
                MaybeExcludeBackupFile {
                    relative_file: path.as_str().to_string(),
                    exclude_decision: false,
                }
            })
            .collect();
        decide(&mut asked);
        for (planned, answer) in open.into_iter().zip(asked) {
            match planned.destination {
                Destination::Shared(path) if answer.exclude_decision => meta.excluded.push(path),
                _ => kept.push(planned),
            }
        }
        kept
    }
}

fn size_of(bytes: &FileBytes) -> u64 {
    match bytes {
        FileBytes::OfFile { size, .. } => *size,
        FileBytes::Made(bytes) => bytes.len() as u64,
    }
}

/// What the threads that copy share.
struct Job<'a> {
    creation: &'a Creation<'a>,
    /// The database's file system.
    fs: &'a dyn FileSystem,
    shared: &'a Shared,
    transfer: &'a Transfer<'a>,
}

impl Job<'_> {
    fn plan<'p>(&self, file: &'p CopiedFile) -> Result<Planned<'p>> {
        let options = self.creation.options;
        let is_data = matches!(file.kind, FileKind::Table(_) | FileKind::Blob(_));
        let destination = match (&file.bytes, self.creation.shared_directory()) {
            (FileBytes::OfFile { path, size, .. }, Some(_)) if is_data => {
                if options.share_files_with_checksum {
                    self.by_content(file, path, *size)?
                } else {
                    Destination::Shared(BackupPath::shared(&file.name))
                }
            }
            _ => Destination::Private(BackupPath::private(self.creation.id, &file.name)),
        };
        Ok(Planned { file, destination })
    }

    /// By session or by checksum.
    fn by_content(&self, file: &CopiedFile, path: &Path, size: u64) -> Result<Destination> {
        let naming = self.creation.options.share_files_with_checksum_naming;
        let with_size = match naming {
            ShareFilesNaming::LegacyCrc32cAndFileSize => None,
            ShareFilesNaming::UseDbSessionId => Some(false),
            ShareFilesNaming::UseDbSessionIdAndFileSize => Some(true),
        };
        if let (FileKind::Table(_), Some(with_size)) = (file.kind, with_size) {
            let table = self.fs.open_random_access(path, IoMode::Buffered)?;
            let session = read_table_properties(table, size)?.session_identity;
            let is_plain = session.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if !session.is_empty() && is_plain {
                let size = with_size.then_some(size);
                return Ok(Destination::Shared(BackupPath::by_session(&file.name, &session, size)));
            }
        }
        // The caller who may leave files out is told their names first.
        if self.creation.request.exclude_files_callback.is_some() {
            let passed = self.transfer.checksum((self.fs, path))?;
            let path = BackupPath::by_checksum(&file.name, passed.crc32c, passed.size);
            return Ok(Destination::Shared(path));
        }
        Ok(Destination::ByChecksum)
    }

    fn finish(&self, planned: &Planned<'_>) -> Result<MetaFile> {
        self.transfer.check_running()?;
        let file = planned.file;
        match &planned.destination {
            Destination::Private(path) => {
                let passed = self.copy(file, &path.within(&self.creation.directory.path))?;
                self.entry(file, path.clone(), passed)
            }
            Destination::Shared(path) => match self.shared.get(path) {
                Some(known) => self.reuse(file, path, known),
                None => self.add_shared(file, |_| path.clone()),
            },
            Destination::ByChecksum => {
                if let Some(known) = self.with_known_checksum(file)? {
                    return Ok(known);
                }
                self.add_shared(file, |passed| {
                    BackupPath::by_checksum(&file.name, passed.crc32c, passed.size)
                })
            }
        }
    }

    /// What an earlier backup has of a file with this checksum. The file is read only if there is
    /// one of its number and size.
    fn with_known_checksum(&self, file: &CopiedFile) -> Result<Option<MetaFile>> {
        let FileBytes::OfFile { path, size, .. } = &file.bytes else { return Ok(None) };
        let is_candidate = |(known, (_, known_size)): (&BackupPath, &(MetaFile, u64))| {
            known_size == size && known.named_size().is_some() && known.database_name() == file.name
        };
        if !self.shared.iter().any(is_candidate) {
            return Ok(None);
        }
        let passed = self.transfer.checksum((self.fs, path))?;
        let path = BackupPath::by_checksum(&file.name, passed.crc32c, passed.size);
        self.shared.contains_key(&path).then(|| self.entry(file, path, passed)).transpose()
    }

    /// An earlier backup's file, if it is the same one.
    fn reuse(
        &self,
        file: &CopiedFile,
        path: &BackupPath,
        (known, size): &(MetaFile, u64),
    ) -> Result<MetaFile> {
        let FileBytes::OfFile { path: source, size: own_size, .. } = &file.bytes else {
            return Err(Error::corruption("only files of the database are shared").at(&file.name));
        };
        let differs = |what: &str| {
            let place = path.within(&self.creation.directory.path);
            Error::corruption(format!(
                "{} has another {what} than the file of this name that earlier backups have; verify both",
                source.display()
            ))
            .at(place)
        };
        if size != own_size {
            return Err(differs("size"));
        }
        let crc32c = match known.crc32c {
            // The name says which file it is.
            Some(crc32c) if self.creation.options.share_files_with_checksum => crc32c,
            recorded => {
                let found = self.transfer.checksum((self.fs, source))?.crc32c;
                if recorded.is_some_and(|recorded| recorded != found) {
                    return Err(differs("checksum"));
                }
                found
            }
        };
        self.entry(file, path.clone(), Passed::unread(*size, crc32c))
    }

    /// Copies a file to where it has no name yet that counts, and then gives it one.
    fn add_shared(
        &self,
        file: &CopiedFile,
        name: impl FnOnce(Passed) -> BackupPath,
    ) -> Result<MetaFile> {
        let directory = self.creation.directory;
        let shared = self.creation.shared_directory().unwrap_or_default();
        let temporary = directory.path.join(shared).join(format!(".{}.tmp", file.name));
        let passed = self.copy(file, &temporary)?;
        let path = name(passed);
        // Another file of this name is garbage, or the same.
        directory.fs().rename(&temporary, &path.within(&directory.path))?;
        self.entry(file, path, passed)
    }

    fn copy(&self, file: &CopiedFile, target: &Path) -> Result<Passed> {
        let target = (self.creation.directory.fs(), target);
        match &file.bytes {
            FileBytes::Made(bytes) => self.transfer.write(bytes, target),
            FileBytes::OfFile { path, size, change } => {
                let may_shrink = *change == Change::GrowsOrShrinks;
                self.transfer.copy((self.fs, path), Some((*size, may_shrink)), target)
            }
        }
    }

    /// # Errors
    /// `Corruption` if the MANIFEST has another checksum of the file.
    fn entry(&self, file: &CopiedFile, path: BackupPath, passed: Passed) -> Result<MetaFile> {
        if let Some(expected) = &file.checksum
            && expected.as_crc32c().is_some()
        {
            let found = FileChecksum::crc32c(passed.crc32c);
            let source = match &file.bytes {
                FileBytes::OfFile { path, .. } => path.as_path(),
                FileBytes::Made(_) => Path::new(&file.name),
            };
            expected.check(&found).map_err(|error| error.at(source))?;
        }
        let (size, crc32c) = (Some(passed.size), Some(passed.crc32c));
        let overrides = self.creation.options.current_temperatures_override_manifest;
        let is_believed = overrides || !file.temperature.is_known();
        let temperature = match passed.temperature {
            current if current.is_known() && is_believed => current,
            _ => file.temperature,
        };
        Ok(MetaFile { path, size, crc32c, temperature })
    }
}

/// # Errors
/// `Incomplete` if backups were stopped.
pub(super) fn check_not_stopped(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Acquire) {
        return Err(Error::new(Code::Incomplete, "backups were stopped; open the engine again"));
    }
    Ok(())
}
