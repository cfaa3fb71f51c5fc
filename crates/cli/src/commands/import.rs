//! `flagstone import`

use std::error::Error as _;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clap::Args;
use flagstone::base::{Code, Error, counted};
use flagstone::batch::{MAX_ENTRY_SIZE, WriteBatch};
use flagstone::db::{ColumnFamily, Db, OpenFiles, Ticker};
use flagstone::env::{Env, FileSystem, IoMode};
use flagstone::options::WriteOptions;
use serde_json::json;
use walkdir::{DirEntry, WalkDir};

use crate::arguments::{CF_ALIASES, Common};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict, reported};
use crate::left_out::LeftOut;
use crate::output::Output;
use crate::pieces::PIECE_SIZE;
use crate::progress::Progress;
use crate::stamped::{Opened, Ttl};
use crate::text;

/// The largest value that a database holds.
const VALUE_SIZE_MAX: u64 = MAX_ENTRY_SIZE as u64;

/// Files of this size and more are not read into memory as a whole.
const STREAMED_SIZE_MIN: u64 = 32 << 20;

/// Bytes of small files that are written together.
const BATCH_SIZE: usize = 256 << 10;

/// Store files: the key is the path relative to PATH, the value the contents.
///
/// Stores every regular file under each PATH; '/' separates the parts of a key. Symbolic links,
/// special files, and the database's own directories and files are skipped and counted. Creates the
/// database if it does not exist; it then keeps files of 4 KiB or more in compressed blob files
/// (change that with --set). A file of 32 MiB or more gets a blob file of its own, uncompressed. A
/// relative path found under two PATHs is stored once. A file that changes during the import is
/// stored as it was read, up to the end that it had then.
///
/// The command skips and names the following, and exits with code 1: a file that cannot be read or
/// is too large for a value, a directory that cannot be listed, a PATH that does not exist or is a
/// special file, and a hard link to a file of this database. It names up to ten, with --json all.
/// If no PATH exists, no database is created and the exit code is 2. Everything is on the device
/// when the command ends.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone import --db /data/photos ~/Pictures")]
pub struct Arguments {
    /// The database's directory
    #[arg(long, value_name = "DB")]
    db: PathBuf,
    /// The column family
    #[arg(long, value_name = "NAME", default_value = "default", aliases = CF_ALIASES)]
    cf: String,
    /// Files to read at the same time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    #[command(flatten)]
    ttl: Ttl,
    /// Files, or directories to store everything under
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let env = Env::os();
    let start_us = env.clock.now_us();
    database::check_may_have(&arguments.db, &arguments.cf)?;
    let left_out = LeftOut::new("path", common);
    let mut listed = list(&arguments.paths, &arguments.db, &*env.fs, &left_out)?;
    let opened = arguments.ttl.open(common, &arguments.db, Access::CreateForFiles)?;
    let db = opened.db();
    let family = database::family(db, &arguments.cf)?;
    listed.leave_out_own(&*env.fs, &left_out)?;
    let Listed { files, skipped, own } = listed;
    // Sparse files may say anything; those that are too large are refused when their turn comes.
    let bytes = files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.size));
    let import = Import {
        db: &opened,
        family: &family,
        fs: env.fs.as_ref(),
        files: &files,
        next: AtomicU64::new(0),
        stored: AtomicU64::new(0),
        stored_files: AtomicU64::new(0),
        left_out,
        failed: AtomicBool::new(false),
        progress: Progress::bytes(bytes),
    };
    import.run(arguments.threads)?;
    import.progress.say("flushing".to_string());
    db.flush_all()?;
    db.sync_wal()?;
    let elsewhere = files_elsewhere(db, &arguments.db);
    db.close()?;
    let summary = Summary {
        files: import.stored_files.load(Ordering::Relaxed),
        skipped,
        own,
        left_out: import.left_out.count(),
        bytes: import.stored.load(Ordering::Relaxed),
        seconds: (env.clock.now_us() - start_us) as f64 / 1e6,
        written: bytes_written(db),
        on_disk: space_on_disk(env.fs.as_ref(), &arguments.db, &elsewhere)?,
    };
    drop(import);
    summary.print(common)
}

/// What there is to store.
#[derive(Default)]
struct Listed {
    files: Vec<Found>,
    /// Links and special files.
    skipped: u64,
    /// What belongs to the database itself: its directory, and files in others of its directories.
    own: u64,
}

/// A file to store.
struct Found {
    path: PathBuf,
    key: Vec<u8>,
    size: u64,
}

