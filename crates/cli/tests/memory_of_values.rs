//! What commands take of memory where a value is large: pieces of it, and not the value.
//!
//! Each command runs with a limit of its data (`ulimit -d`): private memory, whether used or not,
//! and the stacks of threads among it. One that holds a value as a whole ends there. The table has
//! all commands that the program has.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::printed;
use flagstone::batch::MAX_ENTRY_SIZE;
use flagstone::db::Db;
use flagstone::options::Options;

const MIB: u64 = 1 << 20;

/// The most that a command may take.
const DATA_KIB: u64 = 128 << 10;

/// What is run of each command. In a line, {dir} is the scratch directory; `<FILE` and `>FILE` in
/// it are standard input and output.
const TABLE: [(&str, &[&str]); 56] = [
    ("import", &["import --db {dir}/db {dir}/source --set memory_budget=64m"]),
    ("put", &["put --db {dir}/put --file {dir}/source/v v --set memory_budget=64m"]),
    ("get", &["get --db {dir}/db v >got", "get --db {dir}/put v >got"]),
    ("multi-get", &["multi-get --db {dir}/db v"]),
    ("query", &["query --db {dir}/db <lines"]),
    ("scan", &["scan --db {dir}/db --hex"]),
    ("count", &["count --db {dir}/db"]),
    ("approximate-size", &["approximate-size --db {dir}/db --to z"]),
    ("export", &["export --db {dir}/db {dir}/exported"]),
    ("dump", &["dump --db {dir}/db >dumped"]),
    ("load", &["load --db {dir}/loaded <dumped", "get --db {dir}/loaded v >got"]),
    ("verify", &["verify --db {dir}/db"]),
    ("check", &["check --db {dir}/db"]),
    ("doctor", &["doctor --db {dir}/db"]),
    ("salvage", &["salvage --db {dir}/db --to {dir}/salvaged", "get --db {dir}/salvaged v >got"]),
    ("stats", &["stats --db {dir}/db"]),
    ("top", &["top --db {dir}/db --once"]),
    ("space", &["space --db {dir}/db"]),
    ("flush", &["flush --db {dir}/db"]),
    (
        "checkpoint",
        &["checkpoint --db {dir}/db {dir}/checkpoint", "checkpoint --db {dir}/db {elsewhere}/copy"],
    ),
    ("transactions", &["transactions --db {dir}/db"]),
    (
        "backup",
        &[
            "backup create --db {dir}/db --dir {dir}/backups",
            "backup restore --dir {dir}/backups --db {dir}/restored",
            "get --db {dir}/restored v >got",
        ],
    ),
    ("list-families", &["list-families --db {dir}/db"]),
    ("create-family", &["create-family --db {dir}/db other"]),
    ("drop-family", &["drop-family --db {dir}/db other"]),
    ("export-family", &["export-family --db {dir}/db {dir}/family"]),
    ("import-family", &["import-family --db {dir}/db --cf another {dir}/family"]),
    ("list-files", &["list-files --db {dir}/db"]),
    ("list-range-deletions", &["list-range-deletions --db {dir}/db"]),
    ("dump-live-files", &["dump-live-files --db {dir}/db"]),
    ("manifest", &["manifest --db {dir}/db"]),
    ("sst", &["sst {dir}/db/{.sst}"]),
    ("wal", &["wal {dir}/db/{.log}"]),
    ("blob", &["blob {dir}/db/{.blob} --keys"]),
    // It moves the value to another blob file, and takes garbage out of the way.
    (
        "compact",
        &["compact --db {dir}/collected --force-bottommost", "get --db {dir}/collected v >got"],
    ),
    ("delete", &["delete --db {dir}/put v"]),
    ("single-delete", &["single-delete --db {dir}/put w"]),
    ("delete-range", &["delete-range --db {dir}/put a z"]),
    // An entity is in memory as a whole.
    ("get-entity", &[]),
    ("multi-get-entity", &[]),
    ("put-entity", &[]),
    // Its values are arguments.
    ("batch-put", &[]),
    ("clip", &["clip --db {dir}/put x z"]),
    ("reduce-levels", &["reduce-levels --db {dir}/put --new-levels 3"]),
    (
        "change-compaction-style",
        &["change-compaction-style --db {dir}/put --new-compaction-style universal"],
    ),
    // They read the MANIFEST, and for checksums tables.
    ("update-manifest", &[]),
    ("unsafe-remove-table", &[]),
    // A value lies in a block of the table, which is made in memory as a whole.
    ("write-extern-sst", &[]),
    ("ingest", &[]),
    // An operation is in memory as a whole.
    ("replay", &[]),
    // They make values of their own, of the size that is asked for.
    ("bench", &[]),
    ("cache-sim", &[]),
    // A trace has no values.
    ("io-trace", &[]),
    ("completions", &[]),
    ("man", &[]),
    ("help", &[]),
];

