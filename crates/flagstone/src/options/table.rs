//! The one place where a setting is declared.
//!
//! A row of `settings!` states the documentation, a kind, RocksDB's name, the type, the default,
//! and the valid range. From it follow the struct's field, its default, reading and printing its
//! text, its validation, its random test value, and what `cargo doc` says of default, range and
//! kind. The kinds:
//!
//! - `live`: may change while the database is open
//! - `fixed`: takes effect when the database is opened
//! - `planned`: the engine does not act on it yet, so any value but the default is refused

use std::ops::RangeInclusive;

use crate::base::{Error, Result};

use super::value::{RandomBits, SettingValue};

/// The section of an OPTIONS file that a setting belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// `[DBOptions]`
    Db,
    /// `[CFOptions "name"]`
    ColumnFamily,
    /// `[TableOptions/BlockBasedTable "name"]`
    Table,
    /// Inside the braces of another setting.
    Nested,
}

/// The description of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// RocksDB's name.
    pub name: &'static str,
    /// Its section in an OPTIONS file.
    pub section: Section,
    /// Whether it may change while the database is open.
    pub live: bool,
    /// What it means, as printed to users.
    pub documentation: &'static str,
}

/// Operations on a struct of settings; implemented only by `settings!`.
pub trait Settings: Sized {
    /// The rows, in the order of declaration.
    const ROWS: &'static [Row];

    /// Sets the setting called `name`; `None` if there is none.
    fn assign(&mut self, name: &str, text: &str) -> Option<crate::base::Result<()>>;

    /// The text of the setting called `name`; `None` if there is none.
    fn text(&self, name: &str) -> Option<String>;

    /// Checks that every value is in its range.
    ///
    /// # Errors
    /// `InvalidArgument` naming the setting, its value and its range; `NotSupported` for a setting
    /// that is only planned.
    fn check_ranges(&self) -> Result<()>;

    /// Moves the setting called `name` to the nearest value in its range, and returns whether it
    /// was outside.
    fn fit(&mut self, name: &str) -> bool;

    /// Random values, each in its range.
    fn sample_all(random: RandomBits<'_>) -> Self;
}

/// The error for a value outside its range.
pub(super) fn out_of_range(name: &str, value: &str, range: &str) -> Error {
    Error::invalid_argument(format!("option '{name}' is {value}; it must be in {range}"))
}

/// Moves a value to the nearest one in `range`, and returns whether it was outside.
pub(super) fn fit<T: PartialOrd + Clone>(value: &mut T, range: &RangeInclusive<T>) -> bool {
    if range.contains(value) {
        return false;
    }
    *value = if *value < *range.start() { range.start().clone() } else { range.end().clone() };
    true
}

/// Assigns a setting that the engine does not act on yet; only its default is accepted.
pub(super) fn assign_planned<T: SettingValue>(slot: &mut T, default: T, text: &str) -> Result<()> {
    let mut value = default.clone();
    value.assign(text)?;
    if value != default {
        return Err(not_supported_yet(&default));
    }
    *slot = default;
    Ok(())
}

/// Checks such a setting if it was set as a field.
pub(super) fn check_planned<T: SettingValue>(name: &str, value: &T, default: &T) -> Result<()> {
    if value == default {
        return Ok(());
    }
    Err(not_supported_yet(default).context(format!("option '{name}'")))
}

fn not_supported_yet<T: SettingValue>(default: &T) -> Error {
    Error::not_supported(format!(
        "known but not supported yet; only the default '{}' is accepted",
        default.text()
    ))
}

macro_rules! settings {
    (@live live) => { true };
    (@live fixed) => { false };
    (@live planned) => { false };
    (@when live) => { "may change while the database is open" };
    (@when fixed) => { "takes effect when the database is opened" };
    (@when planned) => { "nothing but the default is accepted" };
    (@facts $change:ident, $default:expr) => {
        concat!("\nDefault: `", stringify!($default), "`; ", settings!(@when $change), ".")
    };
    (@facts $change:ident, $default:expr, $range:expr) => {
        concat!(
            "\nDefault: `", stringify!($default), "`, in `", stringify!($range), "`; ", settings!(@when $change), "."
        )
    };
    (@assign planned, $slot:expr, $text:ident, $default:expr $(, $range:expr)?) => {
        crate::options::table::assign_planned($slot, $default, $text)
    };
    (@assign $kind:ident, $slot:expr, $text:ident, $default:expr) => {
        SettingValue::assign($slot, $text)
    };
    (@assign $kind:ident, $slot:expr, $text:ident, $default:expr, $range:expr) => {
        SettingValue::assign_in($slot, $text, &($range))
    };
    (@check planned, $name:expr, $value:expr, $default:expr) => {
        crate::options::table::check_planned($name, $value, &$default)?
    };
    (@check $kind:ident, $name:expr, $value:expr, $default:expr) => {};
    (@fit $slot:expr) => { false };
    (@fit $slot:expr, $range:expr) => { crate::options::table::fit($slot, &($range)) };
    (@sample planned, $random:ident, $default:expr, $type:ty $(, $range:expr)?) => { $default };
    (@sample $kind:ident, $random:ident, $default:expr, $type:ty) => {
        <$type as SettingValue>::sample($random)
    };
    (@sample $kind:ident, $random:ident, $default:expr, $type:ty, $range:expr) => {
        <$type as SettingValue>::sample_in($random, &($range))
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident in $section:expr;
        $(
            $(#[doc = $doc:literal])+
            $change:ident $field:ident: $type:ty = $default:expr $(, in $range:expr)?;
        )*
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $(
                $(#[doc = $doc])+
                #[doc = settings!(@facts $change, $default $(, $range)?)]
                pub $field: $type,
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl crate::options::table::Settings for $name {
            const ROWS: &'static [crate::options::table::Row] = &[
                $( crate::options::table::Row {
                    name: stringify!($field),
                    section: $section,
                    live: settings!(@live $change),
                    documentation: concat!($($doc),+),
                }, )*
            ];

            fn assign(&mut self, name: &str, text: &str) -> Option<crate::base::Result<()>> {
                use crate::options::value::SettingValue;
                match name {
                    $( stringify!($field) => {
                        let slot = &mut self.$field;
                        Some(settings!(@assign $change, slot, text, $default $(, $range)?))
                    } )*
                    _ => None,
                }
            }

            fn text(&self, name: &str) -> Option<String> {
                use crate::options::value::SettingValue;
                match name {
                    $( stringify!($field) => Some(SettingValue::text(&self.$field)), )*
                    _ => None,
                }
            }

            fn check_ranges(&self) -> crate::base::Result<()> {
                $( $(
                    if !($range).contains(&self.$field) {
                        let value = self.$field.to_string();
                        return Err(crate::options::table::out_of_range(
                            stringify!($field), &value, stringify!($range),
                        ));
                    }
                )? )*
                $( settings!(@check $change, stringify!($field), &self.$field, $default); )*
                Ok(())
            }

            fn fit(&mut self, name: &str) -> bool {
                match name {
                    $( stringify!($field) => settings!(@fit &mut self.$field $(, $range)?), )*
                    _ => false,
                }
            }

            fn sample_all(random: crate::options::value::RandomBits<'_>) -> Self {
                use crate::options::value::SettingValue;
                Self { $(
                    $field: settings!(@sample $change, random, $default, $type $(, $range)?),
                )* }
            }
        }
    };
}

pub(super) use settings;
