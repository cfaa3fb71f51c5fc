//! Tells the program which commit of the engine it was built from, and links two engines that both bring Snappy.

use std::process::Command;

fn main() {
    let is_built_in = |engine: &str| std::env::var_os(format!("CARGO_FEATURE_{engine}")).is_some();
    if is_built_in("ROCKSDB") && is_built_in("LEVELDB") {
        // All calls go to the first of the two copies, whose interface is that of the other.
        println!("cargo:rustc-link-arg-bins=-Wl,--allow-multiple-definition");
    }
    // As GNU's linker has it: a C++ library's initializers lie together. They run in every process, and where they lie among the
    // library's functions, most of its code is in the memory of an engine that makes no use of it.
    println!("cargo:rustc-link-arg-bins=-Wl,-z,keep-text-section-prefix");
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let changed = git(&["status", "--porcelain", "--", "../flagstone", "."]);
    let mark = match changed {
        Some(files) if !files.is_empty() => " with local changes",
        _ => "",
    };
    println!("cargo:rustc-env=PEERS_COMMIT={}{mark}", commit.as_deref().unwrap_or("unknown"));
    println!("cargo:rerun-if-changed=../flagstone/src");
    println!("cargo:rerun-if-changed=src");
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}
