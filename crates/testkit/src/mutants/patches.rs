//! Patches that break the engine, and what their heads say.
//!
//! ```text
//! # Breaks: The records that begin a MANIFEST are written in reverse.
//! # Found by experiment crashes-creation: an edit of the unknown column family
//! diff --git a/crates/flagstone/src/manifest/commit.rs b/crates/flagstone/src/manifest/commit.rs
//! ```
//!
//! After the finder's name stand the words of [`Caught::words`]; instead of words `wrong contents`,
//! `a history` and `a poisoned database` stand for what many findings say.

use std::path::{Path, PathBuf};

use flagstone::env::{Env, IoMode};

use super::{By, Caught, POISONED, REPLAYED, WRONG};

/// One file of `crates/testkit/mutants`.
#[derive(Debug, Clone)]
pub struct Patch {
    /// The mutant's name, as that of the file.
    pub name: String,
    /// Where the file is.
    pub path: PathBuf,
    text: String,
}

/// All of them, by their names.
///
/// # Panics
/// If they cannot be read.
pub fn patches() -> Vec<Patch> {
    let fs = Env::os().fs;
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("mutants");
    let mut names = fs.list(&directory).expect("a folder of patches");
    names.sort();
    let read = |name: String| {
        let path = directory.join(&name);
        let file = fs.open_random_access(&path, IoMode::Buffered).expect("a patch");
        let mut bytes = Vec::new();
        file.read_onto(0, file.size().expect("its size") as usize, &mut bytes).expect("its bytes");
        let name = name.strip_suffix(".patch").unwrap_or(&name).to_string();
        Patch { name, path, text: String::from_utf8(bytes).expect("plain text") }
    };
    names.into_iter().map(read).collect()
}

impl Patch {
    fn head(&self) -> impl Iterator<Item = &str> {
        self.text.lines().map_while(|line| line.strip_prefix("# "))
    }

    /// What it breaks, in a sentence.
    ///
    /// # Panics
    /// If the first line does not say so.
    pub fn breaks(&self) -> &str {
        let said = self.head().next().and_then(|line| line.strip_prefix("Breaks: "));
        said.unwrap_or_else(|| panic!("{} does not begin with '# Breaks: '", self.path.display()))
    }

    /// What finds it: at least one.
    ///
    /// # Panics
    /// If the lines below the first do not say so.
    pub fn caught(&self) -> Vec<Caught<'_>> {
        let found: Vec<_> = self.head().skip(1).map(|line| self.finder(line)).collect();
        assert!(!found.is_empty(), "{} does not say what finds it", self.path.display());
        found
    }

    fn finder<'a>(&'a self, line: &'a str) -> Caught<'a> {
        let by = |prefix| line.strip_prefix(prefix).and_then(|rest: &str| rest.split_once(": "));
        let (by, words) = if let Some((name, words)) = by("Found by experiment ") {
            (By::Experiment(name), words)
        } else if let Some((name, words)) = by("Found by story ") {
            (By::Story(name), words)
        } else {
            panic!("{}: no finder is named by '{line}'", self.path.display())
        };
        let words = match words {
            "wrong contents" => WRONG,
            "a history" => REPLAYED,
            "a poisoned database" => POISONED,
            words => words,
        };
        Caught { mutant: &self.name, by, words }
    }
}
