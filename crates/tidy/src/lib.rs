//! The rules of this repository, as functions over its source files; `tests/tidy.rs` applies them
//! to all of them.
//!
//! 1. Files of at most 600 lines, unless the file's head says why (a line with `Longer than
//!    usual:`).
//! 2. Functions of at most 70 lines.
//! 3. ASCII only in Rust sources; no tabs; lines of at most 100 characters, and of at most 130 in
//!    strings, grammars and tables (`width`).
//! 4. Modules of the engine import only what stands below them, and so do rooms within `db`.
//! 5. `unsafe` only in the files named here.
//! 6. No marks of unfinished work.
//! 7. The engine takes its locks from `base::sync`, so that a test can schedule them; `env` and
//!    tests need not.
//! 8. The engine syncs directories by way of `env::Names` alone; tests need not.
//! 9. Structures of at most 15 fields; settings, flags, plain reports and what mirrors the format
//!    of a file may have more.
//! 10. The methods of a type stand in at most five files of a module. Types that have more are
//!     listed; the list only shrinks.
//! 11. Tests stand in files of their own (`tests_apart`).
//! 12. A `bool` is asked by `if`, not matched. (Clippy denies it where no arm has a guard.)

mod layers;
mod tests_apart;
mod width;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The longest file that needs no reason.
pub const MAX_FILE_LINES: usize = 600;
/// The longest function.
pub const MAX_FUNCTION_LINES: usize = 70;

/// The most fields of a structure.
pub const MAX_FIELDS: usize = 15;
/// The most files with methods of one type.
pub const MAX_METHOD_FILES: usize = 5;

/// Structures that may have more fields.
const WIDE: &[&str] = &[
    // Arguments of a command line.
    "Flags",
    // Options, and rows of them for one module.
    "Options",
    "ReadOptions",
    "BackupEngineOptions",
    "TableBuilderSettings",
    "LeveledSettings",
    // They mirror the format of a file.
    "TableProperties",
    "FileMetadata",
    "VersionEdit",
    // A report of figures.
    "MemoryUsage",
];

/// Modules' types whose methods stand in more files, and in how many. The list only shrinks.
const SPREAD: &[(&str, &str, usize)] = &[
    ("crates/flagstone/src/db", "Db", 25),
    // The setters of another crate's type, some 180 of them.
    ("crates/rocksdb/src/options", "Options", 12),
];

/// Where `unsafe` may stand; each file proves every block.
const UNSAFE_FILES: &[&str] = &[
    "crates/bench-peers/src/decide/rocksdb.rs",
    "crates/bench-peers/src/transactions/rocksdb.rs",
    "crates/bench-peers/src/engine/leveldb.rs",
    "crates/bench-peers/src/engine/lmdb.rs",
    "crates/capi/src/abi.rs",
    "crates/flagstone/src/base/allocator.rs",
    "crates/flagstone/src/base/chunk.rs",
    "crates/flagstone/src/base/chunk/tests.rs",
    "crates/flagstone/src/base/compression/lz4.rs",
    "crates/flagstone/src/base/prefetch.rs",
    "crates/flagstone/src/base/shared_piece.rs",
    "crates/flagstone/src/base/shared_piece/tests.rs",
    "crates/flagstone/src/base/slab.rs",
    "crates/flagstone/src/cache/slots.rs",
    "crates/flagstone/src/env/description_lock.rs",
    "crates/flagstone/src/env/forks.rs",
    "crates/flagstone/src/env/mapping.rs",
    "crates/flagstone/src/env/niceness.rs",
    "crates/flagstone/src/env/range_sync.rs",
    "crates/flagstone/src/env/ring.rs",
    "crates/flagstone/src/memtable/arena.rs",
    "crates/flagstone/src/memtable/arena/tests.rs",
    "crates/flagstone/src/memtable/record.rs",
    "crates/flagstone/src/memtable/shared_arena.rs",
    "crates/flagstone/src/memtable/shared_arena/tests.rs",
    "crates/flagstone/src/memtable/skiplist/",
    "crates/flagstone/src/memtable/vector/log.rs",
    "crates/flagstone/src/memtable/vector/view.rs",
    "crates/flagstone/src/memtable/btree/",
    "crates/flagstone/tests/fork.rs",
    "fuzz/src/lib.rs",
    "python/src/value.rs",
];

/// Where a lock may come from elsewhere: the one place for all others, and what is not scheduled.
const OWN_LOCKS: &[&str] = &["base/sync.rs", "base/slab.rs", "env/", "tests", "testing.rs"];

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offence {
    /// The file, relative to the repository.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub rule: String,
}

