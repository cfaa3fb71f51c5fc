//! The files of the stress test itself, and the database's as a round finds them.

use std::fs;
use std::io;
use std::path::Path;

use flagstone::base::Error;

use crate::failure::Failure;
use crate::plan::Config;

/// Marks a directory whose contents may be removed.
const MARK: &str = "flagstone-stress";

/// What a file system may put into an empty directory itself.
const LOST_AND_FOUND: &str = "lost+found";

/// Makes the directory, and takes possession of it if nobody else has anything in it.
pub fn claim(directory: &Path) -> Result<(), Failure> {
    let failed =
        |error| Failure::Failed(Error::io("use the directory", directory, error).to_string());
    fs::create_dir_all(directory).map_err(failed)?;
    let mark = directory.join(MARK);
    if !mark.exists() {
        for entry in fs::read_dir(directory).map_err(failed)? {
            if entry.map_err(failed)?.file_name() != LOST_AND_FOUND {
                return Err(Failure::Usage(format!(
                    "{} is not empty; give an empty directory",
                    directory.display()
                )));
            }
        }
        fs::write(mark, "The files here belong to the program stress, which removes them.\n")
            .map_err(failed)?;
    }
    Ok(())
}

/// Removes what the stress test made, and the directories themselves where it made them.
pub fn release(config: &Config, made_root: bool, made_work: bool) -> io::Result<()> {
    remove_all(config, true)?;
    remove_directory(&config.before())?;
    for file in [config.counts(), config.fault(), config.log(), config.contents()] {
        remove_file(&file)?;
    }
    for (directory, was_made) in [(&config.root, made_root), (&config.work, made_work)] {
        remove_file(&directory.join(MARK))?;
        if was_made {
            fs::remove_dir(directory)?;
        }
    }
    Ok(())
}

/// Removes the database and all that belongs to it.
pub fn remove_all(config: &Config, with_expected: bool) -> io::Result<()> {
    for directory in [config.db(), config.wal()] {
        remove_directory(&directory)?;
    }
    for thread in 0..config.space.threads {
        remove_directory(&config.checkpoint(thread))?;
    }
    remove_file(&config.ballast())?;
    if with_expected {
        remove_file(&config.expected())?;
    }
    Ok(())
}

/// Copies the database and what is expected of it to `copy`, or back.
pub fn copy_all(copy: &Path, config: &Config, is_saving: bool) -> io::Result<()> {
    if is_saving {
        remove_directory(copy)?;
        fs::create_dir_all(copy)?;
    }
    let between = |original: &Path, saved: &str| {
        let saved = copy.join(saved);
        let (source, target) =
            if is_saving { (original, saved.as_path()) } else { (saved.as_path(), original) };
        copy_file_or_directory(source, target)
    };
    between(&config.expected(), "expected")?;
    between(&config.db(), "db")?;
    between(&config.wal(), "wal")
}

/// Copies a file, or a directory with all that is in it; nothing where there is none.
fn copy_file_or_directory(source: &Path, target: &Path) -> io::Result<()> {
    if source.is_file() {
        return fs::copy(source, target).map(|_| ());
    }
    if !source.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let (source, target) = (entry.path(), target.join(entry.file_name()));
        // Tables and blob files never change.
        let is_fixed = source.extension().is_some_and(|kind| kind == "sst" || kind == "blob");
        if !(is_fixed && fs::hard_link(&source, &target).is_ok()) {
            copy_file_or_directory(&source, &target)?;
        }
    }
    Ok(())
}

fn remove_directory(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove_file(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
