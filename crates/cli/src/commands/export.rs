//! `flagstone export`

use std::error::Error as _;
use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use flagstone::base::{Error, counted};
use flagstone::env::{Env, FileSystem, IoMode, directory_of};
use flagstone::options::ReadOptions;
use serde_json::json;

use crate::arguments::{Common, Place, Range};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict, reported, say};
use crate::left_out::LeftOut;
use crate::marks::refuse_stamps;
use crate::output::Output;
use crate::progress::Progress;
use crate::stamped::{Cursor, Ttl};
use crate::text::{self, Notation};

/// Write every value to a file in DIR named by its key: the inverse of import.
///
/// DIR must be empty or not exist. A file name is the key's bytes, unescaped, so import reads back
/// the same keys. The command skips and names the following, and exits with code 1: a key that
/// cannot name a file inside DIR (it is empty, has a zero byte, or has a part between '/' that is
/// empty, '.' or '..'); a key below another key's file ('a/b' after 'a'); a key too long for the
/// file system; and a value that cannot be read. It names up to ten of each kind, with --json all
/// of them; use get or dump for their values. With --hex, bounds and printed keys are hexadecimal;
/// file names are not. A large value stored uncompressed in a blob file need not fit into memory.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone export --db /data/photos ~/restored --prefix cats/")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    range: Range,
    #[command(flatten)]
    ttl: Ttl,
    /// Directory to write to
    dir: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments, common: &Common) -> Outcome {
    let place = &arguments.place;
    let env = Env::os();
    let fs = env.fs.as_ref();
    let start_us = env.clock.now_us();
    let bounds = arguments.range.bounds(place.notation())?;
    let db = arguments.ttl.open(common, &place.db, Access::Read)?;
    let family = database::family(db.db(), &place.cf)?;
    refuse_stamps(&family, "scan --read-timestamp NUMBER")?;
    arguments.range.check_order(&family, &bounds)?;
    if fs.metadata(&arguments.dir).is_ok_and(|found| !found.is_directory) {
        return Err(Failure::Other(format!(
            "{} is a file; name a new directory",
            arguments.dir.display()
        )));
    }
    // In an empty directory no link can lead out of it.
    fs.create_directory(&arguments.dir)?;
    if !fs.list(&arguments.dir)?.is_empty() {
        return Err(Failure::Other(format!(
            "{} is not empty; name a new directory",
            arguments.dir.display()
        )));
    }
    let is_bounded = bounds.0.is_some() || bounds.1.is_some();
    let progress = Progress::keys(db.db(), std::slice::from_ref(&family), is_bounded);
    let mut iter = db.cursor(ReadOptions::default(), &family, bounds, false)?;
    let mut done = Done::new(place.notation(), common);
    if let Err(failure) = write_all(fs, &arguments.dir, &mut iter, &progress, &mut done) {
        drop(progress);
        // Else whoever repeats the command is refused for it.
        let dir = arguments.dir.display();
        say(format_args!(
            "{dir} has only part of the values: remove it before repeating the command"
        ));
        return Err(failure);
    }
    drop(progress);
    let seconds = (env.clock.now_us() - start_us) as f64 / 1e6;
    let mut output = Output::new();
    let verdict = if done.is_whole() { Verdict::Sound } else { Verdict::Faulty };
    reported(
        verdict,
        output.line(done.summary(seconds, common.json)).and_then(|()| output.finish()),
    )
}

/// How far an export is.
struct Done {
    files: u64,
    bytes: u64,
    /// Keys that name no place for a file.
    refused: LeftOut,
    /// Keys whose values cannot be read.
    unread: LeftOut,
    notation: Notation,
}

impl Done {
    fn new(notation: Notation, common: &Common) -> Self {
        let none = || LeftOut::new("key", common);
        Self { files: 0, bytes: 0, refused: none(), unread: none(), notation }
    }

    fn is_whole(&self) -> bool {
        self.refused.count() + self.unread.count() == 0
    }

    fn leave_out(&self, kind: &LeftOut, key: &[u8], why: impl Display) {
        kind.add(format_args!("key '{}' is left out: {why}", self.notation.show(key)));
    }