/// All offences of the repository in `root`.
///
/// # Panics
/// If its sources are not there, or cannot be read.
pub fn check_repository(root: &Path) -> Vec<Offence> {
    let sources = rust_sources(root);
    assert!(sources.len() > 20, "the sources were not found");
    let read = |source: PathBuf| {
        let text = std::fs::read_to_string(&source).expect("a source can be read");
        let relative = source.strip_prefix(root).expect("below the root");
        (relative.to_string_lossy().replace('\\', "/"), text)
    };
    let sources: Vec<_> = sources.into_iter().map(read).collect();
    let mut offences = check_spread(&sources);
    offences.extend(sources.iter().flat_map(|(file, text)| check_source(file, text)));
    offences
}

/// All offences of one Rust source; `file` is its path relative to the repository, with `/`.
pub fn check_source(file: &str, text: &str) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut offend =
        |line: usize, rule: String| offences.push(Offence { file: file.to_string(), line, rule });
    let lines: Vec<&str> = text.lines().collect();
    let excused = lines.iter().take(40).any(|line| line.contains("Longer than usual:"));
    if lines.len() > MAX_FILE_LINES && !excused {
        offend(
            1,
            format!("{} lines; split the file by meaning, or say why at its head", lines.len()),
        );
    }
    for (index, line) in lines.iter().enumerate() {
        if !line.is_ascii() {
            offend(index + 1, "a character outside ASCII".to_string());
        }
        if line.contains('\t') {
            offend(index + 1, "a tab".to_string());
        }
        if let Some(mark) = unfinished_mark(line) {
            offend(index + 1, format!("a mark of unfinished work: {mark}"));
        }
        if uses_unsafe(line) && !UNSAFE_FILES.iter().any(|allowed| file.starts_with(allowed)) {
            offend(index + 1, "unsafe outside the files that may use it".to_string());
        }
        if let Some(rule) = layers::upward_import(file, line) {
            offend(index + 1, rule);
        }
        if takes_foreign_lock(file, line) {
            offend(index + 1, "a lock that base::sync does not know".to_string());
        }
        if matches_a_bool(line) {
            offend(index + 1, "a match on a bool; write if".to_string());
        }
        if syncs_a_directory(file, line) {
            offend(index + 1, "a directory synced otherwise than by env::Names".to_string());
        }
    }
    for (line, name, fields) in wide_structures(&lines).into_iter().filter(|_| is_production(file))
    {
        offend(line, format!("{name} has {fields} fields; {MAX_FIELDS} are the most"));
    }
    for (line, most) in width::long_lines(&lines) {
        offend(line, format!("more than {most} characters"));
    }
    for line in tests_apart::misplaced(&lines).into_iter().filter(|_| !is_test_file(file)) {
        offend(line, "tests inside production code; they have files of their own".to_string());
    }
    for (line, length) in long_functions(&lines) {
        offend(line, format!("a function of {length} lines; {MAX_FUNCTION_LINES} are the most"));
    }
    offences
}

fn unfinished_mark(line: &str) -> Option<&'static str> {
    // Spelled in pieces, so that this file does not offend itself.
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("to", "do!("),
        concat!("unimpl", "emented!("),
    ];
    marks.into_iter().find(|mark| line.contains(mark))
}

fn matches_a_bool(line: &str) -> bool {
    let code = line.trim_start();
    let rest = code.strip_prefix("true ").or_else(|| code.strip_prefix("false "));
    rest.is_some_and(|rest| rest.starts_with("=>") || rest.starts_with("if "))
}

fn uses_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    [concat!("unsafe", " {"), concat!("unsafe", " fn"), concat!("unsafe", " impl")]
        .iter()
        .any(|form| code.contains(form))
}

fn takes_foreign_lock(file: &str, line: &str) -> bool {
    let Some(inside) = file.strip_prefix("crates/flagstone/src/") else { return false };
    let code = line.split("//").next().unwrap_or_default();
    let foreign = ["parking_lot::", "arc_swap::", "sync::Mutex", "sync::RwLock", "sync::Condvar"];
    let is_ours = code.contains("base::sync::") || code.contains("super::sync::");
    !is_ours
        && !OWN_LOCKS.iter().any(|place| inside.contains(place))
        && foreign.iter().any(|name| code.contains(name))
}

fn syncs_a_directory(file: &str, line: &str) -> bool {
    let Some(inside) = file.strip_prefix("crates/flagstone/src/") else { return false };
    let code = line.split("//").next().unwrap_or_default();
    let may = inside.starts_with("env/") || inside.contains("tests");
    !may && code.contains(".sync_directory(")
}

