//! OPTIONS files of which the end is missing, of which a line makes no sense, or that could not be
//! written.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{copy_directory, create, fixtures, temporary};
use flagstone::base::{Code, Error, Result};
use flagstone::db::{Db, Ticker};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, IoMode, Join, Spawn};
use flagstone::options::file::{parse, print};
use flagstone::options::{Options, load_latest, load_readable};
use testkit::fault::{FaultFs, Injection, OPTIONS_FILE_CALLS, Plan};
use testkit::steps;

/// What the newest OPTIONS file says if that is all of it: how many families it names, or why it
/// does not count.
fn read(directory: &Path, text: &str) -> std::result::Result<usize, String> {
    std::fs::write(directory.join("OPTIONS-000999"), text).expect("written");
    let loaded = load_latest(&Env::os(), directory).map_err(|error| error.to_string())?;
    Ok(loaded.expect("there is one").families.len())
}

/// Behind each of its lines.
fn ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.match_indices('\n').map(|(end, _)| end + 1)
}

fn newest(directory: &Path) -> String {
    let loaded = load_latest(&Env::os(), directory).expect("it can be read").expect("there is one");
    std::fs::read_to_string(loaded.path).expect("text")
}

/// Bytes of the filters of a database to which a table is added now.
fn filter_bytes(directory: &Path, options: &Options) -> u64 {
    let db = Db::open(directory, options).expect("a database");
    (0..1000u32).for_each(|key| db.put(key.to_be_bytes(), "value").expect("a put"));
    db.flush_all().expect("a flush");
    let properties = db.property(db.default_column_family(), "rocksdb.aggregated-table-properties");
    let properties = properties.expect("tables that can be read");
    let size = properties.split("filter block size=").nth(1).expect("the size of filters");
    size.split(';').next().and_then(|size| size.trim().parse().ok()).expect("a number")
}

#[test]
fn tables_have_filters_unless_a_file_says_otherwise() {
    let directory = temporary();
    let ten_bits = filter_bytes(directory.path(), &create());
    assert!((1250..1400).contains(&ten_bits), "{ten_bits} bytes for 1000 keys");
    let text = newest(directory.path());
    let line = "  filter_policy=bloomfilter:10:false\n";
    assert!(text.contains(line), "in RocksDB's words: {text}");
    for without in [text.replace(line, "  filter_policy=nullptr\n"), text.replace(line, "")] {
        let mut options = parse(&without).expect("a whole file").options;
        options.create_if_missing = true;
        let directory = temporary();
        assert_eq!(filter_bytes(directory.path(), &options), 0);
        assert!(newest(directory.path()).contains("filter_policy=nullptr"), "it stays without");
        let loaded = load_latest(&Env::os(), directory.path()).expect("it can be read");
        let again = loaded.expect("there is one").options;
        assert_eq!(filter_bytes(directory.path(), &again), 0);
    }
}

/// What was left of it passed for all: settings, and families, had the defaults.
#[test]
fn a_file_that_was_cut_off_does_not_count() {
    let directory = temporary();
    let db = Db::open(directory.path(), &create()).expect("a database");
    db.create_column_family("other", &create().cf).expect("a family");
    db.close().expect("closed");
    let text = newest(directory.path());
    assert_eq!(read(directory.path(), &text), Ok(2));
    let whole = text.trim_end().len();
    for end in ends(&text).filter(|end| *end < whole) {
        for cut in [&text[..end], &text[..end - 2]] {
            let said = read(directory.path(), cut).expect_err(cut);
            // Without even its first line nothing is known of it.
            assert!(said.contains("cut off") || said.contains("[DBOptions] is missing"), "{said}");
        }
    }
    let (loaded, errors) = load_readable(&Env::os(), directory.path()).expect("a directory");
    assert!(loaded.expect("the one before").families.len() == 2 && errors.len() == 1, "{errors:?}");
}

