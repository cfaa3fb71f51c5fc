//! Tells the program which commit it was built from and with which engines, and links two engines
//! that both bring Snappy.

use std::path::Path;
use std::process::Command;

/// What decides how the program works, but for what the lock file names. A commit's build has no
/// changes in them.
const SOURCES: [&str; 9] = [
    "src",
    "build.rs",
    "Cargo.toml",
    "Cargo.lock",
    "leveldb.cmake",
    ".cargo",
    "../flagstone/src",
    "../flagstone/Cargo.toml",
    "../../Cargo.toml",
];

fn main() {
    if is_built_in("rocksdb") && is_built_in("leveldb") {
        // All calls go to the first of the two copies, whose interface is that of the other.
        println!("cargo:rustc-link-arg-bins=-Wl,--allow-multiple-definition");
    }
    // As GNU's linker has it: a C++ library's initializers lie together. They run in every process,
    // and where they lie among the library's functions, most of its code is in the memory of an
    // engine that makes no use of it.
    println!("cargo:rustc-link-arg-bins=-Wl,-z,keep-text-section-prefix");
    println!("cargo:rustc-env=PEERS_ENGINES={}", engines());
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let changed = git(&[&["status", "--porcelain", "--"], &SOURCES[..]].concat());
    let mark = match changed {
        Some(files) if !files.is_empty() => " with local changes",
        _ => "",
    };
    println!("cargo:rustc-env=PEERS_COMMIT={}{mark}", commit.as_deref().unwrap_or("unknown"));
    SOURCES.iter().for_each(|path| println!("cargo:rerun-if-changed={path}"));
    // Where git keeps which commit this is, each where it exists: what is missing would be new each
    // time.
    let branch = git(&["symbolic-ref", "-q", "HEAD"]);
    for name in ["HEAD", "logs/HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        if let Some(path) =
            git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists())
        {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}

/// The engines that the program is built with, in words.
fn engines() -> String {
    let others = ["rocksdb", "leveldb", "fjall", "redb", "lmdb"];
    let built: Vec<&str> = others.into_iter().filter(|engine| is_built_in(engine)).collect();
    match built.len() {
        0 => "flagstone alone".to_string(),
        count if count == others.len() => "all engines".to_string(),
        _ => format!("flagstone, {}", built.join(", ")),
    }
}

fn is_built_in(engine: &str) -> bool {
    std::env::var_os(format!("CARGO_FEATURE_{}", engine.to_uppercase())).is_some()
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}
