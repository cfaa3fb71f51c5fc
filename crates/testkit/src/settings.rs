//! Options that make small databases behave like large ones, and random choices of all others.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use flagstone::base::Result;
use flagstone::cache::CacheSettings;
use flagstone::env::Env;
use flagstone::options::{BlockCache, ColumnFamilyOptions, InfoLog, Options};

use crate::choices::{CHOICES, Change, Choice, FIFO, Scope};
use crate::components;
use crate::encrypted::encrypted;
use crate::fakes::broken_operator;
use crate::remote::Workers;

/// Options that may have values of our own.
const OURS: [&str; 3] = ["comparator", "compaction_filter", "compaction_filter_factory"];

/// Whether the file LOG is written: `off` or `file`. Not an option by name, since programs choose
/// it by a value.
const INFO_LOG: &str = "info_log";

/// Who compacts: `none` for the database alone, or `workers` of a compaction service.
const SERVICE: &str = "compaction_service";

/// Bytes of the row cache; 0 for none. Not an option by name either.
const ROW_CACHE: &str = "row_cache";

/// Whether files are encrypted: `on` or `off`. Not an option by name either.
pub(crate) const ENCRYPTION: &str = "encryption";

/// Options with tiny buffers and files, so that a few hundred writes go through flushes and
/// compactions.
pub fn tiny(env: &Env) -> Options {
    // Where the log is no part of a life, its writes would only be more calls.
    let mut options = Options { env: env.clone(), info_log: InfoLog::Off, ..Options::default() };
    set(
        &mut options,
        &[
            ("create_if_missing", "true"),
            ("create_missing_column_families", "true"),
            ("merge_operator", "stringappend"),
            ("arena_block_size", "1024"),
            ("write_buffer_size", "8192"),
            ("target_file_size_base", "8192"),
            ("max_bytes_for_level_base", "32768"),
            ("level0_file_num_compaction_trigger", "2"),
            ("compression", "kNoCompression"),
            // Whoever wants large values apart says which.
            ("enable_blob_files", "false"),
            ("max_background_jobs", "2"),
            // How much there is of the machine's memory, and who else has a database open, is no
            // part of a history.
            ("memory_budget", "0"),
        ],
    );
    options.cf.merge_operator = options.cf.merge_operator.take().map(broken_operator);
    options
}

/// Sets options by name.
///
/// # Panics
/// If the engine does not take one.
pub fn set(options: &mut Options, changes: &[(&str, &str)]) {
    for (name, value) in changes {
        set_one(options, name, value).unwrap_or_else(|error| panic!("{name}={value}: {error}"));
    }
}

fn set_one(options: &mut Options, name: &str, value: &str) -> Result<()> {
    if name == INFO_LOG {
        options.info_log = if value == "file" { InfoLog::File } else { InfoLog::Off };
        return Ok(());
    }
    if name == SERVICE {
        options.compaction_service = (value == "workers").then(|| Workers::with(options) as _);
        return Ok(());
    }
    if name == ROW_CACHE
        && let Ok(capacity) = value.parse()
    {
        let settings = CacheSettings::with_capacity(capacity);
        options.row_cache = (capacity > 0).then(|| BlockCache::new(&settings));
        return Ok(());
    }
    if name == ENCRYPTION {
        if value == "on" {
            options.env = encrypted(options.env.clone());
        }
        return Ok(());
    }
    options.set(name, value)
}

/// One option away from [`tiny`], of all families or of one. As text: `name=value`,
/// `family/name=value`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// The family; all of them, and the database, if none is named.
    pub family: Option<String>,
    /// As [`Options::set`] takes it.
    pub name: String,
    /// As [`Options::set`] takes it.
    pub value: String,
}

impl Setting {
    fn of(choice: &Choice, family: Option<&str>, random: &mut fastrand::Rng) -> Self {
        let value = choice.values[random.usize(..choice.values.len())].to_string();
        Self { family: family.map(str::to_string), name: choice.name.to_string(), value }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(family) = &self.family {
            write!(f, "{family}/")?;
        }
        write!(f, "{}={}", self.name, self.value)
    }
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("'{text}' is not name=value"))?;
        let (family, name) = match name.split_once('/') {
            Some((family, name)) => (Some(family.to_string()), name),
            None => (None, name),
        };
        Ok(Self { family, name: name.to_string(), value: value.to_string() })
    }
}

/// The options of a database and of each of its families.
#[derive(Clone)]
pub struct Chosen {
    /// Of the database; `cf` for families without settings of their own.
    pub options: Options,
    /// Of the families that have some.
    pub own: BTreeMap<String, ColumnFamilyOptions>,
}

impl Chosen {
    /// [`tiny`] with these settings.
    ///
    /// # Errors
    /// If the engine does not take one, or not all of them together.
    pub fn new(env: &Env, settings: &[Setting]) -> Result<Self> {
        let mut chosen = Self { options: tiny(env), own: BTreeMap::new() };
        let (common, own): (Vec<_>, Vec<_>) =
            settings.iter().partition(|setting| setting.family.is_none());
        common.into_iter().chain(own).try_for_each(|setting| chosen.apply(setting))?;
        chosen.validate()?;
        Ok(chosen)
    }

    /// Those of families come last: they begin with what is common.
    fn apply(&mut self, setting: &Setting) -> Result<()> {
        let Setting { family, name, value } = setting;
        match family {
            None if OURS.contains(&name.as_str()) => {
                components::set(&mut self.options.cf, name, value)
            }
            None => set_one(&mut self.options, name, value),
            Some(family) => {
                let common = &self.options.cf;
                let own = self.own.entry(family.clone()).or_insert_with(|| common.clone());
                components::set(own, name, value)
            }
        }
    }