/// Where RocksDB's ends behind a family, nothing tells that there was another. One that ended in
/// the indentation of a name passed for whole.
#[test]
fn a_file_by_rocksdb_that_was_cut_off_does_not_count_but_behind_a_family() {
    for name in ["basic", "cfs"] {
        let text = newest(&fixtures().join(name));
        let env = Env::memory();
        env.fs.create_directory(Path::new("/db")).expect("a directory");
        let counts = |end: &usize| {
            let file = env
                .fs
                .create_writable(Path::new("/db/OPTIONS-000999"), IoMode::Buffered)
                .expect("a file");
            file.write_at(0, &text.as_bytes()[..*end]).expect("a write");
            load_latest(&env, Path::new("/db")).is_ok()
        };
        let rests: Vec<_> =
            (0..=text.len()).filter(counts).map(|end| text[end..].trim_start()).collect();
        assert!(
            rests.iter().all(|rest| rest.is_empty() || rest.starts_with("[CFOptions")),
            "{rests:?}"
        );
        assert!(rests.contains(&"") && rests.len() < 10, "{rests:?}");
    }
}

/// RocksDB's example ends without an empty line. A database's own file must have it: it may as well
/// have been cut there.
#[test]
fn text_that_is_handed_over_may_end_without_an_empty_line() {
    let directory = temporary();
    let text = newest(&fixtures().join("basic"));
    let changed = text.trim_end();
    assert_eq!(parse(changed).expect("it is whole").families.len(), 1);
    let said = read(directory.path(), changed).expect_err("not a database's");
    assert!(said.contains("cut off") && said.contains("if an editor removed that end"), "{said}");
    assert_eq!(read(directory.path(), &format!("{changed}\n\n")), Ok(1));
    // A comment behind its end made it one that was cut off.
    assert_eq!(read(directory.path(), &format!("{text}# changed by hand\n  # twice")), Ok(1));
    read(directory.path(), &format!("{changed}\n# changed by hand\n")).expect_err("no empty line");
}

/// It was enough that it stood anywhere.
#[test]
fn the_last_line_comes_last() {
    let directory = temporary();
    Db::open(directory.path(), &create()).expect("a database").close().expect("closed");
    let text = newest(directory.path());
    let (first, rest) = text.split_once('\n').expect("lines");
    let last = text.lines().next_back().expect("lines");
    let cut = &rest[..rest.len() / 2];
    parse(&format!("{first}\n{last}\n{rest}")).expect("it stands at the end, too");
    let error = parse(&format!("{first}\n{last}\n{}\n", &cut[..=cut.rfind('\n').expect("lines")]));
    let error = error.expect_err("it was cut off");
    assert!(error.message().starts_with("line 4: it follows the line '# End of file.'"), "{error}");
    parse(&format!("{text}\n \n")).expect("nothing follows");
}

/// A wrong value was `InvalidArgument`, a wrong name on the same line `Corruption`.
#[test]
fn a_line_that_makes_no_sense_is_an_invalid_argument_that_says_what_to_do() {
    for line in [
        "max_open_file=3",
        "max_open_files=three",
        "max_open_files=99999999999999999999",
        "compaction_readahead_size",
        "[Databases]",
        "[DBOptions",
        "[CFOptions default]",
        "[CFOptions \"first\"]",
        "[TableOptions/BlockBasedTable \"first\"]",
    ] {
        let error = parse(&format!("[DBOptions]\n\n{line}\n")).expect_err("no line of one");
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(error.message().starts_with("line 3: "), "{error}");
        assert_eq!(error.remedy(), Some("remove or correct that line"), "{error}");
    }
    for lacking in ["", "[DBOptions]\n"] {
        assert!(parse(lacking).expect_err(lacking).is_corruption(), "{lacking}");
    }
}

/// A file with a line more at its end counted as cut off.
#[test]
fn what_stands_behind_the_last_line_is_named() {
    let default = Options::default();
    let text = print(&default, &[("default", &default.cf)]);
    parse(&format!("{text}\n \n")).expect("nothing follows");
    let error = parse(&format!("{text}\n[DBOptions]\n")).expect_err("a line more");
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    let line = text.lines().count() + 2;
    assert!(
        error.message().starts_with(&format!("line {line}: it follows the line '# End of file.'")),
        "{error}"
    );
    let cut = &text[..text.trim_end().len() - 1];
    assert!(parse(cut).expect_err("cut off").is_corruption());
}

