//! The tables, names and files together.

mod by_name;

use std::path::{Path, PathBuf};

use crate::base::{Code, Comparator, PrefixExtractor};
use crate::env::{Env, IoMode};

use super::names::{check_live, rows};
use super::table::Settings;
use super::*;

fn fixtures() -> Vec<PathBuf> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/rocksdb-7.8"));
    let names = Env::os().fs.list(root).unwrap();
    let directories: Vec<_> = names.into_iter().filter(|name| !name.contains('.')).collect();
    assert!(directories.len() > 30, "fixtures are missing");
    directories.into_iter().map(|name| root.join(name)).collect()
}

fn fixture(name: &str) -> LoadedOptions {
    let directory = fixtures().into_iter().find(|path| path.ends_with(name)).unwrap();
    load_latest(&Env::os(), &directory).unwrap().unwrap()
}

/// Random bits from a seed, as the tables want them.
fn bits(seed: u64) -> impl FnMut() -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    move || random.u64(..)
}

fn random_family(random: &mut dyn FnMut() -> u64) -> ColumnFamilyOptions {
    let mut family = ColumnFamilyOptions {
        settings: CfSettings::sample_all(random),
        table: TableSettings::sample_all(random),
        ..ColumnFamilyOptions::default()
    };
    for (name, texts) in [
        ("comparator", ["leveldb.BytewiseComparator", "rocksdb.ReverseBytewiseComparator"]),
        ("merge_operator", ["nullptr", "{id=StringAppendOperator;delimiter=--;}"]),
        ("prefix_extractor", ["nullptr", "rocksdb.CappedPrefix.7"]),
    ] {
        family.set(name, texts[(random() % 2) as usize]).unwrap();
    }
    family
}

#[test]
fn every_fixture_s_options_are_read() {
    for directory in fixtures() {
        let loaded = load_latest(&Env::os(), &directory).unwrap().unwrap();
        loaded.options.validate().unwrap();
        for (_, family) in &loaded.families {
            family.validate().unwrap();
        }
        for warning in loaded.warnings() {
            assert!(
                warning.contains("compaction_options_fifo"),
                "{}: {warning}",
                directory.display()
            );
        }
    }
}

#[test]
fn what_the_fixtures_say_arrives() {
    let families = fixture("cfs").families;
    let names: Vec<_> = families.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["default", "users", "reversed", "photos"]);
    assert_eq!(families[2].1.comparator, Comparator::ReverseBytewise);
    assert_eq!(families[3].1.enable_blob_files, Some(true));

    let prefix = fixture("bloom-prefix").options.cf;
    assert_eq!(prefix.prefix_extractor, Some(PrefixExtractor::FixedPrefix(9)));
    assert_eq!(prefix.table.filter_policy, Some(FilterPolicy::Bloom { bits_per_key: 9.5 }));
    assert!(!prefix.table.whole_key_filtering);

    let append = fixture("merge-append").options.cf.merge_operator.unwrap();
    assert_eq!(append.option_text(), "{id=StringAppendOperator;delimiter=,;}");
    assert_eq!(fixture("comp-zstddict").options.cf.compression_opts.zstd_max_train_bytes, 65536);

    let universal = fixture("universal").options;
    assert_eq!(universal.cf.compaction_style, CompactionStyle::Universal);
    assert!(universal.validate_for_writing().is_ok());
}

#[test]
fn every_row_is_a_name_that_rocksdb_writes() {
    let path = fixture("basic").path;
    let bytes = crate::env::read_file(Env::os().fs.as_ref(), &path, 1 << 20).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    // These two are written only when they are set.
    let not_there =
        |name| matches!(name, "wal_dir" | "compression_per_level") || known::OWN.contains(&name);
    for row in rows().filter(|row| !not_there(row.name)) {
        assert!(text.contains(&format!("\n  {}=", row.name)), "{}", row.name);
        assert!(row.documentation.len() > 4, "{}", row.name);
    }
    assert!(
        rows().all(|row| known::find(row.name).is_none()),
        "a row is also listed as not supported"
    );
    assert!(
        known::OWN.iter().all(|own| rows().any(|row| row.name == *own)),
        "a name without a row"
    );
    assert!(known::OWN.iter().all(|own| !text.contains(own)), "RocksDB knows it, too");
}

