//! Looking for faults in a database that another process may be writing to.
//!
//! A command opens it without a lock and reads its files as its MANIFEST said then. A compaction that ends meanwhile removes
//! some of them and punches holes into others, which is no fault. So where faults were found and the MANIFEST has changed, the
//! look is repeated, and in the end they are called doubtful.

use std::path::{Path, PathBuf};

use flagstone::base::Remedy;
use flagstone::env::Env;
use flagstone::manifest;

use crate::failure::Failure;

/// How often a database that is changing is looked at.
const ATTEMPTS: usize = 3;

/// What is said of findings that are doubtful.
pub const DOUBTFUL: Remedy = Remedy::LookAgain;

/// What a look found.
pub struct Seen<T> {
    /// The last look's findings.
    pub found: T,
    /// There are faults, and the database changed while they were looked for, each time.
    pub is_doubtful: bool,
}

/// Looks at the database in `path` until there are no faults, or it holds still.
pub fn look<T>(
    path: &Path,
    is_faulty: impl Fn(&T) -> bool,
    look: impl FnMut() -> Result<T, Failure>,
) -> Result<Seen<T>, Failure> {
    look_until_still(|| state(path), is_faulty, look)
}

/// The MANIFEST and its size; `None` if it cannot be told.
fn state(path: &Path) -> Option<(PathBuf, u64)> {
    let fs = Env::os().fs;
    let current = manifest::read_current(fs.as_ref(), path).ok()?;
    let size = fs.metadata(&current).ok()?.size;
    Some((current, size))
}

fn look_until_still<T, S: PartialEq>(
    state: impl Fn() -> S,
    is_faulty: impl Fn(&T) -> bool,
    mut look: impl FnMut() -> Result<T, Failure>,
) -> Result<Seen<T>, Failure> {
    let mut attempts_left = ATTEMPTS;
    loop {
        let before = state();
        let found = look()?;
        let is_doubtful = is_faulty(&found) && state() != before;
        attempts_left -= 1;
        if !is_doubtful || attempts_left == 0 {
            return Ok(Seen { found, is_doubtful });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// What is found after so many looks at a database that changes during the first `changes` of them, and how many there were.
    fn after(changes: u32, faults: &[bool]) -> (bool, bool, usize) {
        let (looks, version) = (Cell::new(0), Cell::new(0));
        let seen = look_until_still(
            || version.get(),
            |is_faulty| *is_faulty,
            || {
                let found = faults[looks.get()];
                looks.set(looks.get() + 1);
                version.set((looks.get() as u32).min(changes));
                Ok(found)
            },
        );
        let seen = seen.unwrap();
        (seen.found, seen.is_doubtful, looks.get())
    }

    #[test]
    fn faults_count_only_where_the_database_holds_still() {
        assert_eq!(after(0, &[false]), (false, false, 1));
        assert_eq!(after(9, &[false]), (false, false, 1), "what is sound is sound");
        assert_eq!(after(0, &[true]), (true, false, 1));
        assert_eq!(after(9, &[true, false]), (false, false, 2));
        assert_eq!(after(1, &[true, true]), (true, false, 2));
        assert_eq!(after(9, &[true, true, true]), (true, true, 3));
    }
}
