//! Structs of settings that are the value of one setting: `{a=1;b=2;}`.

use super::known::{NEWER_NESTED, check_nested};
use super::table::Settings;
use super::text::{pairs, without_braces};
use crate::base::{Code, Result, SubCode};

/// Makes a struct of settings the value of a setting.
macro_rules! nested_settings {
    ($name:ident) => {
        impl crate::options::value::SettingValue for $name {
            fn assign(&mut self, text: &str) -> crate::base::Result<()> {
                crate::options::nested::assign(self, text)
            }

            fn text(&self) -> String {
                crate::options::nested::text(self)
            }

            fn sample(random: crate::options::value::RandomBits<'_>) -> Self {
                crate::options::table::Settings::sample_all(random)
            }
        }
    };
}

pub(super) use nested_settings;

/// Assigns `{a=1;b=2;}`; fields that are not named keep their values. A field that is not
/// supported, or of another release, does not keep the others from being taken: an OPTIONS file is
/// read on, and what was refused is reported.
pub(super) fn assign<T: Settings>(target: &mut T, text: &str) -> Result<()> {
    let mut refused = Ok(());
    for (name, value) in pairs(without_braces(text))? {
        let result = match target.assign(name, value) {
            Some(result) => result.map_err(|error| error.context(name)),
            None => check_nested(name, value, T::ROWS),
        };
        match result {
            Err(error) if error.subcode() == SubCode::OtherRelease => refused = Err(error),
            Err(error) if error.code() == Code::NotSupported => refused = refused.and(Err(error)),
            result => result?,
        }
    }
    refused
}

/// The inverse of [`assign`], with all fields but those that only newer versions of RocksDB know
/// and that say nothing.
pub(super) fn text<T: Settings + Default>(settings: &T) -> String {
    let mut out = String::from("{");
    let defaults = T::default();
    for row in T::ROWS {
        let value = settings.text(row.name).expect("every row has a value");
        if NEWER_NESTED.contains(&row.name) && defaults.text(row.name).as_ref() == Some(&value) {
            continue;
        }
        out.extend([row.name, "=", &value, ";"]);
    }
    out + "}"
}