#[test]
fn random_options_survive_the_file() {
    for seed in 0..200 {
        let mut random = bits(seed);
        let options = Options {
            db: DbSettings::sample_all(&mut random),
            cf: random_family(&mut random),
            ..Options::default()
        };
        let other = random_family(&mut random);
        let name = "odd \"name\": #1";
        let text =
            file::print(&options, &[(DEFAULT_COLUMN_FAMILY_NAME, &options.cf), (name, &other)]);
        let read =
            file::parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));

        assert_eq!(read.warnings(), Vec::<String>::new());
        assert_eq!(read.options.db, options.db, "seed {seed}");
        for (read, written) in
            [(&read.options.cf, &options.cf), (read.family(name).unwrap(), &other)]
        {
            assert_eq!(format!("{read:?}"), format!("{written:?}"), "seed {seed}");
            assert_eq!(
                (&read.settings, &read.table),
                (&written.settings, &written.table),
                "seed {seed}"
            );
        }
        options.db.check_ranges().unwrap();
        other.settings.check_ranges().unwrap();
        other.table.check_ranges().unwrap();
    }
}

/// It was written to the OPTIONS file as it was, which RocksDB refuses.
#[test]
fn numbers_of_universal_compaction_have_their_ranges_too() {
    let mut options = ColumnFamilyOptions::default();
    options.set("compaction_options_universal.max_read_amp", "-7").unwrap();
    let error = options.validate().unwrap_err();
    assert!(error.message().contains("compaction_options_universal"), "{error}");
}

#[test]
fn a_cut_or_changed_file_is_never_a_panic() {
    let options = Options::default();
    let text = file::print(&options, &[(DEFAULT_COLUMN_FAMILY_NAME, &options.cf)]);
    for end in 0..text.len() {
        let _ = file::parse(&text[..end]);
    }
    for at in 0..text.len() {
        let mut changed = text.clone().into_bytes();
        changed[at] ^= 1 << (at % 7);
        if let Ok(changed) = String::from_utf8(changed) {
            let _ = file::parse(&changed);
        }
    }
}