/// The regular files under `paths`, and how many other things there are. The directory of the
/// database in `db` is not entered.
///
/// # Errors
/// Nothing is at any of the paths, or none of them can be read.
fn list(
    paths: &[PathBuf],
    db: &Path,
    fs: &dyn FileSystem,
    left_out: &LeftOut,
) -> Result<Listed, Failure> {
    check_any_is_there(paths, fs)?;
    let mut listed = Listed::default();
    let progress = Progress::count("files found");
    let id_of = |path: &Path| fs.metadata(path).ok().and_then(|found| found.id);
    // Where it is still to be made it has none.
    let db = id_of(db);
    let is_database = |path: &Path| db.is_some() && id_of(path) == db;
    let mut unread = 0;
    for root in paths {
        // Also a link to it, which the walk would follow.
        if is_database(root) {
            listed.own += 1;
            continue;
        }
        let mut walk = WalkDir::new(root).follow_root_links(true).into_iter();
        while let Some(entry) = walk.next() {
            match entry {
                Ok(entry) if entry.file_type().is_dir() && is_database(entry.path()) => {
                    listed.own += 1;
                    walk.skip_current_dir();
                }
                Ok(entry) if entry.depth() == 0 && is_special(entry.path()) => {
                    unread += 1;
                    left_out.add(format_args!(
                        "left out: {} is neither a file nor a directory",
                        root.display()
                    ));
                }
                Ok(entry) => {
                    listed.add(root, entry);
                    progress.set(listed.files.len() as u64);
                }
                Err(error) => {
                    unread += usize::from(error.depth() == 0);
                    left_out.add(format_args!("left out: {}", why_not_listed(error, root)));
                }
            }
        }
    }
    if unread == paths.len() {
        return Err(Failure::Other("nothing was imported: no PATH can be read".to_string()));
    }
    Ok(listed)
}

/// Whether a path that was named leads to a pipe, a device or a socket.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

impl Listed {
    /// Adds what was found under `root`, unless it is a directory.
    fn add(&mut self, root: &Path, entry: DirEntry) {
        // A link that was named stands for what it leads to.
        let is_named = entry.depth() == 0;
        if entry.file_type().is_dir() || is_named && entry.path().is_dir() {
            return;
        }
        if entry.file_type().is_file() || is_named && entry.path().is_file() {
            let size = entry.metadata().map_or(0, |metadata| metadata.len());
            self.files.push(Found {
                key: key_of(root, entry.path()),
                path: entry.into_path(),
                size,
            });
        } else {
            self.skipped += 1;
        }
    }

    /// Takes out the files of the database: it changes them meanwhile. A hard link to one from
    /// elsewhere is a user's file that is not stored, and so is named.
    fn leave_out_own(&mut self, fs: &dyn FileSystem, left_out: &LeftOut) -> Result<(), Failure> {
        let open = OpenFiles::of_this_process()?;
        self.files.retain(|file| {
            if !open.contains(fs, &file.path) {
                return true;
            }
            // A link that was named may lead into the database's directory.
            let place = file.path.canonicalize();
            if open.has_directory_of(fs, place.as_ref().unwrap_or(&file.path)) {
                self.own += 1;
            } else {
                left_out.add(format_args!(
                    "left out: {} is a hard link to a file of this database; to store it, copy it without \
                     links (cp -a)",
                    file.path.display()
                ));
            }
            false
        });
        Ok(())
    }
}

/// Checks that there is something at one of the paths: a database is not made for a mistake.
fn check_any_is_there(paths: &[PathBuf], fs: &dyn FileSystem) -> Result<(), Failure> {
    let is_nothing = |error: Error| {
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        source.is_some_and(|source| {
            matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        })
    };
    if !paths.iter().all(|path| fs.metadata(path).is_err_and(is_nothing)) {
        return Ok(());
    }
    let named: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    Err(Failure::Usage(format!("nothing exists at {}: check PATH", named.join(", "))))
}

fn why_not_listed(error: walkdir::Error, root: &Path) -> Failure {
    let path = error.path().unwrap_or(root).to_path_buf();
    match error.into_io_error() {
        Some(error) => Failure::Engine(Error::io("list", path, error)),
        None => Failure::Other(format!("cannot list {}: a loop of links", path.display())),
    }
}