/// Structures with too many fields, as (line, name, fields); relies on formatted sources.
fn wide_structures(lines: &[&str]) -> Vec<(usize, String, usize)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String, usize)> = None;
    for (index, line) in lines.iter().enumerate() {
        if let Some(name) = structure(line) {
            open = Some((index + 1, name.to_string(), 0));
        } else if *line == "}" {
            let ended = open
                .take()
                .filter(|(_, name, fields)| *fields > MAX_FIELDS && !WIDE.contains(&&**name));
            found.extend(ended);
        } else if let Some((.., fields)) = &mut open {
            *fields += usize::from(is_field(line));
        }
    }
    found
}

/// The name of a structure that begins at this line and has fields with names.
fn structure(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("struct ")?;
    let is_item =
        !line.starts_with(char::is_whitespace) && !line.starts_with("//") && line.ends_with('{');
    is_item.then(|| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()).flatten()
}

fn is_field(line: &str) -> bool {
    let Some(code) = line.strip_prefix("    ") else { return false };
    let code = code
        .strip_prefix("pub")
        .map_or(code, |code| code.split_once(' ').map_or(code, |(_, code)| code));
    let name = code.split(':').next().unwrap_or_default();
    code.contains(':')
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Types whose methods stand in too many files; `sources` are paths relative to the repository, and
/// their texts.
pub fn check_spread(sources: &[(String, String)]) -> Vec<Offence> {
    let mut files: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for (file, text) in sources.iter().filter(|(file, _)| is_production(file)) {
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for name in code.lines().filter_map(inherent) {
            files.entry((module_of(file), name)).or_default().insert(file);
        }
    }
    let mut offences = Vec::new();
    for ((module, name), files) in files {
        let listed = SPREAD.iter().find(|(place, listed, _)| (*place, *listed) == (module, name));
        let most = listed.map_or(MAX_METHOD_FILES, |(.., most)| *most);
        let mut offend = |rule: String| {
            let file = files.first().map_or(String::new(), ToString::to_string);
            offences.push(Offence { file, line: 1, rule });
        };
        if files.len() > most {
            offend(format!(
                "the methods of {name} stand in {} files; {most} are the most",
                files.len()
            ));
        } else if listed.is_some() && files.len() < most {
            offend(format!(
                "the methods of {name} stand in {} files by now; say so in SPREAD",
                files.len()
            ));
        }
    }
    offences
}

/// The crate's module that a file belongs to, as a path.
fn module_of(file: &str) -> &str {
    let end = file.match_indices('/').nth(3).map_or(file.len(), |(at, _)| at);
    &file[..end]
}

fn is_production(file: &str) -> bool {
    file.starts_with("crates/") && !file.starts_with("crates/bench-peers/") && !is_test_file(file)
}

fn is_test_file(file: &str) -> bool {
    file.contains("/tests/") || file.ends_with("/tests.rs") || file.ends_with("_tests.rs")
}

/// The type whose own methods begin at this line.
fn inherent(line: &str) -> Option<&str> {
    let rest =
        line.strip_prefix("impl").filter(|_| line.ends_with('{') && !line.contains(" for "))?;
    let rest = match rest.strip_prefix('<') {
        // The parameters end with the first '>' that no arrow has.
        Some(parameters) => parameters.split_once("> ").map(|(_, rest)| rest)?,
        None => rest.strip_prefix(' ')?,
    };
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// Functions that are too long, as (line, length); relies on formatted sources.
fn long_functions(lines: &[&str]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    for (index, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let code = line.trim_start();
        let starts =
            ["fn ", "pub fn ", "pub(crate) fn ", "pub(super) fn ", "async fn ", "pub async fn "];
        if open.is_none()
            && starts.iter().any(|start| code.starts_with(start))
            && !code.ends_with(';')
        {
            open = Some((index, indent));
        }
        if let Some((start, at)) = open
            && indent == at
            && (code == "}"
                || index == start && code.ends_with('}')
                || code.starts_with(')') && code.ends_with(';'))
        {
            if index - start + 1 > MAX_FUNCTION_LINES {
                found.push((start + 1, index - start + 1));
            }
            open = None;
        }
    }
    found
}

/// All Rust sources below `root` that belong to the repository.
pub fn rust_sources(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root.join("crates"), root.join("fuzz"), root.join("python")];
    while let Some(directory) = pending.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && name != "target" {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests;