/// Commands that read a value held it as a whole, and some several times.
#[test]
fn a_large_value_passes_through_every_command_in_pieces() {
    pass_all(256 * MIB);
}

/// The same with the largest value that there is: `cargo test --release -p flagstone-cli --test
/// memory_of_values -- --ignored`. It takes some 40 GiB of disk.
#[test]
#[ignore = "takes minutes and 40 GiB of disk"]
fn the_largest_value_passes_through_every_command_in_pieces() {
    pass_all(MAX_ENTRY_SIZE as u64 - 1);
}

#[test]
fn the_table_has_every_command() {
    let help = printed("--help");
    let commands = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let names = commands
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next());
    let mut names: Vec<&str> = names.collect();
    let mut known = TABLE.map(|(name, _)| name).to_vec();
    names.sort_unstable();
    known.sort_unstable();
    assert_eq!(names, known, "a new command says here what a large value costs it");
}

fn pass_all(size: u64) {
    let scratch = tempfile::tempdir().unwrap();
    let elsewhere = directory_on_another_device(scratch.path(), size);
    let world = World {
        dir: scratch.path(),
        elsewhere: elsewhere.as_ref().map(|elsewhere| elsewhere.path()),
    };
    fs::create_dir(world.dir.join("source")).unwrap();
    write_value(&world.dir.join("source/v"), size);
    fs::write(world.dir.join("lines"), "get v\n").unwrap();
    make_collectable(
        &world.dir.join("collected"),
        &world.dir.join("source/v"),
        size.min(256 * MIB),
    );
    for (name, lines) in TABLE {
        for line in lines {
            world.run(name, line);
        }
    }
    world.check_value(&world.dir.join("exported/v"));
    let moved = fs::read_dir(world.dir.join("collected")).unwrap();
    let blob_files = moved.filter(|entry| {
        entry.as_ref().unwrap().path().extension().is_some_and(|kind| kind == "blob")
    });
    let sizes: Vec<u64> =
        blob_files.map(|entry| entry.unwrap().metadata().unwrap().len()).collect();
    assert!(
        sizes.len() == 1 && sizes[0] < size.min(256 * MIB) + MIB,
        "garbage was collected: {sizes:?}"
    );
}

/// A directory on another device than `scratch`, where there is one with room: files cannot be
/// linked there.
fn directory_on_another_device(scratch: &Path, size: u64) -> Option<tempfile::TempDir> {
    use std::os::unix::fs::MetadataExt;
    let shared = Path::new("/dev/shm");
    let room = rustix::fs::statvfs(shared).ok()?;
    let has_room = room.f_bavail.saturating_mul(room.f_frsize) > 2 * size;
    let is_other = fs::metadata(shared).ok()?.dev() != fs::metadata(scratch).ok()?.dev();
    (has_room && is_other).then(|| tempfile::tempdir_in(shared).unwrap())
}

/// Writes a file in which each MiB tells where it lies.
fn write_value(path: &Path, size: u64) {
    let mut file = File::create(path).unwrap();
    let mut block = vec![b'x'; MIB as usize];
    let mut written = 0;
    while written < size {
        block[..8].copy_from_slice(&written.to_le_bytes());
        let length = MIB.min(size - written);
        file.write_all(&block[..length as usize]).unwrap();
        written += length;
    }
}

