//! Opening a database with options that its tree does not fit yet.
//!
//! 1. Read the MANIFEST: how deep the tables of each family lie.
//! 2. If a family has tables below the levels that its options allow, open the database with the
//!    levels that it has, and compact the family into the last level that is allowed.
//! 3. Open the database with the options.
//!
//! Step 2 writes no OPTIONS file. After a failure or crash in between the newest one is that of the
//! opening before, and the database opens with it; some families may be compacted already.

use crate::base::{Error, Result, counted};
use crate::db::{self, OfflineManifest};
use crate::front::builder::{Builder, Opened, open_by};
use crate::front::database::Db;
use crate::options::{
    self, BottommostLevelCompaction, ColumnFamilyOptions, CompactRangeOptions, CompactionStyle,
};

/// The most that `num_levels` may be.
const LEVELS_MAX: i32 = 64;

/// A file size that no table comes to.
const WHOLE: u64 = 1 << 50;

/// A family whose tables do not lie where its options allow them.
struct Misfit<'a> {
    family: &'a Opened,
    /// From the first level to the last that has tables.
    levels_in_use: usize,
    /// Into which all is compacted.
    target: usize,
}

impl Builder {
    /// Opens the database, after compacting families whose tables lie deeper than a lower
    /// `num_levels` allows, each into its last level. All other changes of the compaction style, of
    /// file sizes and of the number of levels need no such step, and [`Builder::open`] does.
    /// Rewrites each such family as a whole; the result needs room beside it.
    ///
    /// After a failure or a crash the OPTIONS file still has the options of the opening before, and
    /// the database opens with them. Some of the families may be compacted already.
    ///
    /// ```
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path();
    /// # use flagstone::{Db, options::CompactionStyle};
    /// let db = Db::open(path)?;
    /// db.put("ada", "1815")?;
    /// db.compact()?;
    /// db.close()?;
    /// let db = Db::builder(path)
    ///     .options(|options| {
    ///         options.cf.compaction_style = CompactionStyle::Universal;
    ///         options.cf.num_levels = 3;
    ///     })
    ///     .open_reshaped()?;
    /// assert_eq!(db.get("ada")?.unwrap(), "1815");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Builder::open`]; `NotSupported` if a family with tables below level 0 becomes FIFO,
    /// because one table with all of its data would be dropped as a whole; `NotSupported` if not
    /// all of a family goes into one level (`preclude_last_level_data_seconds`,
    /// `cf_allow_ingest_behind`), and `Aborted` if a family with one level needs several tables
    /// (`sst_partitioner_factory`); those of compactions.
    #[doc(alias = "OptionChangeMigration")]
    pub fn open_reshaped(self) -> Result<Db> {
        let families = self.all_families()?;
        let misfits = misfits(&self, &families)?;
        if !misfits.is_empty() {
            fit(&self, &families, &misfits)?;
        }
        self.open()
    }
}

/// The families that the options do not fit.
fn misfits<'a>(builder: &Builder, families: &'a [Opened]) -> Result<Vec<Misfit<'a>>> {
    let (path, options) = (builder.path(), builder.shown_options());
    let existing = db::existing_families(&options.env, path)?;
    if existing.is_empty() {
        return Ok(Vec::new());
    }
    let existing = families.iter().filter(|(name, ..)| existing.contains(name));
    let deep =
        existing.clone().map(|(name, wanted, _)| (name.as_str(), levels(wanted, LEVELS_MAX)));
    let manifest = OfflineManifest::open(path, options, &deep.collect::<Vec<_>>())?;
    let tables = manifest.tables();
    let mut misfits = Vec::new();
    for family in existing {
        let (name, wanted, _) = family;
        let own = tables.iter().filter(|table| table.column_family == *name);
        let levels_in_use = own.map(|table| table.level + 1).max().unwrap_or(0);
        if wanted.compaction_style == CompactionStyle::Fifo {
            if levels_in_use > 1 && stored_style(builder, name) != Some(CompactionStyle::Fifo) {
                return Err(refuse_fifo(name));
            }
            // It drops tables of deeper levels where they are, the oldest first.
            continue;
        }
        let allowed = usize::try_from(wanted.num_levels).unwrap_or(1).max(1);
        if levels_in_use > allowed {
            misfits.push(Misfit { family, levels_in_use, target: allowed - 1 });
        }
    }
    Ok(misfits)
}

