//! Changing the shape of a column family's tree, number of levels and compaction style: its tables
//! are gathered where the new shape takes them, then the database is opened with the new options.

use flagstone::options::{
    BottommostLevelCompaction, ColumnFamilyOptions, CompactRangeOptions, CompactionStyle, Options,
};

use crate::arguments::{Common, Place};
use crate::database::{self, Access, OpenOptions};
use crate::failure::Failure;
use crate::progress::following;

/// The shape of a family now.
pub struct Shape {
    /// By its options.
    pub num_levels: i32,
    /// By its options.
    pub style: CompactionStyle,
    /// From the first level to the last that holds tables.
    pub levels_in_use: usize,
}

impl Shape {
    /// Flushes what is in WALs, and looks.
    pub fn of(common: &Common, place: &Place) -> Result<Self, Failure> {
        let db = database::open(common, &place.db, Access::Write)?;
        let family = database::family(&db, &place.cf)?;
        db.flush_all()?;
        let files = db.live_files().into_iter();
        let own = files.filter(|file| file.column_family == family.name());
        let levels_in_use = own.filter_map(|file| file.level).map(|level| level + 1).max();
        let options = family.options();
        let (num_levels, style) = (options.num_levels, options.compaction_style);
        db.close()?;
        Ok(Self { num_levels, style, levels_in_use: levels_in_use.unwrap_or(0) })
    }

    /// The last level by its options.
    pub fn last_level(&self) -> u8 {
        u8::try_from(self.num_levels - 1).unwrap_or(0)
    }
}

/// Refuses a family that keeps its last level apart: not all of it can be gathered in one level.
pub fn check_gathers(common: &Common, place: &Place) -> Result<(), Failure> {
    let (_, families): (Options, Vec<(String, ColumnFamilyOptions)>) =
        database::options(common, &place.db, Access::Write)?;
    let Some((_, family)) = families.iter().find(|(name, _)| *name == place.cf) else {
        return Ok(());
    };
    let apart = if family.cf_allow_ingest_behind {
        "cf_allow_ingest_behind=true keeps the last level for tables that are ingested behind all others; set it to false"
    } else if family.preclude_last_level_data_seconds > 0 {
        "preclude_last_level_data_seconds keeps young entries out of the last level; set it to 0"
    } else {
        return Ok(());
    };
    Err(Failure::Usage(format!(
        "column family '{}' cannot be gathered in one level: {apart} (flagstone compact --set), and try again",
        place.cf
    )))
}

/// Compacts all of a family into one level.
pub fn gather(common: &Common, place: &Place, level: u8) -> Result<(), Failure> {
    let db = database::open(common, &place.db, Access::Write)?;
    let family = database::family(&db, &place.cf)?;
    // They would move tables down again, where levels grow from the last.
    let held = db.hold_automatic_compactions(&family)?;
    let options = CompactRangeOptions {
        change_level: true,
        target_level: i32::from(level),
        bottommost_level_compaction: BottommostLevelCompaction::IfHaveCompactionFilter,
        ..CompactRangeOptions::default()
    };
    following(|control| {
        let options = CompactRangeOptions { control: Some(control.clone()), ..options };
        db.compact_range(&family, None, None, &options)
    })?;
    db.close()?;
    drop(held);
    Ok(())
}

/// Whether the engine takes these options of a family.
pub fn check(common: &Common, place: &Place, settings: &[(&str, &str)]) -> Result<(), Failure> {
    changed(common, place, settings).map(drop)
}

/// Opens the database with these options of a family, so that they are in its OPTIONS file.
pub fn set(common: &Common, place: &Place, settings: &[(&str, &str)]) -> Result<(), Failure> {
    let options = changed(common, place, settings)?;
    let db = database::open_with(options, &place.db, Access::Write)?;
    Ok(db.close()?)
}

fn changed(
    common: &Common,
    place: &Place,
    settings: &[(&str, &str)],
) -> Result<OpenOptions, Failure> {
    let (mut options, mut families): (Options, Vec<(String, ColumnFamilyOptions)>) =
        database::options(common, &place.db, Access::Write)?;
    let found = families.iter_mut().find(|(name, _)| *name == place.cf);
    // The name was looked up before, where the database was open.
    let Some((_, family)) = found else { return Ok((options, families)) };
    for (name, value) in settings {
        family.set(name, value)?;
    }
    let refused = |error| Failure::Usage(format!("column family '{}': {error}", place.cf));
    family.validate_for_writing().map_err(refused)?;
    if let Some((_, default)) = families.first() {
        options.cf = default.clone();
    }
    options.validate().map_err(refused)?;
    Ok((options, families))
}