/// The path relative to `root`, or the file's own name if `root` is the file.
fn key_of(root: &Path, path: &Path) -> Vec<u8> {
    let relative = path.strip_prefix(root).unwrap_or(path);
    let named = if relative.as_os_str().is_empty() {
        path.file_name().unwrap_or(OsStr::new(""))
    } else {
        relative.as_os_str()
    };
    named.as_bytes().to_vec()
}

struct Import<'a> {
    db: &'a Opened,
    family: &'a ColumnFamily,
    fs: &'a dyn FileSystem,
    files: &'a [Found],
    next: AtomicU64,
    /// Bytes of the files stored, and how many these are.
    stored: AtomicU64,
    stored_files: AtomicU64,
    left_out: LeftOut,
    failed: AtomicBool,
    progress: Progress,
}

impl Import<'_> {
    /// Several threads read, so that a device with depth is used; each writes what it read.
    fn run(&self, threads: u32) -> Result<(), Failure> {
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..threads).map(|_| scope.spawn(|| self.work())).collect();
            let mut outcome = Ok(());
            for reader in readers {
                let result = reader
                    .join()
                    .unwrap_or_else(|_| Err(Failure::Other("a reader panicked".to_string())));
                outcome = outcome.and(result);
            }
            outcome
        })
    }

    fn work(&self) -> Result<(), Failure> {
        let result = self.store_all();
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }

    fn store_all(&self) -> Result<(), Failure> {
        let mut batch = WriteBatch::new();
        let mut pending = 0;
        while !self.failed.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed) as usize;
            let Some(file) = self.files.get(index) else { break };
            if file.size >= STREAMED_SIZE_MIN {
                self.store_in_pieces(file)?;
                continue;
            }
            // For what is wrong with one file no other is left out.
            let added = read_value(self.fs, &file.path).and_then(|value| {
                batch.put_cf(self.family, &file.key, &value).map(|()| value.len())
            });
            match added {
                Ok(size) => pending += size,
                Err(error) => self.leave_out(error, &file.path),
            }
            if pending >= BATCH_SIZE {
                self.write(&mut batch, &mut pending)?;
            }
        }
        self.write(&mut batch, &mut pending)
    }

    fn leave_out(&self, error: Error, path: &Path) {
        let error = if error.path().is_some() { error } else { error.at(path) };
        self.left_out.add(format_args!("left out: {}", Failure::Engine(error)));
    }

    fn store_in_pieces(&self, found: &Found) -> Result<(), Failure> {
        match self.stream(found) {
            Ok(size) => self.note_stored(1, size),
            Err(Obstacle::File(error)) => self.leave_out(error, &found.path),
            Err(Obstacle::Database(failure)) => return Err(failure),
        }
        Ok(())
    }

    /// Stores a file piece by piece; its size.
    fn stream(&self, found: &Found) -> Result<u64, Obstacle> {
        check_size(found.size, &found.path).map_err(Obstacle::File)?;
        let file =
            self.fs.open_random_access(&found.path, IoMode::Buffered).map_err(Obstacle::File)?;
        let writer = self.db.put_stream(self.family, &found.key, &WriteOptions::default());
        let mut writer = writer.map_err(refused)?;
        let (mut offset, mut piece) = (0, vec![0; PIECE_SIZE]);
        loop {
            let read = file.read_at(offset, &mut piece).map_err(Obstacle::File)?;
            if read == 0 {
                break;
            }
            offset += read as u64;
            // The file may have grown.
            writer.append(&piece[..read]).map_err(|error| refused(error.into()))?;
        }
        writer.commit().map_err(|error| refused(error.into()))?;
        Ok(offset)
    }

    fn note_stored(&self, files: u64, bytes: u64) {
        self.stored_files.fetch_add(files, Ordering::Relaxed);
        self.stored.fetch_add(bytes, Ordering::Relaxed);
        self.progress.add(bytes);
    }

    fn write(&self, batch: &mut WriteBatch, pending: &mut usize) -> Result<(), Failure> {
        self.db.write(&WriteOptions::default(), batch)?;
        self.note_stored(u64::from(batch.count()), *pending as u64);
        batch.clear();
        *pending = 0;
        Ok(())
    }
}

/// Why a file is not stored.
enum Obstacle {
    /// It cannot be read, or is nothing that a database holds.
    File(Error),
    /// The database cannot be written.
    Database(Failure),
}

/// Whether the database refused this file, or could not be written.
fn refused(failure: Failure) -> Obstacle {
    match failure {
        Failure::Engine(error) if error.code() == Code::InvalidArgument => Obstacle::File(error),
        failure => Obstacle::Database(failure),
    }
}