/// Makes a database whose blob file holds the beginning of `value`, and garbage.
fn make_collectable(path: &Path, value: &Path, size: u64) {
    let mut options = Options::default();
    options.create_if_missing = true;
    for (name, value) in [
        ("enable_blob_files", "true"),
        ("blob_file_size", "8g"),
        ("enable_blob_garbage_collection", "true"),
        ("blob_garbage_collection_age_cutoff", "1.0"),
        ("blob_punch_holes", "false"),
        ("disable_auto_compactions", "true"),
    ] {
        options.set(name, value).unwrap();
    }
    let db = Db::open(path, &options).unwrap();
    let mut bytes = Vec::new();
    File::open(value).unwrap().take(size).read_to_end(&mut bytes).unwrap();
    db.put("garbage", &bytes[..bytes.len() / 8]).unwrap();
    db.put("v", &bytes).unwrap();
    db.flush_all().unwrap();
    db.delete("garbage").unwrap();
    db.flush_all().unwrap();
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    db.close().unwrap();
}

struct World<'a> {
    dir: &'a Path,
    elsewhere: Option<&'a Path>,
}

impl World<'_> {
    /// Runs a line of the table.
    fn run(&self, name: &str, line: &str) {
        if line.contains("{elsewhere}") && self.elsewhere.is_none() {
            return;
        }
        let (mut arguments, mut input, mut output) = (Vec::new(), Stdio::null(), Stdio::null());
        let mut is_value = false;
        for word in line.split_whitespace() {
            match word.split_at(1) {
                ("<", file) => input = File::open(self.dir.join(file)).unwrap().into(),
                (">", file) => {
                    is_value = file == "got";
                    output = File::create(self.dir.join(file)).unwrap().into();
                }
                _ => arguments.push(self.replaced(word)),
            }
        }
        let limited = format!("ulimit -d {DATA_KIB} && exec \"$@\"");
        let ended = Command::new("sh")
            .args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_flagstone")])
            .args(&arguments)
            .stdin(input)
            .stdout(output)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        // A doctor may find something to say of a database of one value.
        let is_done = ended.status.success() || name == "doctor" && ended.status.code().is_some();
        assert!(is_done && !said.contains("memory allocation"), "{line}: {} {said}", ended.status);
        if is_value {
            self.check_value(&self.dir.join("got"));
        }
    }

    fn replaced(&self, word: &str) -> String {
        let word = word.replace("{dir}", &self.dir.display().to_string());
        let word =
            word.replace("{elsewhere}", &self.elsewhere.unwrap_or(self.dir).display().to_string());
        let Some((before, kind)) = word.split_once("{.") else { return word };
        let kind = kind.trim_end_matches('}');
        let files = fs::read_dir(before).unwrap().map(|entry| entry.unwrap().path());
        let found: Option<PathBuf> = files
            .filter(|path| path.extension().is_some_and(|found| found == kind))
            .max_by_key(|path| path.metadata().unwrap().len());
        found.unwrap().display().to_string()
    }

    /// Whether a file has the bytes of the value, or as many of them as were taken.
    fn check_value(&self, path: &Path) {
        let (mut found, mut value) = [path, &self.dir.join("source/v")]
            .map(|path| BufReader::new(File::open(path).unwrap()))
            .into();
        let length = path.metadata().unwrap().len();
        assert!(length >= 256 * MIB, "{}: {length} bytes", path.display());
        let (mut one, mut other) = (vec![0; MIB as usize], vec![0; MIB as usize]);
        let mut at = 0;
        while at < length {
            let size = MIB.min(length - at) as usize;
            found.read_exact(&mut one[..size]).unwrap();
            value.read_exact(&mut other[..size]).unwrap();
            assert!(one[..size] == other[..size], "{} from {at} on", path.display());
            at += size as u64;
        }
    }
}