/// The compaction style of a family by the OPTIONS file, if that can be read.
fn stored_style(builder: &Builder, name: &str) -> Option<CompactionStyle> {
    let env = &builder.shown_options().env;
    let (stored, _) = options::load_readable(env, builder.path()).ok()?;
    let mut families = stored?.families.into_iter();
    families.find(|(listed, _)| listed == name).map(|(_, family)| family.compaction_style)
}

/// FIFO compaction drops whole tables, by bytes and by age, and counts blob files.
fn refuse_fifo(name: &str) -> Error {
    Error::not_supported(format!(
        "column family '{name}' has tables below level 0 and is not compacted into one for FIFO compaction, which would \
         soon drop that as a whole; open it with Builder::open, which leaves its tables where they are, or copy \
         its entries into a new FIFO family"
    ))
}

/// The options with another number of levels, by which nothing is dropped.
fn levels(family: &ColumnFamilyOptions, num_levels: i32) -> ColumnFamilyOptions {
    let mut family = family.clone();
    family.num_levels = num_levels;
    if family.compaction_style == CompactionStyle::Fifo {
        family.compaction_style = CompactionStyle::Level;
        family.compaction_options_fifo.file_temperature_age_thresholds = Default::default();
    }
    family
}

/// Compacts what does not fit. Families that are new are made later, by the opening that writes an
/// OPTIONS file.
fn fit(builder: &Builder, families: &[Opened], misfits: &[Misfit<'_>]) -> Result<()> {
    let (path, options) = (builder.path(), builder.shown_options());
    let existing = db::existing_families(&options.env, path)?;
    let existing = families.iter().filter(|(name, ..)| existing.contains(name));
    let listed = existing.map(|(name, wanted, ttl)| {
        let Some(misfit) = misfits.iter().find(|misfit| misfit.family.0 == *name) else {
            return (name.clone(), wanted.clone(), *ttl);
        };
        let in_use = i32::try_from(misfit.levels_in_use).unwrap_or(LEVELS_MAX);
        let mut family = levels(wanted, in_use.max(wanted.num_levels));
        family.compaction_style = CompactionStyle::Level;
        // They would move tables down again before the database is closed.
        family.disable_auto_compactions = true;
        if misfit.target == 0 {
            // Several tables do not go to level 0.
            family.target_file_size_base = WHOLE;
            family.target_file_size_multiplier = 1;
            family.max_compaction_bytes = WHOLE;
        }
        (name.clone(), family, *ttl)
    });
    let listed: Vec<Opened> = listed.collect();
    let db = open_by(options, &listed, |listed| {
        db::Db::open_without_options_file(path, options, listed)
    })?;
    for misfit in misfits {
        gather(&db, misfit)?;
    }
    db.close()
}

/// Compacts all of a family into its target.
fn gather(db: &Db, misfit: &Misfit<'_>) -> Result<()> {
    let name = &misfit.family.0;
    let family = db.column_family(name)?;
    let compact = CompactRangeOptions {
        change_level: true,
        target_level: misfit.target as i32,
        bottommost_level_compaction: match misfit.target {
            0 => BottommostLevelCompaction::Force,
            _ => BottommostLevelCompaction::default(),
        },
        max_subcompactions: 1,
        ..CompactRangeOptions::default()
    };
    family.compact_range::<&[u8]>(.., &compact)?;
    let deepest = db
        .live_files()
        .into_iter()
        .filter(|file| file.column_family == *name)
        .filter_map(|file| file.level)
        .max();
    if deepest.is_some_and(|level| level > misfit.target) {
        let levels = counted(misfit.target + 1, "level");
        return Err(Error::not_supported(format!(
            "column family '{name}' cannot be compacted into {levels}: preclude_last_level_data_seconds or \
             cf_allow_ingest_behind keeps some of it apart; set them to 0 and false"
        )));
    }
    Ok(())
}
