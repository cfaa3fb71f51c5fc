//! The text of `file_temperature_age_thresholds`.
//!
//! ```text
//! {{temperature=kWarm;age=3600;}:{temperature=kCold;age=86400;}}
//! ```

use super::choices::CompactionStyle;
use super::nested::nested_settings;
use super::table::{Section, settings};
use super::text::{split_list, without_braces};
use super::value::{NamedChoice, RandomBits, SettingValue};
use crate::base::{Error, Result, Temperature};

impl NamedChoice for Temperature {
    const NAMES: &'static [(&'static str, Self)] = Self::NAMES;
}

settings! {
    /// From which age on a table has which temperature.
    pub struct FileTemperatureAge in Section::Nested;

    /// Temperature of the table.
    live temperature: Temperature = Temperature::UNKNOWN;
    /// Age in seconds, counted from the writing of its newest key.
    live age: u64 = 0;
}

nested_settings!(FileTemperatureAge);

/// Thresholds, the smallest age first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileTemperatureAges(pub Vec<FileTemperatureAge>);

impl FileTemperatureAges {
    /// Thresholds as temperatures with their ages in seconds.
    pub fn of(thresholds: &[(Temperature, u64)]) -> Self {
        Self(
            thresholds
                .iter()
                .map(|&(temperature, age)| FileTemperatureAge { temperature, age })
                .collect(),
        )
    }

    /// The temperature of a table of that age; `None` if any will do.
    pub(crate) fn temperature_at(&self, age: u64) -> Option<Temperature> {
        self.0.iter().rfind(|threshold| threshold.age <= age).map(|threshold| threshold.temperature)
    }

    /// That they ascend, and that tables have ages: those of deeper levels, and of other styles,
    /// have none.
    pub(crate) fn check(&self, style: CompactionStyle, num_levels: i32) -> Result<()> {
        if !self.0.is_sorted_by(|younger, older| younger.age < older.age) {
            return Err(Error::invalid_argument(
                "file_temperature_age_thresholds must have ascending ages",
            ));
        }
        if self.0.is_empty() || style == CompactionStyle::Fifo && num_levels == 1 {
            return Ok(());
        }
        Err(Error::not_supported(
            "file_temperature_age_thresholds needs FIFO compaction in one level: set compaction_style to \
             kCompactionStyleFIFO and num_levels to 1",
        ))
    }
}

impl SettingValue for FileTemperatureAges {
    fn assign(&mut self, text: &str) -> Result<()> {
        let is_list = text.replace(char::is_whitespace, "").starts_with("{{");
        let list = if is_list || text == "{}" { without_braces(text) } else { text };
        self.0 = split_list(list)?
            .into_iter()
            .map(|element| {
                let mut threshold = FileTemperatureAge::default();
                threshold.assign(element).map(|()| threshold)
            })
            .collect::<Result<_>>()?;
        Ok(())
    }

    fn text(&self) -> String {
        let elements: Vec<_> = self.0.iter().map(SettingValue::text).collect();
        if elements.is_empty() { String::new() } else { format!("{{{}}}", elements.join(":")) }
    }

    fn sample(random: RandomBits<'_>) -> Self {
        let mut drawn: Vec<_> =
            (0..random() % 4).map(|_| FileTemperatureAge::sample(random)).collect();
        drawn.sort_by_key(|threshold| threshold.age);
        drawn.dedup_by_key(|threshold| threshold.age);
        Self(drawn)
    }
}

#[cfg(test)]
mod tests;
