//! What is told of files that are damaged, cut off or missing.

use super::*;

#[test]
fn the_fixtures_are_sound() {
    for name in ["basic", "blob-zstd", "cfs", "partitioned", "comp-zstddict"] {
        let db = fixtures().join(name);
        assert!(printed(&format!("verify --db {}", db.display())).contains("sound"), "{name}");
        assert!(printed(&format!("check --db {}", db.display())).contains("all there"), "{name}");
    }
}

#[test]
fn a_flipped_byte_is_found_and_named() {
    for (name, extension) in [("basic", ".sst"), ("blob-lz4", ".blob")] {
        let scratch = tempfile::tempdir().unwrap();
        copy(name, scratch.path());
        let (file, mut bytes) = contents(scratch.path())
            .into_iter()
            .find(|(file, _)| file.ends_with(extension))
            .unwrap();
        bytes[500] ^= 1;
        write(&scratch.path().join(&file), &bytes);
        let output = run(&format!("verify --db {}", scratch.path().display()));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(
            text.contains("FAULT") && text.contains(&file) && text.contains("offset"),
            "{text}"
        );
        let json = String::from_utf8(
            run(&format!("verify --json --db {}", scratch.path().display())).stdout,
        );
        let report: serde_json::Value = serde_json::from_str(&json.unwrap()).unwrap();
        assert!(report["faults"][0]["file"].as_str().unwrap().ends_with(&file));
    }
}

/// With --json the lines about faults were the only ones that were not.
#[test]
fn what_is_wrong_with_single_files_is_json_too() {
    for (name, extension, command) in [
        ("basic", ".sst", "sst --verify"),
        ("blob-lz4", ".blob", "blob"),
        ("wal-plain", ".log", "wal"),
        ("basic", "", "manifest"),
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let is_wanted = |file: &str| match extension {
            "" => file.starts_with("MANIFEST"),
            _ => file.ends_with(extension),
        };
        let files = contents(&fixtures().join(name));
        let (file, mut bytes) = files
            .into_iter()
            .filter(|(_, bytes)| bytes.len() > 40)
            .find(|(file, _)| is_wanted(file))
            .unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        let path = scratch.path().join(file);
        write(&path, &bytes);
        let output = run(&format!("{command} {} --json", path.display()));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command}: {text}");
        let facts: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        assert!(facts.iter().any(|fact| fact["fault"].is_string()), "{text}");
    }
}

/// A MANIFEST without its end was printed as if it were whole.
#[test]
fn a_manifest_that_was_cut_off_says_where() {
    let scratch = tempfile::tempdir().unwrap();
    let files = contents(&fixtures().join("basic"));
    let (name, bytes) = files.into_iter().find(|(file, _)| file.starts_with("MANIFEST")).unwrap();
    let path = scratch.path().join(name);
    write(&path, &bytes[..bytes.len() - 3]);
    let text = printed(&format!("manifest {}", path.display()));
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("end: ") && last.contains("truncated"), "{text}");
    let lines = printed(&format!("manifest {} --json", path.display()));
    let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert!(last["end"].is_string(), "{last}");
    write(&path, &bytes);
    assert!(!printed(&format!("manifest {}", path.display())).contains("end: "));
}

/// A reader that goes away (`flagstone verify | head -1`) made a damaged database a sound one.
#[test]
fn a_verdict_stands_where_nobody_reads_the_report() {
    let scratch = tempfile::tempdir().unwrap();
    copy("basic", scratch.path());
    let table = contents(scratch.path()).into_keys().find(|file| file.ends_with(".sst")).unwrap();
    write(&scratch.path().join(&table), b"short");
    let broken = format!("--db {}", scratch.path().display());
    let keys = tempfile::tempdir().unwrap();
    let db = format!("--db {}", keys.path().join("db").display());
    printed(&format!("put {db} ../outside value"));
    let export = format!("export {db} {}", keys.path().join("files").display());
    let looks = ["check", "verify", "doctor"].map(|command| format!("{command} {broken}"));
    for line in looks.into_iter().chain([export]) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_flagstone"))
            .args(line.split_whitespace())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(1), "{line}");
    }
}

/// What stands behind the place where the reader went away was not looked at, and the file called
/// sound.
#[test]
fn files_are_looked_at_to_their_ends_where_nobody_reads() {
    let scratch = tempfile::tempdir().unwrap();
    let mut options = flagstone::options::Options::default();
    for (name, value) in
        [("create_if_missing", "true"), ("enable_blob_files", "true"), ("min_blob_size", "0")]
    {
        options.set(name, value).unwrap();
    }
    let db = flagstone::db::Db::open(scratch.path(), &options).unwrap();
    // Long, so that more is printed than a pipe or a buffer takes.
    let fill = || (0..200).for_each(|number| db.put(format!("{number:02000}"), "value").unwrap());
    fill();
    db.flush_all().unwrap();
    fill();
    db.close().unwrap();
    for (command, extension) in [("blob --keys", ".blob"), ("wal --operations", ".log")] {
        let files =
            contents(scratch.path()).into_iter().filter(|(name, _)| name.ends_with(extension));
        let (name, mut bytes) = files.max_by_key(|(_, bytes)| bytes.len()).unwrap();
        let late = bytes.len() * 9 / 10;
        bytes[late] ^= 1;
        write(&scratch.path().join(&name), &bytes);
        let mut child = Command::new(env!("CARGO_BIN_EXE_flagstone"))
            .args(command.split_whitespace())
            .arg(scratch.path().join(&name))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(1), "{command}");
    }
}

#[test]
fn missing_and_cut_files_are_all_named() {
    let scratch = tempfile::tempdir().unwrap();
    copy("basic", scratch.path());
    let tables: Vec<_> =
        contents(scratch.path()).into_keys().filter(|file| file.ends_with(".sst")).collect();
    Env::os().fs.remove(&scratch.path().join(&tables[0])).unwrap();
    write(&scratch.path().join(&tables[1]), b"short");
    write(&scratch.path().join("999999.sst"), b"");
    for command in ["check", "verify"] {
        let output = run(&format!("{command} --db {}", scratch.path().display()));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(&tables[0]) && text.contains(&tables[1]), "{text}");
        assert_eq!(text.contains("stray"), command == "check", "{text}");
    }
}
