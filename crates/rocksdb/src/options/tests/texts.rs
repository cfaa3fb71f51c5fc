use std::path::Path;

use flagstone::db::Db;
use flagstone::options as engine;

use super::options_file;
use crate::cache::Cache;
use crate::env::Env;
use crate::error::ErrorKind;
use crate::options::{Options, has_no_effect};

fn refusal(text: &str) -> String {
    match Options::default().get_options_from_string(text) {
        Ok(_) => panic!("'{text}' was taken"),
        Err(error) => error.into_string(),
    }
}

#[test]
fn options_are_set_by_name() {
    let mut options = Options::default();
    options.set_use_fsync(true);
    let text =
        "use_fsync=false; write_buffer_size=1M;compression_opts={level=3;max_dict_bytes=4;};";
    let mut changed = options.get_options_from_string(text).unwrap();
    assert!(options.get_use_fsync() && !changed.get_use_fsync());
    let family = &changed.db.cf;
    assert_eq!((family.write_buffer_size, family.compression_opts.level), (1 << 20, 3));
    assert_eq!(family.compression_opts.max_dict_bytes, 4);
    let kept = changed.get_options_from_string("allow_mmap_writes=true").unwrap();
    assert!(options_file(&kept).contains("\n  allow_mmap_writes=true\n"));
}

#[test]
fn wrong_texts_are_refused() {
    assert!(refusal("notarealoptionstring").starts_with("Invalid argument: expected name=value"));
    assert!(refusal("no_such_option=1").starts_with("Invalid argument: there is no option"));
    assert!(refusal("num_levels=few").starts_with("Invalid argument: option 'num_levels'"));
    assert!(refusal("best_efforts_recovery=true").starts_with("Not implemented: "));
    assert!(refusal("use_fsync=false\0").contains("must not contain NUL"));
}

#[test]
fn names_without_effect_are_those_of_settings_that_the_engine_knows() {
    assert!(has_no_effect("report_bg_io_stats") && has_no_effect("use_fsync"));
    // They were refused, though nothing that is read depends on them.
    assert!(has_no_effect("uniform_cv_threshold") && has_no_effect("index_block_search_type"));
    assert!(!has_no_effect("write_buffer_size") && !has_no_effect("allow_2pc"));
}

/// A database in memory whose OPTIONS file is then one of `text`.
fn database_with_file(options: &engine::Options, text: Option<&str>) -> Env {
    let env = Env::mem_env().unwrap();
    let mut options = engine::Options { env: env.engine.clone(), ..options.clone() };
    options.create_if_missing = true;
    let db = Db::open("/db", &options).unwrap();
    db.create_column_family("words", &options.cf).unwrap();
    db.close().unwrap();
    if let Some(text) = text {
        let fs = &env.engine.fs;
        let file = fs
            .create_writable(Path::new("/db/OPTIONS-000900"), flagstone::env::IoMode::Buffered)
            .unwrap();
        file.write_at(0, text.as_bytes()).unwrap();
    }
    env
}

fn load(env: &Env, ignore_unknown: bool) -> Result<(Options, Vec<String>), crate::error::Error> {
    let cache = Cache::new_lru_cache(1 << 20);
    let (options, families) = Options::load_latest("/db", env.clone(), ignore_unknown, cache)?;
    let names = families.iter().map(|family| family.name().to_string()).collect();
    Ok((options, names))
}

#[test]
fn the_options_of_a_database_are_loaded_with_its_families() {
    let mut options = Options::default();
    options.set_ttl(77);
    options.set_use_fsync(true);
    let env = database_with_file(&options.engine().unwrap(), None);
    let (loaded, families) = load(&env, false).unwrap();
    assert_eq!(families, ["default", "words"]);
    assert_eq!(loaded.db.cf.ttl, 77);
    assert!(loaded.get_use_fsync());
    assert_eq!(loaded.db.cf.blob_write_mode, engine::BlobWriteMode::Flush);
    assert!(loaded.engine().unwrap().block_cache.is_some());
}

#[test]
fn a_file_of_rocksdb_leaves_no_default_of_the_engine() {
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/options/OPTIONS-11.8.1");
    let text = std::fs::read_to_string(fixture).unwrap();
    let env = database_with_file(&Options::default().engine().unwrap(), Some(&text));
    let (loaded, families) = load(&env, false).unwrap();
    assert_eq!(families, ["default", "words"]);
    assert_eq!(loaded.db.memory_budget, engine::MemoryBudget::None);
    assert_eq!(loaded.db.cf.blob_write_mode, engine::BlobWriteMode::Flush);
    assert_eq!(loaded.db.cf.max_space_amplification, 0.0);
}

#[test]
fn an_unknown_option_is_passed_over_only_if_asked_for() {
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/options/OPTIONS-11.8.1");
    let text = std::fs::read_to_string(fixture).unwrap();
    let text = text.replacen("[DBOptions]\n", "[DBOptions]\n  of_the_future=1\n", 1);
    let env = database_with_file(&Options::default().engine().unwrap(), Some(&text));
    assert!(load(&env, true).is_ok());
    let Err(error) = load(&env, false) else { panic!("it was taken") };
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.as_ref().contains("of_the_future"), "{error}");
}

#[test]
fn without_an_options_file_there_is_nothing_to_load() {
    let env = Env::mem_env().unwrap();
    env.engine.fs.create_directory(Path::new("/db")).unwrap();
    let Err(error) = load(&env, true) else { panic!("there is one") };
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
