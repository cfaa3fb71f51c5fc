//! `flagstone export`

use std::error::Error as _;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use flagstone::base::Error;
use flagstone::env::{Env, FileSystem, OpenMode, directory_of};
use serde_json::json;

use crate::arguments::{Common, Place, Range};
use crate::database::{self, Access};
use crate::failure::{Failure, Outcome, Verdict, reported, say};
use crate::output::Output;
use crate::progress::Progress;
use crate::stamped::{Cursor, Ttl};
use crate::text;

/// Write every value to a file in DIR, named by its key: the inverse of import.
///
/// DIR must be empty or not exist. A key that names no place within DIR (empty, absolute, with '..', '.' or empty
/// parts), or a file below what is a file already (key 'a/b' after key 'a'), or that the file system has no room for in a
/// name, is reported and left out, with exit code 1; so is a value that cannot be read, of which no file is left. A large value
/// that lies uncompressed in a blob file need not fit into memory.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flagstone export --db /data/photos ~/restored --prefix cats/")]
pub struct Arguments {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    range: Range,
    #[command(flatten)]
    ttl: Ttl,
    /// The directory to write to
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
    arguments.range.check_order(&family, &bounds)?;
    if fs.metadata(&arguments.dir).is_ok_and(|found| !found.is_directory) {
        return Err(Failure::Other(format!("{} is a file; name a new directory", arguments.dir.display())));
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
    let mut iter = db.cursor(&family, bounds, false)?;
    let mut done = Done::default();
    if let Err(failure) = write_all(fs, &arguments.dir, &mut iter, &progress, &mut done) {
        drop(progress);
        // Else whoever repeats the command is refused for it.
        let dir = arguments.dir.display();
        say(format_args!("{dir} has only a part of the values: remove it before you repeat the command"));
        return Err(failure);
    }
    drop(progress);
    let seconds = (env.clock.now_us() - start_us) as f64 / 1e6;
    let mut output = Output::new();
    let verdict = if done.is_whole() { Verdict::Sound } else { Verdict::Faulty };
    reported(verdict, output.line(done.summary(seconds, common.json)).and_then(|()| output.finish()))
}

/// How far an export is.
#[derive(Default)]
struct Done {
    files: u64,
    bytes: u64,
    /// Keys that name no place for a file.
    refused: u64,
    /// Values that could not be read.
    unread: u64,
}

impl Done {
    fn is_whole(&self) -> bool {
        self.refused + self.unread == 0
    }

    fn summary(&self, seconds: f64, json: bool) -> String {
        let Self { files, bytes, refused, unread } = *self;
        if json {
            let facts = json!({
                "files": files, "bytes": bytes, "refused": refused, "unread": unread, "seconds": seconds,
            });
            return facts.to_string();
        }
        let unread = match unread {
            0 => String::new(),
            some => format!(", {} not readable", text::count(some, "value")),
        };
        let (files, refused) = (text::count(files, "file"), text::count(refused, "key"));
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
        let left_out = match safe_path(&key) {
            None => Some((&mut done.refused, "names no file within the directory".to_string())),
            Some(relative) => match write_value(fs, &dir.join(relative), iter, &mut directory) {
                Ok(size) => {
                    (done.files, done.bytes) = (done.files + 1, done.bytes + size);
                    None
                }
                Err(Obstacle::File(error)) if names_no_place(&error) => {
                    Some((&mut done.refused, format!("has no place there: {}", Failure::Engine(error))))
                }
                Err(Obstacle::File(error)) => return Err(error.into()),
                Err(Obstacle::Value(failure)) => Some((&mut done.unread, format!("is left out: {failure}"))),
            },
        };
        if let Some((count, why)) = left_out {
            *count += 1;
            say(format_args!("key '{}' {why}", key.escape_ascii()));
        }
        progress.add(1);
        progress.say(text::bytes(done.bytes));
        iter.step(false);
    }
    iter.status()
}

/// Writes the value at which the cursor stands to a file; its size. No file is left of what cannot be read or written to its
/// end. `directory` is the last one made, so that neighbours do not make it again.
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
    let file = fs.open(target, OpenMode::Create).map_err(Obstacle::File)?;
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

/// The file that a key names below any directory, if it names one.
fn safe_path(key: &[u8]) -> Option<PathBuf> {
    if key.contains(&0) || key.split(|byte| *byte == b'/').any(|part| matches!(part, b"" | b"." | b"..")) {
        return None;
    }
    let path = Path::new(OsStr::from_bytes(key));
    path.components().all(|part| matches!(part, Component::Normal(_))).then(|| path.to_path_buf())
}

/// Whether it is for the key's name, or the value's size, that it cannot be written: the next one can.
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
mod tests {
    use super::*;

    #[test]
    fn only_keys_within_the_directory_become_files() {
        for good in ["a", "a/b.jpg", "..a", "a..b/c", " ", "a\\b"] {
            assert_eq!(safe_path(good.as_bytes()), Some(PathBuf::from(good)), "{good}");
        }
        for bad in
            ["", "/", "/etc/passwd", "..", "a/../b", "a/..", "../a", "a//b", "a/", ".", "a/./b", "a\0b"]
        {
            assert_eq!(safe_path(bad.as_bytes()), None, "{bad}");
        }
        assert!(safe_path(b"\xff\xfe/x").is_some());
    }
}
