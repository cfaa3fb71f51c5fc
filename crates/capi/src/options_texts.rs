//! Options that the engine knows by RocksDB's texts, and C by numbers or as texts.

use std::ffi::c_char;

use flagstone::options::Temperature;

use crate::abi::Out;
use crate::api::c_api;
use crate::options::{Options, lend};
use crate::refused::Refuses;

/// RocksDB's numbers and texts of the tiers of caches.
const CACHE_TIERS: &[(i32, &str)] =
    &[(0, "kVolatileTier"), (1, "kVolatileCompressedTier"), (2, "kNonVolatileBlockTier")];

/// The temperature that has this number.
pub(crate) fn temperature_of(number: i32) -> Option<Temperature> {
    let mut known = Temperature::NAMES.iter().map(|(_, temperature)| *temperature);
    known.find(|temperature| i32::from(temperature.as_byte()) == number)
}

impl Options {
    fn set_text(&mut self, name: &'static str, number: i32, texts: &[(i32, &str)]) {
        match texts.iter().find(|(of_text, _)| *of_text == number) {
            Some((_, text)) => {
                self.accept(name);
                self.set_known(name, text);
            }
            None => self.refuse_number(name, number),
        }
    }

    fn number_of_text(&self, name: &str, texts: &[(i32, &str)]) -> i32 {
        let known = self.known(name);
        let known =
            || texts.iter().find(|(_, text)| *text == known).map_or(0, |(number, _)| *number);
        self.refused().number(name).unwrap_or_else(known)
    }

    /// The temperature with that number; `None` if there is none, which fails the opening.
    fn temperature_of(&mut self, name: &'static str, number: i32) -> Option<Temperature> {
        let found = temperature_of(number);
        match found {
            Some(_) => self.accept(name),
            None => self.refuse_number(name, number),
        }
        found
    }

    fn number_of(&self, name: &str, temperature: Temperature) -> i32 {
        self.refused().number(name).unwrap_or_else(|| temperature.as_byte().into())
    }
}

c_api! {
    fn rocksdb_options_set_default_temperature(o: &mut Options, number: i32) {
        if let Some(temperature) = o.temperature_of("default_temperature", number) {
            o.rdb.db.cf.settings.default_temperature = temperature;
        }
    }

    fn rocksdb_options_get_default_temperature(o: &Options) -> i32 {
        o.number_of("default_temperature", o.rdb.db.cf.settings.default_temperature)
    }

    fn rocksdb_options_set_default_write_temperature(o: &mut Options, number: i32) {
        if let Some(temperature) = o.temperature_of("default_write_temperature", number) {
            o.rdb.db.cf.settings.default_write_temperature = temperature;
        }
    }

    fn rocksdb_options_get_default_write_temperature(o: &Options) -> i32 {
        o.number_of("default_write_temperature", o.rdb.db.cf.settings.default_write_temperature)
    }

    fn rocksdb_options_set_last_level_temperature(o: &mut Options, number: i32) {
        if let Some(temperature) = o.temperature_of("last_level_temperature", number) {
            o.rdb.db.cf.settings.last_level_temperature = temperature;
        }
    }

    fn rocksdb_options_get_last_level_temperature(o: &Options) -> i32 {
        o.number_of("last_level_temperature", o.rdb.db.cf.settings.last_level_temperature)
    }

    fn rocksdb_options_set_metadata_write_temperature(o: &mut Options, number: i32) {
        if let Some(temperature) = o.temperature_of("metadata_write_temperature", number) {
            o.rdb.db.db.metadata_write_temperature = temperature;
        }
    }

    fn rocksdb_options_get_metadata_write_temperature(o: &Options) -> i32 {
        o.number_of("metadata_write_temperature", o.rdb.db.db.metadata_write_temperature)
    }

    fn rocksdb_options_set_wal_write_temperature(o: &mut Options, number: i32) {
        if let Some(temperature) = o.temperature_of("wal_write_temperature", number) {
            o.rdb.db.db.wal_write_temperature = temperature;
        }
    }

    fn rocksdb_options_get_wal_write_temperature(o: &Options) -> i32 {
        o.number_of("wal_write_temperature", o.rdb.db.db.wal_write_temperature)
    }

    fn rocksdb_options_set_lowest_used_cache_tier(o: &mut Options, number: i32) {
        o.set_text("lowest_used_cache_tier", number, CACHE_TIERS);
    }

    fn rocksdb_options_get_lowest_used_cache_tier(o: &Options) -> i32 {
        o.number_of_text("lowest_used_cache_tier", CACHE_TIERS)
    }

    fn rocksdb_options_set_daily_offpeak_time_utc(o: &mut Options, text: cstr) {
        o.set_known("daily_offpeak_time_utc", &text.to_string_lossy());
    }

    fn rocksdb_options_get_daily_offpeak_time_utc(
        o: &Options, len: Out<usize>
    ) -> *const c_char {
        lend(o.known("daily_offpeak_time_utc"), len)
    }

    fn rocksdb_options_set_db_host_id(o: &mut Options, text: cstr) {
        o.set_known("db_host_id", &text.to_string_lossy());
    }

    fn rocksdb_options_get_db_host_id(o: &Options, len: Out<usize>) -> *const c_char {
        lend(o.known("db_host_id"), len)
    }

    fn rocksdb_options_calculate_sst_write_lifetime_hint_set_add(o: &mut Options, style: i32) {
        o.aside.lifetime_hints.insert(style);
    }

    fn rocksdb_options_calculate_sst_write_lifetime_hint_set_remove(o: &mut Options, style: i32) {
        o.aside.lifetime_hints.remove(&style);
    }

    fn rocksdb_options_calculate_sst_write_lifetime_hint_set_clear(o: &mut Options) {
        o.aside.lifetime_hints.clear();
    }

    fn rocksdb_options_calculate_sst_write_lifetime_hint_set_contains(
        o: &Options, style: i32
    ) -> u8 {
        o.aside.lifetime_hints.contains(&style).into()
    }

    fn rocksdb_options_calculate_sst_write_lifetime_hint_set_count(o: &Options) -> usize {
        o.aside.lifetime_hints.len()
    }
}
