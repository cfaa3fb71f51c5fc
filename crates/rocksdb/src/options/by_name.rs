//! Options as texts, and as OPTIONS files have them.

use std::path::Path;

use flagstone::options::known::{self, OWN};
use flagstone::options::{self as engine, KeptSetting, former, names};

use super::{Options, defaults, has_no_effect, without_effect};
use crate::cache::Cache;
use crate::column_family::ColumnFamilyDescriptor;
use crate::env::Env;
use crate::error::Error;

/// The largest OPTIONS file that is looked into.
const FILE_SIZE_MAX: u64 = 1 << 30;

impl Options {
    /// Reads the newest OPTIONS file of the database in `path`: the options of the database, and
    /// its column families with theirs. All families get `cache` as their block cache.
    ///
    /// What is the program's own (comparator, merge operator, prefix extractor, compaction filter)
    /// it must give again; the opening asks for what is missing.
    ///
    /// # Errors
    /// `NotFound` if there is no OPTIONS file; `Invalid argument` for a line that makes no sense,
    /// and without `ignore_unknown_options` for an option that is not known; `Corruption`, `IO
    /// error`.
    pub fn load_latest<P: AsRef<Path>>(
        path: P,
        env: Env,
        ignore_unknown_options: bool,
        cache: Cache,
    ) -> Result<(Self, Vec<ColumnFamilyDescriptor>), Error> {
        let path = path.as_ref();
        let loaded = match engine::load_latest(&env.engine, path) {
            Err(error) if error.is_not_found() => None,
            loaded => loaded?,
        };
        let loaded = loaded.ok_or_else(|| {
            Error::new(format!("NotFound: no OPTIONS file in {}", path.display()))
        })?;
        if !ignore_unknown_options {
            check_names(&loaded)?;
        }
        let text = flagstone::env::read_file(env.engine.fs.as_ref(), &loaded.path, FILE_SIZE_MAX)?;
        let text = String::from_utf8_lossy(&text);
        let engine::LoadedOptions { options, families, .. } = loaded;
        let of_family = |family: engine::ColumnFamilyOptions| {
            let mut loaded = Self { db: options.clone(), ..Self::default() };
            loaded.db.cf = family;
            loaded.as_rocksdb_would_read(&text);
            loaded.set_env(&env);
            loaded.block_cache = Some(cache.clone());
            loaded
        };
        let descriptors: Vec<_> = families
            .into_iter()
            .map(|(name, family)| ColumnFamilyDescriptor::new(name, of_family(family)))
            .collect();
        Ok((of_family(options.cf.clone()), descriptors))
    }

    /// Options that only the engine has are as by default here where the file, which RocksDB may
    /// have written, does not name them.
    fn as_rocksdb_would_read(&mut self, text: &str) {
        if OWN.iter().any(|name| text.contains(&format!("# flagstone:{name}="))) {
            return;
        }
        defaults::own_of_database(&mut self.db.db);
        defaults::own_of_family(&mut self.db.cf.settings);
        self.db.block_cache_size = Some(defaults::BLOCK_CACHE_SIZE);
    }

    /// These options with others set by name: `name=value;name=value`, by RocksDB's names and
    /// texts. A struct is written in braces: `compression_opts={level=3;}`.
    ///
    /// # Errors
    /// `Invalid argument` for an unknown name or a wrong value, `Not implemented` for what cannot
    /// be had. For a NUL byte the text of the error does not begin with its kind, as in the rocksdb
    /// crate.
    pub fn get_options_from_string<S: AsRef<str>>(&mut self, opts_str: S) -> Result<Self, Error> {
        let text = opts_str.as_ref();
        if let Some(at) = text.find('\0') {
            return Err(Error::new(format!(
                "options string must not contain NUL (0x00) bytes: one is at position {at}"
            )));
        }
        let mut options = self.clone();
        for pair in pairs(text) {
            let (name, value) = pair.split_once('=').ok_or_else(|| {
                Error::invalid_argument(format!("expected name=value, found '{pair}'"))
            })?;
            options.set_by_name(name.trim(), value.trim())?;
        }
        Ok(options)
    }

    fn set_by_name(&mut self, name: &str, value: &str) -> Result<(), Error> {
        if has_no_effect(name)
            && let Some(known) = known::find(name)
        {
            let kept = match known.section {
                engine::Section::Db => &mut self.db.kept,
                _ => &mut self.db.cf.kept,
            };
            without_effect::keep(kept, name, value);
            return Ok(());
        }
        self.db.set(name, value)?;
        // A cache by name takes the place of one that was given.
        match name {
            "blob_cache" => self.blob_cache = None,
            "block_based_table_factory" | "table_factory" if value.contains("block_cache=") => {
                self.block_cache = None;
            }
            "block_cache" => self.block_cache = None,
            _ => {}
        }
        Ok(())
    }
}

/// The parts of `a=1;b={c=2;d=3;}` between semicolons outside braces; blank ones are left out.
fn pairs(text: &str) -> Vec<&str> {
    let mut depth = 0i32;
    let is_end = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ';' && depth <= 0
    };
    text.split(is_end).map(str::trim).filter(|pair| !pair.is_empty()).collect()
}

/// Refuses an OPTIONS file that has an option of no known release.
fn check_names(loaded: &engine::LoadedOptions) -> Result<(), Error> {
    let families = loaded.families.iter().flat_map(|(_, family)| &family.kept);
    let is_known = |kept: &&KeptSetting| {
        let name = kept.name.as_str();
        known::find(name).is_some()
            || former::find(name).is_some()
            || kept.taken_for.is_some()
            || names::rows().any(|row| row.name == name)
            || !kept.in_comment
    };
    let mut unknown = loaded.options.kept.iter().chain(families).filter(|kept| !is_known(kept));
    let sections = loaded.options.kept_sections.first().map(ToString::to_string);
    let found = unknown.next().map(ToString::to_string).or(sections);
    match found.or_else(|| loaded.unknown.first().cloned()) {
        Some(what) => Err(Error::invalid_argument(what)),
        None => Ok(()),
    }
}
