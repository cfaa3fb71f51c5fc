//! `flagstone backup`

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use flagstone::backup::{
    BackupEngine, BackupEngineOptions, BackupEngineReadOnly, BackupFileInfo, BackupId, BackupInfo,
    CreateBackupOptions, RestoreMode, RestoreOptions,
};
use flagstone::base::{Code, Error, Remedy};
use flagstone::options::value::SettingValue;
use serde_json::{Value, json};

use crate::arguments::Common;
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict};
use crate::output::Output;
use crate::progress::Progress;
use crate::text;
use crate::world;

/// Make, list, verify, restore and remove backups, in RocksDB's layout.
///
/// A directory of backups has copies of one database as it was at several moments. They share the
/// files that did not change in between. RocksDB's ldb backup and restore use the same directory.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    flagstone backup create --db /data/photos --dir /data/backups\n  \
    flagstone backup list --dir /data/backups\n  \
    flagstone backup restore --dir /data/backups --db /data/photos-again")]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Create(Create),
    List(List),
    Verify(Verify),
    Restore(Restore),
    Delete(Delete),
    Purge(Purge),
}

/// Where the backups are.
#[derive(Debug, Args)]
struct Directory {
    /// The directory of backups
    #[arg(long, value_name = "DIR", alias = "backup_dir", alias = "backup-dir")]
    dir: PathBuf,
}

/// How files are copied or read.
#[derive(Debug, Args)]
struct Speed {
    /// Threads that copy or read files
    #[arg(long, value_name = "N", default_value_t = 1, alias = "num_threads", value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// Bytes a second at most, as in 50M
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    rate: Option<u64>,
}

/// Copy a database as it is now.
///
/// Copies only files that no earlier backup has. Prints the backup's number. The command takes the
/// database's lock; a program that has the database open calls BackupEngine::create_new_backup.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone backup create --db /data/photos --dir /data/backups")]
struct Create {
    /// The database directory
    #[arg(long, value_name = "DIR")]
    db: PathBuf,
    #[command(flatten)]
    directory: Directory,
    #[command(flatten)]
    speed: Speed,
    /// Flush memtables first, so that the backup has no WAL to replay
    #[arg(long)]
    flush: bool,
    /// A note to keep with the backup
    #[arg(long, value_name = "TEXT", default_value = "")]
    metadata: String,
    /// Form of the metadata: 1, which every RocksDB reads, or 2 with sizes (RocksDB 6.19 and later)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    schema: u32,
}

/// List the backups, oldest first, and those that are damaged.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone backup list --dir /data/backups")]
struct List {
    #[command(flatten)]
    directory: Directory,
    /// List the files of each backup, too
    #[arg(long)]
    files: bool,
}

/// Compare the files of backups with what is recorded of them, every byte.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone backup verify --dir /data/backups")]
struct Verify {
    #[command(flatten)]
    directory: Directory,
    #[command(flatten)]
    speed: Speed,
    /// The backup's number; all without it
    #[arg(long, value_name = "N")]
    id: Option<BackupId>,
    /// Compare sizes only, without reading files
    #[arg(long)]
    sizes: bool,
}

/// Replace a database by a backup, or make a new one of it.
///
/// Without a number the newest backup that is whole. The database that is there stays as it was
/// until all files are copied and compared.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flagstone backup restore --dir /data/backups --db /data/photos-again"
)]
struct Restore {
    #[command(flatten)]
    directory: Directory,
    #[command(flatten)]
    speed: Speed,
    /// The database directory
    #[arg(long, value_name = "DIR")]
    db: PathBuf,
    /// The directory of the WALs, if it is another one
    #[arg(long, value_name = "DIR")]
    wal_dir: Option<PathBuf>,
    /// The backup's number
    #[arg(long, value_name = "N")]
    id: Option<BackupId>,
    /// Keep tables and blob files whose checksums are those in the backup
    #[arg(long)]
    keep: bool,
}