    fn summary(&self, seconds: f64, json: bool) -> String {
        let Self { files, bytes, .. } = *self;
        let (refused, unread) = (self.refused.count(), self.unread.count());
        if json {
            let facts = json!({
                "files": files, "bytes": bytes, "refused": refused, "unread": unread, "seconds": seconds,
            });
            return facts.to_string();
        }
        let unread = match unread {
            0 => String::new(),
            some => format!(", {} not readable", counted(some, "value")),
        };
        let (files, refused) = (counted(files, "file"), counted(refused, "key"));
        format!("{files}, {} in {seconds:.2} s, {refused} refused{unread}", text::bytes(bytes))
    }
}

/// Why there is no file of a value.
enum Obstacle {
    /// The value cannot be read.
    Value(Failure),
    /// The file cannot be written.
    File(Error),
}

/// Writes a file for each key from where the cursor stands on.
fn write_all(
    fs: &dyn FileSystem,
    dir: &Path,
    iter: &mut Cursor,
    progress: &Progress,
    done: &mut Done,
) -> Result<(), Failure> {
    let mut directory = PathBuf::new();
    while iter.valid() {
        let key = iter.key().to_vec();
        match safe_path(&key) {
            Err(why) => done.leave_out(&done.refused, &key, why),
            Ok(relative) => match write_value(fs, &dir.join(relative), iter, &mut directory) {
                Ok(size) => (done.files, done.bytes) = (done.files + 1, done.bytes + size),
                Err(Obstacle::File(error)) if names_no_place(&error) => {
                    let why = Failure::Engine(error);
                    done.leave_out(
                        &done.refused,
                        &key,
                        format_args!("it has no place there: {why}"),
                    );
                }
                Err(Obstacle::File(error)) => return Err(error.into()),
                Err(Obstacle::Value(failure)) => done.leave_out(&done.unread, &key, failure),
            },
        }
        progress.add(1);
        progress.say(text::bytes(done.bytes));
        iter.step(false);
    }
    iter.status()
}

/// Writes the value at which the cursor stands to a file; its size. No file is left of what cannot
/// be read or written to its end. `directory` is the last one made, so that neighbours do not make
/// it again.
fn write_value(
    fs: &dyn FileSystem,
    target: &Path,
    iter: &mut Cursor,
    directory: &mut PathBuf,
) -> Result<u64, Obstacle> {
    let mut value = iter.value().map_err(Obstacle::Value)?;
    let size = value.size();
    let parent = directory_of(target);
    if parent != *directory {
        fs.create_directory(&parent).map_err(Obstacle::File)?;
        *directory = parent;
    }
    let file = fs.create_writable(target, IoMode::Buffered).map_err(Obstacle::File)?;
    let mut offset = 0;
    let mut write_next = || match value.next().map_err(Obstacle::Value)? {
        None => Ok(false),
        Some(piece) => {
            file.write_at(offset, &piece).map_err(Obstacle::File)?;
            offset += piece.len() as u64;
            Ok(true)
        }
    };
    loop {
        match write_next() {
            Ok(true) => {}
            Ok(false) => return Ok(size),
            Err(obstacle) => {
                // The obstacle is reported; what cannot be written may not be removable either.
                let _ = fs.remove(target);
                return Err(obstacle);
            }
        }
    }
}

/// The file that a key names below any directory; or why it names none.
fn safe_path(key: &[u8]) -> Result<PathBuf, &'static str> {
    if key.is_empty() {
        return Err("an empty key is no file's name");
    }
    if key.contains(&0) {
        return Err("no file's name can have a zero byte");
    }
    let path = Path::new(OsStr::from_bytes(key));
    let is_odd = |part: &[u8]| matches!(part, b"" | b"." | b"..");
    if key.split(|byte| *byte == b'/').any(is_odd)
        || path.components().any(|part| !matches!(part, Component::Normal(_)))
    {
        return Err("it names no file within the directory: a part of it is empty, '.' or '..'");
    }
    Ok(path.to_path_buf())
}

/// Whether it is for the key's name, or the value's size, that it cannot be written: the next one
/// can.
fn names_no_place(error: &Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| {
        matches!(
            source.kind(),
            ErrorKind::AlreadyExists
                | ErrorKind::NotADirectory
                | ErrorKind::IsADirectory
                | ErrorKind::InvalidFilename
                | ErrorKind::InvalidInput
                | ErrorKind::FileTooLarge
        ) || source.raw_os_error() == Some(rustix::io::Errno::ILSEQ.raw_os_error())
    })
}

#[cfg(test)]
mod tests;