fn check_size(size: u64, path: &Path) -> Result<(), Error> {
    if size > VALUE_SIZE_MAX {
        return Err(Error::invalid_argument(format!(
            "the file has {size} bytes, but a value has at most {VALUE_SIZE_MAX}; move it elsewhere or split it"
        ))
        .at(path));
    }
    Ok(())
}

/// Reads a file to its end, which need not lie where its size says: files of the kernel (/proc,
/// /sys) tell 0 or a page.
fn read_value(fs: &dyn FileSystem, path: &Path) -> Result<Vec<u8>, Error> {
    const ROOM_MIN: u64 = 4096;
    let file = fs.open_random_access(path, IoMode::Buffered)?;
    let size = file.size()?;
    check_size(size, path)?;
    // With a byte more than the size the end shows without another buffer.
    let mut bytes = vec![0; size.max(ROOM_MIN) as usize + 1];
    let mut filled = 0;
    loop {
        match file.read_at(filled as u64, &mut bytes[filled..])? {
            0 => break,
            read => filled += read,
        }
        if filled == bytes.len() {
            check_size(filled as u64, path)?;
            bytes.resize(2 * filled, 0);
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// What the engine wrote to its files since it was opened.
fn bytes_written(db: &Db) -> u64 {
    [Ticker::WalBytes, Ticker::FlushWriteBytes, Ticker::CompactWriteBytes, Ticker::BlobWriteBytes]
        .iter()
        .map(|ticker| db.statistics().get(*ticker))
        .sum()
}

/// The tables, blob files and WALs that `db_paths`, `cf_paths` or `wal_dir` has in other
/// directories than the database's.
fn files_elsewhere(db: &Db, directory: &Path) -> Vec<PathBuf> {
    let tables_and_blobs = db.live_files().into_iter().map(|file| file.path);
    let wals = db.wal_files().into_iter().map(|wal| wal.path);
    let home = directory.canonicalize().ok();
    let is_at_home =
        |path: &PathBuf| path.parent().and_then(|parent| parent.canonicalize().ok()) == home;
    tables_and_blobs.chain(wals).filter(|path| !is_at_home(path)).collect()
}

/// Bytes of all that is in the directory, and of these files.
fn space_on_disk(
    fs: &dyn FileSystem,
    directory: &Path,
    elsewhere: &[PathBuf],
) -> Result<u64, Failure> {
    let home = fs.list(directory)?.into_iter().map(|name| directory.join(name));
    // A file may vanish meanwhile: compaction goes on.
    let size = |path: PathBuf| fs.metadata(&path).map_or(0, |metadata| metadata.size);
    Ok(home.chain(elsewhere.iter().cloned()).map(size).sum())
}

struct Summary {
    files: u64,
    skipped: u64,
    own: u64,
    left_out: u64,
    bytes: u64,
    seconds: f64,
    written: u64,
    on_disk: u64,
}

impl Summary {
    fn print(&self, common: &Common) -> Outcome {
        let rate = self.bytes as f64 / self.seconds.max(1e-6);
        let mut output = Output::new();
        if common.json {
            let facts = json!({
                "files": self.files,
                "skipped": self.skipped,
                "own": self.own,
                "left_out": self.left_out,
                "bytes": self.bytes,
                "seconds": self.seconds,
                "bytes_per_second": rate,
                "bytes_written": self.written,
                "bytes_on_disk": self.on_disk,
            });
            output.line(facts.to_string())?;
        } else {
            output.line(format!(
                "{}, {} in {:.2} s ({}/s); {} written by the engine, {} on disk",
                counted(self.files, "file"),
                text::bytes(self.bytes),
                self.seconds,
                text::bytes(rate as u64),
                text::bytes(self.written),
                text::bytes(self.on_disk)
            ))?;
            if self.skipped > 0 {
                let which = match self.skipped {
                    1 => "symbolic link or special file",
                    _ => "symbolic links and special files",
                };
                output.line(format!("{} {which} left out", self.skipped))?;
            }
            if self.own > 0 {
                output.line(format!(
                    "{} of the database itself left out",
                    counted(self.own, "path")
                ))?;
            }
            if self.left_out > 0 {
                output.line(format!(
                    "{} not stored, as listed above",
                    counted(self.left_out, "path")
                ))?;
            }
        }
        let verdict = if self.left_out == 0 { Verdict::Sound } else { Verdict::Faulty };
        reported(verdict, output.finish())
    }
}

#[cfg(test)]
mod tests;
