//! The header, as tests read it.

#![allow(clippy::unwrap_used, dead_code, reason = "tests, each of which uses a part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// How a parameter or a result is passed: `*` is a pointer, `i32` and the like a number.
pub type Passed = Vec<&'static str>;

pub fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The sources of the functions, by name.
pub fn sources() -> BTreeMap<String, String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        (name, std::fs::read_to_string(&path).unwrap())
    };
    entries.map(text).filter(|(name, _)| name != "api.rs" && name != "older.rs").collect()
}

/// The parts of a list between commas outside parentheses.
pub fn parts(list: &str) -> Vec<&str> {
    let mut depth = 0;
    let is_end = |c: char| {
        depth += i32::from("([<".contains(c)) - i32::from(")]>".contains(c));
        c == ',' && depth == 0
    };
    list.split(is_end).map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// How C passes a declared type, given with or without the name of a parameter.
fn in_c(declared: &str) -> Option<&'static str> {
    if declared.contains(['*', '[', '(']) {
        return Some("*");
    }
    let words: Vec<&str> = declared.split_whitespace().filter(|word| *word != "const").collect();
    let known = match words[..] {
        ["unsigned", "char", ..] | ["uint8_t", ..] => "u8",
        ["unsigned", "int", ..] | ["uint32_t", ..] => "u32",
        ["char", ..] => "c_char",
        ["bool", ..] => "bool",
        ["int" | "int32_t", ..] => "i32",
        ["int64_t", ..] => "i64",
        ["uint64_t", ..] => "u64",
        ["size_t", ..] => "usize",
        ["double", ..] => "f64",
        ["rocksdb_slice_t", ..] => "slice",
        ["void"] => return None,
        [callback, ..] if callback.ends_with("_cb") => "*",
        _ => panic!("no known type: {declared}"),
    };
    Some(known)
}

/// The functions that the header declares: results and parameters.
pub fn declared() -> BTreeMap<String, Passed> {
    let header = read("include/rocksdb/c.h");
    let mut functions = BTreeMap::new();
    for declaration in header.split("\nROCKSDB_API ").skip(1) {
        let declaration = declaration.split(';').next().unwrap().replace('\n', " ");
        let open = declaration.find('(').unwrap();
        let (result_and_name, list) = declaration.split_at(open);
        let list = list.trim().strip_prefix('(').unwrap().strip_suffix(')').unwrap();
        let at = result_and_name.rfind("rocksdb_").unwrap();
        let (result, name) = result_and_name.split_at(at);
        let mut passed = vec![in_c(result.trim()).unwrap_or("void")];
        passed.extend(parts(list).into_iter().filter_map(in_c));
        assert!(functions.insert(name.trim().to_string(), passed).is_none(), "{name} twice");
    }
    functions
}

/// The directory of the library. Cargo does not make libraries for C before it runs tests.
pub fn library_directory() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let program = std::env::current_exe().unwrap();
        let directory = program.parent().unwrap().parent().unwrap();
        let profile = directory.file_name().unwrap().to_str().unwrap();
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--locked", "-p", env!("CARGO_PKG_NAME"), "--profile"])
            .arg(if profile == "debug" { "dev" } else { profile })
            .arg("--target-dir")
            .arg(directory.parent().unwrap())
            .status()
            .unwrap();
        assert!(status.success(), "the library is not built");
        directory.to_path_buf()
    };
    MADE.get_or_init(make).clone()
}

/// Compiles tests/c/NAME.c, or NAME.cc.
pub fn compile(name: &str, to: &Path) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let source = sources.join(name).with_extension("cc");
    let is_cpp = source.exists();
    compile_source(&if is_cpp { source } else { source.with_extension("c") }, name, to)
}

/// Compiles a source, in a directory in which the library has the name that it is linked by.
pub fn compile_source(source: &Path, name: &str, to: &Path) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = library_directory().join("librocksdb.so");
    for link in ["librocksdb.so", "librocksdb.so.11.9"] {
        if !to.join(link).exists() {
            std::os::unix::fs::symlink(&library, to.join(link)).unwrap();
        }
    }
    let program = to.join(name);
    let is_cpp = source.extension().is_some_and(|extension| extension == "cc");
    let (compiler, standard) = if is_cpp { ("c++", "-std=c++17") } else { ("cc", "-std=c11") };
    let status = Command::new(compiler)
        .args([standard, "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", "-I"])
        .arg(package.join("include"))
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(to)
        .arg("-lrocksdb")
        .status()
        .unwrap();
    assert!(status.success(), "{} does not compile", source.display());
    program
}

/// Runs a program with the library beside it.
pub fn run(program: &Path, argument: impl AsRef<std::ffi::OsStr>) -> std::process::Output {
    let libraries = program.parent().unwrap();
    Command::new(program).arg(argument).env("LD_LIBRARY_PATH", libraries).output().unwrap()
}