/// Who was told that it failed had the change in force until a clean close, after which the OPTIONS
/// file took it back.
#[test]
fn an_option_that_was_changed_stays_so_where_its_file_could_not_be_written() {
    for (call, sort) in OPTIONS_FILE_CALLS {
        for closes in [true, false] {
            let disk = FaultFs::new(Arc::new(MemoryFileSystem::new()));
            let env = steps::world(Arc::new(disk.clone()), 1);
            let options = Options { env: env.clone(), ..create() };
            let db = Db::open("/db", &options).expect("a database");
            let family = db.default_column_family();
            let fails = Plan::Next { call, sort, injection: Injection::Io };
            disk.plan(fails);
            let of_family = db.set_options(family, &[("write_buffer_size", "1000000")]);
            disk.plan(fails);
            let of_database = db.set_db_options(&[("delayed_write_rate", "2000000")]);
            for outcome in [of_family, of_database] {
                let error = outcome.expect_err("no file says so");
                assert_eq!(error.code(), Code::IoError, "{call:?}");
                assert!(error.message().contains("the change is in force"), "{call:?}: {error}");
            }
            let counts = (disk.failed().len(), db.statistics().get(Ticker::OptionsFilesPutOff));
            assert_eq!(counts, (2, 2), "{call:?}");
            let in_force = (family.options().write_buffer_size, db.options().delayed_write_rate);
            assert_eq!(in_force, (1_000_000, 2_000_000), "{call:?}");
            if closes {
                db.close().expect("a clean close");
            } else {
                env.clock.sleep(Duration::from_secs(30));
                db.background_step().expect("nothing to do, but to look");
            }
            let loaded =
                load_latest(&env, Path::new("/db")).expect("it reads").expect("there is one");
            let found = (loaded.families[0].1.write_buffer_size, loaded.options.delayed_write_rate);
            assert_eq!(found, in_force, "{call:?}, closes: {closes}");
        }
    }
}

/// Starts threads until there are none left.
struct Exhaustible {
    inner: Arc<dyn Spawn>,
    has_none_left: AtomicBool,
}

impl Spawn for Exhaustible {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Join>> {
        if self.has_none_left.load(Ordering::Relaxed) {
            return Err(Error::new(Code::IoError, "no thread left"));
        }
        self.inner.spawn(name, work)
    }
}

/// It was in force, and the next opening knew nothing of it.
#[test]
fn a_change_whose_threads_cannot_be_started_is_in_the_file() {
    let env = Env::memory();
    let spawner =
        Arc::new(Exhaustible { inner: env.spawner.clone(), has_none_left: AtomicBool::new(false) });
    let env = Env { spawner: spawner.clone(), ..env };
    let db = Db::open("/db", &Options { env: env.clone(), ..create() }).expect("a database");
    spawner.has_none_left.store(true, Ordering::Relaxed);
    let refused = db.set_db_options(&[("max_background_jobs", "12")]).expect_err("no thread left");
    assert_eq!(refused.code(), Code::IoError);
    let loaded =
        load_latest(&env, Path::new("/db")).expect("it can be read").expect("there is one");
    assert_eq!((db.options().max_background_jobs, loaded.options.max_background_jobs), (12, 12));
}

/// The OPTIONS file of an earlier version names options that are gone. One of them had values
/// written around the system's cache: records without a key, never compressed, fill the blocks of
/// that blob file.
#[test]
fn a_database_written_by_options_that_are_gone_is_read() {
    let directory = temporary();
    copy_directory(&fixtures().join("../flagstone-0.1/blob-direct"), directory.path());
    let loaded =
        load_latest(&Env::os(), directory.path()).expect("it can be read").expect("there is one");
    let gone = ["seek_compaction_bytes", "blob_commit_direct_min_size"];
    let notes =
        gone.map(|name| format!("option '{name}' has no effect: this version no longer has it"));
    assert_eq!(loaded.options.warnings(), notes);
    let db = Db::open(directory.path(), &loaded.options).expect("a database");
    assert_eq!(db.get("s").expect("a read").as_deref(), Some(&[b'x'; 52][..]));
    assert!(db.verify(|_| {}).faults.is_empty());
    db.set_options(db.default_column_family(), &[("write_buffer_size", "1m")])
        .expect("another file");
    let text = newest(directory.path());
    assert!(gone.iter().all(|name| !text.contains(name)), "{text}");
}