    fn validate(&self) -> Result<()> {
        self.options.validate_for_writing()?;
        self.own.values().try_for_each(ColumnFamilyOptions::validate_for_writing)?;
        self.own.values().chain([&self.options.cf]).try_for_each(components::check)
    }

    /// Adds a setting, after those that it may follow, unless the engine does not take it together
    /// with them.
    fn add(&mut self, setting: &Setting) -> bool {
        let mut with = self.clone();
        let taken = with.apply(setting).and_then(|()| with.validate()).is_ok();
        if taken {
            *self = with;
        }
        taken
    }

    /// The options of a family.
    pub fn family(&self, name: &str) -> &ColumnFamilyOptions {
        self.own.get(name).unwrap_or(&self.options.cf)
    }

    /// The families as they are opened.
    pub fn listed<'a>(
        &self,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Vec<(&'a str, ColumnFamilyOptions)> {
        names.into_iter().map(|name| (name.as_str(), self.family(name).clone())).collect()
    }
}

/// A choice of settings from a seed. Half of the choices differ from [`tiny`] in a few options,
/// since what breaks in pairs is found sooner where nothing else is in the way; the others in all.
pub fn draw(random: &mut fastrand::Rng, families: &[&str]) -> Vec<Setting> {
    let mut choices: Vec<_> = CHOICES.iter().collect();
    random.shuffle(&mut choices);
    if random.bool() {
        choices.truncate(random.usize(1..=6));
    }
    let mut drawn: Vec<_> =
        choices.iter().map(|choice| Setting::of(choice, None, random)).collect();
    if random.u8(..3) == 0 {
        let of_families: Vec<_> =
            CHOICES.iter().filter(|choice| choice.scope == Scope::Family).collect();
        for _ in 0..random.usize(1..6) {
            let family = families[random.usize(..families.len())];
            let choice = of_families[random.usize(..of_families.len())];
            drawn.push(Setting::of(choice, Some(family), random));
        }
    }
    let mut chosen = Chosen { options: tiny(&Env::memory()), own: BTreeMap::new() };
    drawn.retain(|setting| chosen.add(setting));
    drawn
}

/// All options from a seed, but those that a database keeps for life, that other programs do not
/// know, and that change what it promises, in time, for crashes, or for what is old.
pub fn random(env: &Env, random: &mut fastrand::Rng) -> Options {
    const LEFT_OUT: [&str; 5] = [
        "avoid_flush_during_shutdown",
        "wal_recovery_mode",
        "delayed_write_rate",
        "compaction_filter",
        "compaction_filter_factory",
    ];
    let mut chosen = Chosen { options: tiny(env), own: BTreeMap::new() };
    let is_drawn =
        |choice: &&Choice| choice.change != Change::Never && !LEFT_OUT.contains(&choice.name);
    let mut choices: Vec<_> = CHOICES.iter().filter(is_drawn).collect();
    random.shuffle(&mut choices);
    for choice in choices {
        let setting = Setting::of(choice, None, random);
        if setting.value != FIFO {
            chosen.add(&setting);
        }
    }
    chosen.options
}

/// Changes that a running family (or, if so `scope`d, database) takes, from a seed; some may not go
/// together with what else is set.
pub fn random_changes(
    random: &mut fastrand::Rng,
    scope: Scope,
) -> Vec<(&'static str, &'static str)> {
    let live = |choice: &&Choice| choice.change == Change::Live && choice.scope == scope;
    let changeable: Vec<_> = CHOICES.iter().filter(live).collect();
    (0..random.usize(1..4))
        .map(|_| {
            let choice = changeable[random.usize(..changeable.len())];
            (choice.name, choice.values[random.usize(..choice.values.len())])
        })
        .collect()
}

/// Changes of a running family's sizes and blob files, which go together with whatever else is set.
pub fn random_live(random: &mut fastrand::Rng) -> Vec<(&'static str, &'static str)> {
    const HARMLESS: [&str; 13] = [
        "write_buffer_size",
        "target_file_size_base",
        "max_bytes_for_level_base",
        "level0_file_num_compaction_trigger",
        "disable_auto_compactions",
        "enable_blob_files",
        "min_blob_size",
        "blob_file_size",
        "enable_blob_garbage_collection",
        "blob_garbage_collection_force_threshold",
        "blob_punch_holes",
        "max_space_amplification",
        "burst_space_amplification",
    ];
    let changeable: Vec<_> =
        CHOICES.iter().filter(|choice| HARMLESS.contains(&choice.name)).collect();
    (0..random.usize(1..4))
        .map(|_| {
            let choice = changeable[random.usize(..changeable.len())];
            (choice.name, choice.values[random.usize(..choice.values.len())])
        })
        .collect()
}

/// Changes for a reopening, from a seed; some may not go together with what else is set.
pub fn random_reopening(random: &mut fastrand::Rng, families: &[&str]) -> Vec<Setting> {
    let changeable: Vec<_> =
        CHOICES.iter().filter(|choice| choice.change != Change::Never).collect();
    let count = if random.bool() { 0 } else { random.usize(1..5) };
    (0..count)
        .map(|_| {
            let choice = changeable[random.usize(..changeable.len())];
            let of_one = choice.scope == Scope::Family && random.u8(..4) == 0;
            let family = of_one.then(|| families[random.usize(..families.len())]);
            Setting::of(choice, family, random)
        })
        .collect()
}

#[cfg(test)]
mod tests;
