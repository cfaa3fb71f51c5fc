//! What the helps and README.md show is run as it stands there, but for names of directories and
//! sizes of benchmarks.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use std::path::Path;
use std::process::Command;

use common::printed;
use flagstone::TransactionDb;

/// Runs a line in `directory` as a shell does.
fn shell(directory: &Path, line: &str) -> std::process::Output {
    let program = Path::new(env!("CARGO_BIN_EXE_flagstone")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    Command::new("sh").args(["-c", line]).current_dir(directory).env("PATH", path).output().unwrap()
}

fn done(directory: &Path, line: &str) {
    let output = shell(directory, line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The database `photos` with something in each kind of file, and what else the examples name.
fn prepare(directory: &Path) {
    for (name, size) in
        [("Pictures/cats/tom.jpg", 10_000), ("Pictures/cats/kit.jpg", 100), ("tom.jpg", 9000)]
    {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, vec![7; size]).unwrap();
    }
    done(directory, "flagstone import --db photos Pictures");
    done(directory, "flagstone put --db photos hello world");
    done(directory, "flagstone create-family --db photos old-thumbnails");
    done(directory, "flagstone put-entity --db people ada :countess born:1815");
    done(directory, "flagstone export-family --db photos --cf old-thumbnails exported");
    std::fs::write(directory.join("commands.txt"), "put a 1\nget hello\nscan --limit 2\n").unwrap();
    done(directory, "flagstone dump --db photos > photos.dump");
    done(directory, "flagstone write-extern-sst --db photos photos.sst < photos.dump");
    done(directory, "flagstone backup create --db photos --dir backups");
    let orders = TransactionDb::open(directory.join("orders")).unwrap();
    for name in ["order-4711", "order-4712"] {
        let mut order = orders.begin();
        order.set_name(name).unwrap();
        order.put(&orders, name, "1 camera").unwrap();
        order.prepare().unwrap();
    }
    drop(orders);
    let bench = "flagstone bench --db=made --num=1000 --cache_size=64K --benchmarks=fillseq,flush,readrandom";
    done(
        directory,
        &format!(
            "{bench},stats --block_cache_trace_file=blocks.oracleGeneral \
             --trace_file=operations.trace --io_trace_file=io.trace > server.log"
        ),
    );
    let trace = std::fs::read(directory.join("blocks.oracleGeneral")).unwrap();
    std::fs::write(
        directory.join("blocks.oracleGeneral.zst"),
        zstd::encode_all(&trace[..], 1).unwrap(),
    )
    .unwrap();
}

/// A file of the database whose name ends so.
fn file(directory: &Path, extension: &str) -> String {
    let mut names: Vec<_> = std::fs::read_dir(directory.join("photos"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(extension))
        .collect();
    names.sort();
    names.remove(0)
}

/// The example with the names and sizes that it has here.
fn here(directory: &Path, example: &str) -> String {
    let mut line = example.replace("/data/", "").replace("~/", "").replace("/tmp/", "");
    for (shown, extension) in
        [("000012.sst", ".sst"), ("000011.blob", ".blob"), ("000012.blob", ".blob")]
    {
        line = line.replace(shown, &file(directory, extension));
    }
    for shown in ["000009.log", "000011.log"] {
        line = line.replace(shown, &file(directory, ".log"));
    }
    line = line.replace("--num=1000000", "--num=1000");
    line = line
        .replace("drop-family --db photos thumbnails", "drop-family --db photos old-thumbnails");
    if line.contains("--synthetic") {
        line.push_str(" --requests 1000 --sizes 1M");
    }
    line
}

/// Runs each in a directory of its own, since many of them change what others read.
fn run_all(examples: &[String]) {
    for example in examples {
        let scratch = tempfile::tempdir().unwrap();
        prepare(scratch.path());
        let line = here(scratch.path(), example);
        let output = shell(scratch.path(), &line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {:?} {said}", output.status);
        assert!(!said.contains("warning"), "{line}: {said}");
    }
}

#[test]
fn every_example_of_every_help_works() {
    let help = printed("--help");
    let commands = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let names = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names: Vec<_> = names.filter(|name| !name.is_empty() && *name != "help").collect();
    assert!(names.len() > 25, "{help}");
    let mut examples = Vec::new();
    for help in names.iter().map(|name| printed(&format!("{name} --help"))).chain([help.clone()]) {
        let shown = help.lines().filter_map(|line| line.strip_prefix("  flagstone "));
        let before = examples.len();
        examples.extend(shown.map(|rest| format!("flagstone {rest}")));
        assert!(examples.len() > before, "{help}");
    }
    run_all(&examples);
}

#[test]
fn every_example_of_the_readme_works() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let rows =
        readme.lines().filter_map(|line| line.strip_prefix("| `flagstone ")?.split('`').next());
    let examples: Vec<_> = rows.map(|rest| format!("flagstone {rest}")).collect();
    assert!(examples.len() > 25, "{examples:?}");
    run_all(&examples);
}