#[test]
fn the_smallest_file_is_read() {
    let text = "[DBOptions]\n[CFOptions \"default\"]\n";
    assert_eq!(file::parse(text).unwrap().families.len(), 1);
    for (wrong, says) in [
        ("", "[DBOptions] is missing"),
        ("[DBOptions]\n", "[CFOptions \"default\"] is missing"),
        ("[DBOptions]\n[CFOptions \"x\"]\n", "not 'default'"),
        (
            "[DBOptions]\n  max_open_file=3\n",
            "line 2: there is no option 'max_open_file'; did you mean 'max_open_files'?",
        ),
        (
            "[DBOptions]\n  max_open_files=three\n",
            "line 2: option 'max_open_files': expected a whole number",
        ),
        ("a=b\n", "before any section"),
    ] {
        let error = file::parse(wrong).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn what_is_not_acted_on_is_kept_and_reported() {
    let text = "[Version]\nrocksdb_version=7.8.3\n[DBOptions]\nunordered_write=true\nfast_sst_open=true\n\
        [CFOptions \"default\"]\nbloom_locality=1\ncompression_opts={checksum=true;}\n\
        [TableOptions/BlockBasedTable \"default\"]\npin_top_level_index_and_filter=false\n";
    let read = file::parse(text).unwrap();
    assert_eq!(read.warnings().len(), 5, "{:?}", read.warnings());
    let again = file::print(&read.options, &[(DEFAULT_COLUMN_FAMILY_NAME, &read.options.cf)]);
    assert!(again.contains("\n  unordered_write=true") && again.contains("\n  bloom_locality=1"));
    let [is_kept, is_default] = ["false", "true"]
        .map(|value| again.contains(&format!("\n  pin_top_level_index_and_filter={value}\n")));
    assert!(is_kept && !is_default, "{again}");
    // RocksDB 7.8 would refuse the file if they stood there as options.
    assert!(again.contains("\n  # flagstone:fast_sst_open=true\n"), "{again}");
    assert!(again.contains("\n  # flagstone:compression_opts={checksum=true;}\n"), "{again}");
    assert!(!again.contains("\n  compression_opts={checksum"), "{again}");

    let newer =
        "[Version]\nrocksdb_version=12.1.0\n[DBOptions]\nbrand_new=1\n[CFOptions \"default\"]\n";
    assert!(file::parse(newer).unwrap().warnings()[0].contains("brand_new"));
}

/// They are in no file of a database that was opened with defaults, and were taken for damage.
#[test]
fn names_that_rocksdb_writes_only_when_they_are_set_are_known() {
    let text = "[Version]\nrocksdb_version=11.8.1\n[DBOptions]\ndaily_offpeak_time_utc=02:00-05:00\nlisteners={Mine}\n\
        [CFOptions \"default\"]\n\
        table_properties_collectors={{id=Mine;window_size=128;}}\n";
    let read = file::parse(text).unwrap();
    assert_eq!(read.warnings().len(), 3, "{:?}", read.warnings());
    let again = file::print(&read.options, &[(DEFAULT_COLUMN_FAMILY_NAME, &read.options.cf)]);
    for name in ["daily_offpeak_time_utc", "listeners", "table_properties_collectors"] {
        assert!(!again.contains(&format!("\n  {name}=")), "{again}");
        assert!(again.contains(&format!("\n  # flagstone:{name}=")), "{again}");
    }
}

#[test]
fn values_of_rocksdb_s_that_do_not_exist_here_are_kept() {
    let text = "[Version]\nrocksdb_version=7.8.3\n[DBOptions]\n[CFOptions \"default\"]\n  compression=kXpressCompression\n\
        [TableOptions/BlockBasedTable \"default\"]\n  filter_policy=my.Filter\n";
    let read = file::parse(text).unwrap();
    assert_eq!(read.warnings().len(), 2, "{:?}", read.warnings());
    let again = file::print(&read.options, &[(DEFAULT_COLUMN_FAMILY_NAME, &read.options.cf)]);
    assert!(again.contains("=kXpressCompression\n") && again.contains("=my.Filter\n"), "{again}");
    assert!(file::parse(&text.replace("kXpress", "kXpres")).is_err());
}

/// An older Flagstone took the first option of a newer one for damage, and later lost it.
#[test]
fn what_only_a_newer_flagstone_has_is_kept() {
    let text = "[Version]\nrocksdb_version=7.8.3\n[DBOptions]\n  # flagstone:brand_new=1\n[CFOptions \"default\"]\n";
    let read = file::parse(text).unwrap();
    assert!(read.warnings()[0].contains("'brand_new=1' is unknown"), "{:?}", read.warnings());
    let again = file::print(&read.options, &[(DEFAULT_COLUMN_FAMILY_NAME, &read.options.cf)]);
    assert!(again.contains("\n  # flagstone:brand_new=1\n"), "{again}");
    assert!(file::parse(&text.replace("# flagstone:", "")).is_err());
}

/// The old value came back with the next opening, without a word.
#[test]
fn what_is_set_takes_the_place_of_what_was_kept() {
    let text = "[DBOptions]\n[CFOptions \"default\"]\ncompression_opts={level=3;strategy=1;}\nbloom_locality=1\n\
        [TableOptions/BlockBasedTable \"default\"]\nfilter_policy=my.Filter\npin_top_level_index_and_filter=false\n";
    let mut options = file::parse(text).unwrap().options;
    assert!(options.set("pin_top_level_index_and_filter", "no").is_err());
    assert_eq!(options.warnings().len(), 4, "{:?}", options.warnings());
    options.set("pin_top_level_index_and_filter", "true").unwrap();
    options.set("compression_opts.level", "9").unwrap();
    options.set("block_based_table_factory", "{filter_policy=bloomfilter:9}").unwrap();
    let mut families = [("other".to_string(), options.cf.clone())];
    options.set_everywhere(&mut families, "cf.bloom_locality", "0").unwrap();
    assert_eq!(options.warnings(), Vec::<String>::new());
    assert_eq!(families[0].1.kept, []);
    let again = file::print(&options, &[(DEFAULT_COLUMN_FAMILY_NAME, &options.cf)]);
    assert!(
        !again.contains("pin_top_level_index_and_filter") && again.contains("level=9;"),
        "{again}"
    );
}

#[test]
fn the_file_says_what_rocksdb_wants_of_a_memtable() {
    let alone = "\n  allow_concurrent_memtable_write=false\n";
    for (memtable, text, is_alone) in [
        ("btree", "memtable_factory=SkipListFactory\n", false),
        ("skip_list", "memtable_factory={id=SkipListFactory;lookahead=0;}\n", false),
        ("vector", "memtable_factory=VectorRepFactory\n", true),
        ("prefix_hash:9", "memtable_factory={id=HashSkipListRepFactory;bucket_count=9;}\n", true),
    ] {
        let mut family = ColumnFamilyOptions::default();
        family.set("memtable", memtable).unwrap();
        assert_eq!(family.get("memtable"), family.get("memtable_factory"));
        assert_eq!(family.validate().is_ok(), !memtable.starts_with("prefix_hash"));
        family.set("prefix_extractor", "fixed:4").unwrap();
        family.validate().unwrap();
        let families =
            [(DEFAULT_COLUMN_FAMILY_NAME, &ColumnFamilyOptions::default()), ("other", &family)];
        let printed = file::print(&Options::default(), &families);
        assert!(printed.contains(text), "{printed}");
        assert_eq!(printed.contains(alone), is_alone, "{memtable}");
        let read = file::parse(&printed).unwrap();
        assert_eq!(read.warnings(), Vec::<String>::new());
        assert_eq!(read.families[1].1.memtable_factory, family.memtable_factory);
    }
    let strange = "[DBOptions]\n[CFOptions \"default\"]\nmemtable_factory=StrangeRep\ninplace_update_support=true\n";
    let read = file::parse(strange).unwrap();
    assert!(read.warnings()[0].contains("memtable_factory=StrangeRep"), "{:?}", read.warnings());
    let again = file::print(&read.options, &[(DEFAULT_COLUMN_FAMILY_NAME, &read.options.cf)]);
    assert!(
        again.contains("\n  memtable_factory=StrangeRep\n") && again.contains(alone),
        "{again}"
    );
}

#[test]
fn the_newest_file_counts() {
    let env = Env::memory();
    let directory = Path::new("/db");
    env.fs.create_directory(directory).unwrap();
    assert!(load_latest(&env, directory).unwrap().is_none());
    for (name, levels) in
        [("OPTIONS-000009", 4), ("OPTIONS-000010", 5), ("OPTIONS-000011.dbtmp", 6)]
    {
        let mut options = Options::default();
        options.cf.num_levels = levels;
        let text = file::print(&options, &[(DEFAULT_COLUMN_FAMILY_NAME, &options.cf)]);
        env.fs
            .create_writable(&directory.join(name), IoMode::Buffered)
            .unwrap()
            .write_at(0, text.as_bytes())
            .unwrap();
    }
    assert_eq!(load_latest(&env, directory).unwrap().unwrap().options.cf.num_levels, 5);
}

/// Of a damaged one nothing was used, and the one before was not looked at.
#[test]
fn where_the_newest_is_damaged_the_one_before_can_be_had() {
    let env = Env::memory();
    let directory = Path::new("/db");
    env.fs.create_directory(directory).unwrap();
    assert!(load_readable(&env, directory).unwrap().0.is_none());
    let default = Options::default();
    let text = file::print(&default, &[(DEFAULT_COLUMN_FAMILY_NAME, &default.cf)]);
    for (name, text) in [("OPTIONS-000009", text.as_str()), ("OPTIONS-000010", "nonsense")] {
        env.fs
            .create_writable(&directory.join(name), IoMode::Buffered)
            .unwrap()
            .write_at(0, text.as_bytes())
            .unwrap();
    }
    assert!(load_latest(&env, directory).is_err());
    let (loaded, errors) = load_readable(&env, directory).unwrap();
    assert!(loaded.unwrap().path.ends_with("OPTIONS-000009"));
    assert!(
        errors.len() == 1 && errors[0].path().unwrap().ends_with("OPTIONS-000010"),
        "{errors:?}"
    );
}

/// The file that the engine writes for 18,000 families was taken for damaged. And a name was sought
/// among all before it, so that a file of 2 MiB could take minutes, and many times its size in
/// memory.
#[test]
fn a_file_may_be_large_and_not_name_more_families_than_it_describes() {
    let mut text = String::from("[DBOptions]\n[CFOptions \"default\"]\n");
    (1..50_000).for_each(|number| text.push_str(&format!("[CFOptions \"{number}\"]\n")));
    let error = file::parse(&text).unwrap_err();
    assert!(error.is_corruption() && error.to_string().contains("families"), "{error}");
    // What little a file has to say of each was so many settings in memory.
    (1..50_000).for_each(|_| text.push_str(&format!("#{:>300}\n", "")));
    let error = file::parse(&text).unwrap_err();
    assert!(error.is_corruption() && error.to_string().contains("families"), "{error}");
    let (env, directory) = (Env::memory(), Path::new("/db"));
    env.fs.create_directory(directory).unwrap();
    let comment = [b"#", vec![b'-'; 65 << 20].as_slice(), b"\n"].concat();
    let file = env.fs.create_writable(&directory.join("OPTIONS-000005"), IoMode::Buffered).unwrap();
    file.write_vectored_at(0, &[&comment, text.as_bytes()]).unwrap();
    assert_eq!(load_latest(&env, directory).unwrap().unwrap().families.len(), 50_000);
}

/// Each name of a table of another kind made a sentence with the whole title of its section: a file
/// of 1 MiB made 64 GiB.
#[test]
fn of_very_much_that_is_not_known_the_first_is_kept() {
    let title = "x".repeat(1 << 19);
    let names: String = (0..1 << 17).map(|number| format!("\u{e4}{number}=1\n")).collect();
    let other = format!("[TableOptions/{title} \"default\"]\n{names}");
    let newer = format!(
        "[Version]\nrocksdb_version=99.0\n[DBOptions]\n{title}=1\n{names}[CFOptions \"default\"]\n"
    );
    let read = file::parse(&(newer + &other)).unwrap();
    let warnings = read.warnings();
    assert_eq!(warnings.len(), 1000 + 1 + 1);
    assert!(warnings.iter().all(|sentence| sentence.len() < 300), "{}", warnings[0].len());
    assert!(
        warnings[0].starts_with("option 'xxx") && warnings[0].contains("x..=1' is unknown"),
        "{}",
        warnings[0]
    );
    assert!(warnings[1000].starts_with("section [TableOptions/xxx"), "{}", warnings[1000]);
    let not_kept = 2 * (1 << 17) - 2 * 999;
    assert_eq!(
        warnings[1001],
        format!("{not_kept} more names are unknown, without effect and not written again")
    );
    assert_eq!(read.options.kept_sections[0].settings.len(), 999);
}

/// Of a name that stands there twice the first value was written down again where it was not acted
/// on, and the last where it was.
#[test]
fn the_last_value_counts() {
    let text = "[DBOptions]\nmax_background_jobs=0\nmax_background_jobs=5\nmax_file_opening_threads=7\n\
                max_file_opening_threads=0\n[CFOptions \"default\"]\n\
                inplace_update_support=true\ninplace_update_num_locks=3\ninplace_update_support=false\n";
    let loaded = file::parse(text).unwrap();
    assert_eq!(loaded.options.db.max_background_jobs, 5);
    let written = file::print(&loaded.options, &[("default", &loaded.families[0].1)]);
    assert!(written.contains("max_background_jobs=5\n"), "{written}");
    assert!(written.contains("max_file_opening_threads=0\n"), "{written}");
    assert!(!written.contains("inplace_update_support=true"), "{written}");
}

/// RocksDB acts on them, and finds them again in the OPTIONS file.
#[test]
fn what_has_no_effect_is_accepted_and_kept_for_rocksdb() {
    let of_database = [("max_file_opening_threads", "7"), ("skip_stats_update_on_db_open", "true")];
    let of_family =
        [("max_write_buffer_size_to_maintain", "-1"), ("force_consistency_checks", "false")];
    let all = || of_database.into_iter().chain(of_family);
    let mut options = Options::default();
    all().for_each(|(name, value)| options.set(name, value).unwrap());
    let written = file::print(&options, &[(DEFAULT_COLUMN_FAMILY_NAME, &options.cf)]);
    let read = file::parse(&written).unwrap();
    for (name, value) in all() {
        assert!(written.contains(&format!("\n  {name}={value}\n")), "{name}: {written}");
        let note = format!("option '{name}={value}' is known but has no effect");
        assert!(
            options.warnings().contains(&note) && read.options.warnings().contains(&note),
            "{name}"
        );
        assert!(options.set(name, "neither").is_err(), "{name}");
    }
    assert_eq!(
        (read.options.kept, read.options.cf.kept),
        (options.kept.clone(), options.cf.kept.clone())
    );
    let defaults = ["16", "false", "0", "true"];
    all().zip(defaults).for_each(|((name, _), default)| options.set(name, default).unwrap());
    assert_eq!(options.warnings(), [""; 0]);
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    for text in [
        "partition_filters=true",
        "index_type=kHashSearch",
        "format_version=9",
        "blob_garbage_collection_age_cutoff=1.5",
        "max_bytes_for_level_multiplier_additional=1:0",
    ] {
        let mut options = Options::default();
        options.set_all(text).unwrap();
        let name = text.split('=').next().unwrap();
        let error = options.validate().unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    Options::default().validate_for_writing().unwrap();
}

#[test]
fn sanitizing_puts_triggers_in_order() {
    let mut family = ColumnFamilyOptions::default();
    family.level0_file_num_compaction_trigger = 50;
    family.num_levels = 1;
    family.ttl = u64::MAX - 1;
    let mended = family.sanitized();
    assert_eq!(
        (mended.level0_slowdown_writes_trigger, mended.level0_stop_writes_trigger),
        (50, 50)
    );
    assert_eq!((mended.num_levels, mended.ttl), (2, 2_592_000));

    // Runs of unlike sizes, no more than the trigger, stay as they are: who waited for fewer waited
    // forever.
    family.compaction_style = CompactionStyle::Universal;
    let mended = family.sanitized();
    assert_eq!(
        (mended.level0_slowdown_writes_trigger, mended.level0_stop_writes_trigger),
        (51, 51)
    );

    // Nor does anybody wait for less than an empty level 0.
    for style in [CompactionStyle::Level, CompactionStyle::Universal] {
        family.compaction_style = style;
        family.level0_file_num_compaction_trigger = 0;
        family.level0_slowdown_writes_trigger = -1;
        family.level0_stop_writes_trigger = 0;
        let mended = family.sanitized();
        assert!(mended.level0_slowdown_writes_trigger > 0 && mended.level0_stop_writes_trigger > 0);
    }
}