/// Remove a backup, and the files that no other one needs.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone backup delete --dir /data/backups --id 3")]
struct Delete {
    #[command(flatten)]
    directory: Directory,
    /// The backup's number
    #[arg(long, value_name = "N")]
    id: BackupId,
}

/// Remove all backups but the newest ones, and what interruptions left.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone backup purge --dir /data/backups --keep 7")]
struct Purge {
    #[command(flatten)]
    directory: Directory,
    /// How many backups to keep
    #[arg(long, value_name = "N")]
    keep: usize,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    if !matches!(arguments.action, Action::Create(_)) {
        common.refuse_settings()?;
    }
    match &arguments.action {
        Action::Create(create) => run_create(create, common),
        Action::List(list) => run_list(list, common),
        Action::Verify(verify) => run_verify(verify, common),
        Action::Restore(restore) => run_restore(restore, common),
        Action::Delete(delete) => {
            existing(&delete.directory)?;
            writer(&delete.directory)?.delete_backup(delete.id)?;
            Ok(Verdict::Sound)
        }
        Action::Purge(purge) => {
            existing(&purge.directory)?;
            writer(&purge.directory)?.purge_old_backups(purge.keep)?;
            Ok(Verdict::Sound)
        }
    }
}

fn run_create(create: &Create, common: &Common) -> Outcome {
    let opened = database::open(common, &create.db, Access::Write);
    let db = opened.map_err(|failure| match failure {
        Failure::Engine(error) if error.code() == Code::Busy => {
            Failure::Advised(error.to_string(), Box::new(Remedy::CopyBesideWriter))
        }
        failure => failure,
    })?;
    let mut options = options(&create.directory, Some(&create.speed));
    options.backup_rate_limit = create.speed.rate.unwrap_or_default();
    options.schema_version = create.schema;
    let backups = BackupEngine::open(options)?;
    let progress = Arc::new(Progress::bytes(0));
    let shown = progress.clone();
    let mut request = CreateBackupOptions::default();
    request.flush_before_backup = create.flush;
    request.progress_callback = Some(Arc::new(move |reached| {
        shown.set_total(reached.bytes_total);
        shown.set(reached.bytes_copied);
    }));
    let metadata = create.metadata.as_bytes();
    let id = backups.create_new_backup_with_metadata(&db, &request, metadata)?;
    db.close()?;
    drop((request, progress));
    tell_id(id, common)
}

fn tell_id(id: BackupId, common: &Common) -> Outcome {
    let mut output = Output::new();
    output.line(if common.json { json!({ "backup": id }).to_string() } else { id.to_string() })?;
    output.finish()?;
    Ok(Verdict::Sound)
}

fn run_list(list: &List, common: &Common) -> Outcome {
    let backups = reader(&list.directory, None)?;
    let mut output = Output::new();
    for info in backups.get_backup_info(true)? {
        output.line(if common.json {
            as_json(&info, list.files).to_string()
        } else {
            in_words(&info)
        })?;
        if list.files && !common.json {
            for file in &info.file_details {
                let size = text::bytes(file.size);
                output.line(format!("  {} {size}", text::name(&file.relative_filename)))?;
            }
        }
    }
    let damaged = backups.get_corrupted_backups()?;
    for (id, error) in &damaged {
        output.line(told(*id, error, common))?;
    }
    output.finish()?;
    Ok(if damaged.is_empty() { Verdict::Sound } else { Verdict::Faulty })
}

fn told(id: BackupId, error: &Error, common: &Common) -> String {
    if common.json {
        json!({ "backup": id, "damage": error.to_string() }).to_string()
    } else {
        format!("{id}: DAMAGED: {error}")
    }
}

fn in_words(info: &BackupInfo) -> String {
    let mut words = format!(
        "{}: {}, {}, {}, sequence number {}",
        info.backup_id,
        moment(info.timestamp),
        flagstone::base::counted(info.number_files as u64, "file"),
        text::bytes(info.size),
        info.sequence_number
    );
    if !info.app_metadata.is_empty() {
        words.push_str(&format!(", '{}'", info.app_metadata.escape_ascii()));
    }
    words
}

