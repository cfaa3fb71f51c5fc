//! C programs over the library that this build made.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where Cargo puts the library that tests of this package need.
fn library_directory() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let dependencies = program.parent().unwrap();
    let directories = [dependencies, dependencies.parent().unwrap()];
    let found = directories.into_iter().find(|directory| directory.join("librocksdb.so").exists());
    found.expect("cargo builds the library for its tests").to_path_buf()
}

/// Compiles tests/c/NAME.c, in a directory in which the library has the name that it is linked by.
fn compile(name: &str, to: &Path) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = library_directory().join("librocksdb.so");
    for link in ["librocksdb.so", "librocksdb.so.11.9"] {
        if !to.join(link).exists() {
            std::os::unix::fs::symlink(&library, to.join(link)).unwrap();
        }
    }
    let program = to.join(name);
    let status = Command::new("cc")
        .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", "-I"])
        .arg(package.join("include"))
        .arg(package.join("tests/c").join(name).with_extension("c"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(to)
        .arg("-lrocksdb")
        .status()
        .unwrap();
    assert!(status.success(), "{name}.c does not compile");
    program
}

fn run(program: &Path, argument: impl AsRef<std::ffi::OsStr>) -> Output {
    let libraries = program.parent().unwrap();
    Command::new(program).arg(argument).env("LD_LIBRARY_PATH", libraries).output().unwrap()
}

#[test]
fn a_program_goes_through_the_api() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile("story", directory.path());
    let data = directory.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let output = run(&program, &data);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert_eq!(output.stdout, b"done\n", "{said}");
}

#[cfg(debug_assertions)]
#[test]
fn a_debug_build_finds_objects_that_are_used_wrongly() {
    let directory = tempfile::tempdir().unwrap();
    let program = compile("misuse", directory.path());
    let cases = [
        ("destroyed", "rocksdb_options_t was destroyed before"),
        ("twice", "rocksdb_options_t was destroyed before"),
        ("other", "a pointer is to no rocksdb_readoptions_t"),
        ("null", "NULL where rocksdb_options_t must be"),
    ];
    for (case, wanted) in cases {
        let output = run(&program, case);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(wanted), "{case}: {said}");
    }
}
