//! Looking for faults in a database that another process may be writing to.
//!
//! A command opens it without a lock, and sees one state of it: no writer takes the files away that
//! it holds. But RocksDB may write over a WAL that it no longer needs, and where it limits the rate
//! of its deletions it cuts files off, which is no fault. So where faults were found and the
//! MANIFEST has changed, a second look is taken, which opens the database anew. If that finds any,
//! and the MANIFEST has changed again, they are doubtful.
//!
//! What was read before the files were held (the OPTIONS file, the names of the column families)
//! may be out of date by then: an opening that fails for it is repeated. Within the engine,
//! openings are repeated for what changes meanwhile.

use std::path::{Path, PathBuf};

use flagstone::base::{Code, Remedy};
use flagstone::manifest;

use crate::failure::Failure;
use crate::world;

/// How often a database that changes each time is looked at, if there are faults.
const LOOKS: usize = 2;

/// How often one that changes each time is opened, if that fails.
const OPENINGS: usize = 20;

/// What is said of findings that are doubtful.
pub const DOUBTFUL: Remedy = Remedy::LookAgain;

/// What a look found.
pub struct Seen<T> {
    /// The last look's findings.
    pub found: T,
    /// There are faults, and the database changed while they were looked for, each time.
    pub is_doubtful: bool,
}

/// Looks at the database in `path` until there are no faults, or it holds still, a few times at
/// most.
pub fn look<T>(
    path: &Path,
    is_faulty: impl Fn(&T) -> bool,
    look: impl FnMut() -> Result<T, Failure>,
) -> Result<Seen<T>, Failure> {
    look_until_still(|| state(path), is_faulty, look)
}

/// The MANIFEST and its size; `None` if it cannot be told.
fn state(path: &Path) -> Option<(PathBuf, u64)> {
    let fs = world::env().fs;
    let current = manifest::read_current(fs.as_ref(), path).ok()?;
    let size = fs.metadata(&current).ok()?.size;
    Some((current, size))
}

/// Opens the database in `path` for reading, again if that fails and the database has changed
/// meanwhile.
pub fn open<T>(path: &Path, open: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    Ok(look_until_still(|| state(path), |_| false, open)?.found)
}

fn look_until_still<T, S: PartialEq>(
    state: impl Fn() -> S,
    is_faulty: impl Fn(&T) -> bool,
    mut look: impl FnMut() -> Result<T, Failure>,
) -> Result<Seen<T>, Failure> {
    let (mut looks_left, mut openings_left) = (LOOKS, OPENINGS);
    loop {
        let before = state();
        let looked = look();
        let (has_failed, attempts_left) = match &looked {
            Ok(found) => (is_faulty(found), &mut looks_left),
            // The engine has repeated that already.
            Err(Failure::Engine(error)) if error.code() == Code::TryAgain => {
                (false, &mut openings_left)
            }
            Err(_) => (true, &mut openings_left),
        };
        *attempts_left -= 1;
        let is_doubtful = has_failed && state() != before;
        if !is_doubtful || *attempts_left == 0 {
            return Ok(Seen { found: looked?, is_doubtful });
        }
    }
}

#[cfg(test)]
mod tests;