/// Seconds since 1970 as date and time, in UTC.
fn moment(unix_seconds: u64) -> String {
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    // Years are counted from March on, so that the day that leap years add is the last one.
    let from_march = days + 719_468;
    let (era, day_of_era) = (from_march / 146_097, from_march % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Bytes a second, with a suffix as options have it.
fn rate(text: &str) -> Result<u64, String> {
    let mut rate = 0u64;
    rate.assign(text).map_err(|error| error.to_string())?;
    if rate > 0 { Ok(rate) } else { Err("it must be at least 1".to_string()) }
}

fn as_json(info: &BackupInfo, with_files: bool) -> Value {
    let file = |file: &BackupFileInfo| json!({ "path": file.relative_filename, "bytes": file.size, "crc32c": file.crc32c });
    let mut value = json!({
        "backup": info.backup_id,
        "unix_seconds": info.timestamp,
        "sequence_number": info.sequence_number,
        "bytes": info.size,
        "files": info.number_files,
        "metadata": info.app_metadata.escape_ascii().to_string(),
    });
    if with_files {
        value["file_list"] = info.file_details.iter().map(file).collect();
    }
    value
}

fn run_verify(verify: &Verify, common: &Common) -> Outcome {
    let backups = reader(&verify.directory, Some(&verify.speed))?;
    let mut damaged = Vec::new();
    let ids = match verify.id {
        Some(id) => vec![id],
        None => {
            damaged = backups.get_corrupted_backups()?;
            backups.get_backup_info(false)?.iter().map(|info| info.backup_id).collect()
        }
    };
    let progress = Progress::things(ids.len() as u64, "backups");
    for id in &ids {
        match backups.verify_backup(*id, !verify.sizes) {
            Err(error) if error.is_corruption() => damaged.push((*id, error)),
            outcome => outcome?,
        }
        progress.add(1);
    }
    drop(progress);
    let mut output = Output::of_a_search();
    for (id, error) in &damaged {
        output.line(told(*id, error, common))?;
    }
    for id in ids.iter().filter(|id| !damaged.iter().any(|(damaged, _)| damaged == *id)) {
        output.line(if common.json {
            json!({ "backup": id, "damage": null }).to_string()
        } else {
            format!("{id}: sound")
        })?;
    }
    output.finish()?;
    Ok(if damaged.is_empty() { Verdict::Sound } else { Verdict::Faulty })
}

fn run_restore(restore: &Restore, common: &Common) -> Outcome {
    let backups = reader(&restore.directory, Some(&restore.speed))?;
    let mut options = RestoreOptions::default();
    if restore.keep {
        options.mode = RestoreMode::VerifyChecksum;
    }
    let wal_dir = restore.wal_dir.as_ref().unwrap_or(&restore.db);
    let progress = Progress::of_work("restoring");
    let id = match restore.id {
        Some(id) => {
            backups.restore_db_from_backup(id, &restore.db, wal_dir, &options)?;
            id
        }
        None => backups.restore_db_from_latest_backup(&restore.db, wal_dir, &options)?,
    };
    drop(progress);
    tell_id(id, common)
}

fn options(directory: &Directory, speed: Option<&Speed>) -> BackupEngineOptions {
    let mut options = BackupEngineOptions::new(&directory.dir);
    options.backup_env = Some(world::env());
    if let Some(speed) = speed {
        options.max_background_operations = usize::from(speed.threads);
        options.restore_rate_limit = speed.rate.unwrap_or_default();
    }
    options
}

fn reader(directory: &Directory, speed: Option<&Speed>) -> Result<BackupEngineReadOnly, Failure> {
    Ok(BackupEngineReadOnly::open(options(directory, speed))?)
}

/// A command that removes backups makes no directory for them.
fn existing(directory: &Directory) -> Result<(), Failure> {
    reader(directory, None).map(|_| ())
}

fn writer(directory: &Directory) -> Result<BackupEngine, Failure> {
    Ok(BackupEngine::open(options(directory, None))?)
}

#[cfg(test)]
mod tests;
