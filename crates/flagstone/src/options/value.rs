//! How a setting's value is parsed, printed, and drawn at random.

use std::num::IntErrorKind;
use std::ops::RangeInclusive;

use super::text::{escape, nearest, unescape, without_braces};
use crate::base::{Error, Result, SubCode};

/// A source of random bits for test values.
pub type RandomBits<'a> = &'a mut dyn FnMut() -> u64;

/// A type that a setting may have.
pub trait SettingValue: Clone + PartialEq {
    /// Parses `text` into the value. A struct keeps the fields that `text` does not name.
    ///
    /// # Errors
    /// `InvalidArgument` saying what was expected and what was found, without the setting's name
    /// (callers add it). `NotSupported` for what this engine does not do; with
    /// [`SubCode::OtherRelease`] if another release may have it. After an error `self` may be
    /// partly assigned.
    fn assign(&mut self, text: &str) -> Result<()>;

    /// Like [`SettingValue::assign`]. A value outside `range` is accepted if the type can hold it;
    /// the caller rejects it or takes the nearest value, depending on its source.
    ///
    /// # Errors
    /// Those of [`SettingValue::assign`]; for a value that the type cannot hold, the error names
    /// `range`.
    fn assign_in(&mut self, text: &str, _range: &RangeInclusive<Self>) -> Result<()>
    where
        Self: PartialOrd,
    {
        self.assign(text)
    }

    /// The value as an OPTIONS file states it; `assign` reads it back exactly.
    fn text(&self) -> String;

    /// Some valid value.
    fn sample(random: RandomBits<'_>) -> Self;

    /// Some value in `range`.
    fn sample_in(random: RandomBits<'_>, range: &RangeInclusive<Self>) -> Self
    where
        Self: PartialOrd,
    {
        let value = Self::sample(random);
        if range.contains(&value) { value } else { range.start().clone() }
    }
}

fn invalid(message: String) -> Error {
    Error::invalid_argument(message)
}

impl SettingValue for bool {
    fn assign(&mut self, text: &str) -> Result<()> {
        *self = match text {
            "true" | "1" => true,
            "false" | "0" => false,
            _ => return Err(invalid(format!("expected true or false, found '{text}'"))),
        };
        Ok(())
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn sample(random: RandomBits<'_>) -> Self {
        random() & 1 == 1
    }
}

/// Text of a choice that follows from other settings.
pub(super) const NOT_SET: &str = "auto";

macro_rules! setting_with_a_default_by_others {
    ($($type:ty),*) => {$(
        impl SettingValue for Option<$type> {
            fn assign(&mut self, text: &str) -> Result<()> {
                if text == NOT_SET {
                    *self = None;
                    return Ok(());
                }
                let mut chosen = <$type>::default();
                chosen.assign(text)?;
                *self = Some(chosen);
                Ok(())
            }

            fn text(&self) -> String {
                self.as_ref().map_or_else(|| NOT_SET.to_string(), SettingValue::text)
            }

            fn sample(random: RandomBits<'_>) -> Self {
                Some(<$type>::sample(random))
            }
        }
    )*};
}

setting_with_a_default_by_others!(bool, u64);

/// Parses a whole number with RocksDB's optional suffix k, m, g or t (powers of 1024); `None` if no
/// type can hold it.
fn whole_number(text: &str) -> Result<Option<i128>> {
    let shift = match text.bytes().last() {
        Some(b'k' | b'K') => 10,
        Some(b'm' | b'M') => 20,
        Some(b'g' | b'G') => 30,
        Some(b't' | b'T') => 40,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    match digits.parse::<i128>() {
        Ok(number) => Ok(number.checked_mul(1 << shift)),
        Err(error)
            if matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) =>
        {
            Ok(None)
        }
        Err(_) => {
            Err(invalid(format!("expected a whole number (k, m, g, t may follow), found '{text}'")))
        }
    }
}

macro_rules! whole_number_setting {
    ($($type:ty),*) => {$(
        impl SettingValue for $type {
            fn assign(&mut self, text: &str) -> Result<()> {
                self.assign_in(text, &(<$type>::MIN..=<$type>::MAX))
            }

            fn assign_in(&mut self, text: &str, range: &RangeInclusive<Self>) -> Result<()> {
                let number = whole_number(text)?;
                *self = number.and_then(|number| number.try_into().ok()).ok_or_else(|| {
                    let (first, last) = (range.start(), range.end());
                    invalid(format!("expected a whole number from {first} to {last}, found '{text}'"))
                })?;
                Ok(())
            }

            fn text(&self) -> String {
                self.to_string()
            }

            fn sample(random: RandomBits<'_>) -> Self {
                // Small numbers as often as large ones.
                let shift = random() % 64;
                (random() >> shift) as $type
            }

            fn sample_in(random: RandomBits<'_>, range: &RangeInclusive<Self>) -> Self {
                let first = i128::from(*range.start());
                let count = i128::from(*range.end()) - first + 1;
                (first + i128::from(Self::sample(random)).rem_euclid(count)) as $type
            }
        }
    )*};
}

whole_number_setting!(i32, u32, i64, u64);

impl SettingValue for f64 {
    fn assign(&mut self, text: &str) -> Result<()> {
        let number: f64 =
            text.parse().map_err(|_| invalid(format!("expected a number, found '{text}'")))?;
        if !number.is_finite() {
            return Err(invalid(format!("expected a finite number, found '{text}'")));
        }
        *self = number;
        Ok(())
    }

    fn text(&self) -> String {
        let six_digits = format!("{self:.6}");
        if six_digits.parse() == Ok(*self) { six_digits } else { self.to_string() }
    }

    fn sample(random: RandomBits<'_>) -> Self {
        (random() % 6400) as f64 / 64.0
    }

    fn sample_in(random: RandomBits<'_>, range: &RangeInclusive<Self>) -> Self {
        let width = (range.end() - range.start()).min(1000.0);
        range.start() + width * (random() % 65) as f64 / 64.0
    }
}

impl SettingValue for String {
    fn assign(&mut self, text: &str) -> Result<()> {
        *self = unescape(text);
        Ok(())
    }

    fn text(&self) -> String {
        escape(self)
    }

    fn sample(random: RandomBits<'_>) -> Self {
        const LETTERS: &[u8] = b"abz019/._-:#\\ x";
        let length = random() % 12;
        let drawn: String = (0..length)
            .map(|_| LETTERS[(random() % LETTERS.len() as u64) as usize] as char)
            .collect();
        drawn.trim().to_string()
    }
}

/// A list with its elements separated by colons.
impl<T: SettingValue + Default> SettingValue for Vec<T> {
    fn assign(&mut self, text: &str) -> Result<()> {
        let inner = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        self.clear();
        if inner.is_empty() {
            return Ok(());
        }
        for part in inner.split(':') {
            let mut element = T::default();
            // RocksDB 6.11 to 6.22 puts each element but the first in braces.
            element.assign(without_braces(part))?;
            self.push(element);
        }
        Ok(())
    }

    fn text(&self) -> String {
        self.iter().map(SettingValue::text).collect::<Vec<_>>().join(":")
    }

    fn sample(random: RandomBits<'_>) -> Self {
        let length = random() % 5;
        (0..length).map(|_| T::sample(random)).collect()
    }
}

/// A choice between named values.
pub trait NamedChoice: Copy + PartialEq + 'static {
    /// The names of each value; the first name of a value is the one written.
    const NAMES: &'static [(&'static str, Self)];
    /// The beginning of all names, at least `k`, and the end of most. What stands between them is
    /// read, too (`zstd`, `level`), and `none` for `No`.
    const AFFIXES: (&'static str, &'static str) = ("k", "");
    /// RocksDB's names for values that this engine does not have.
    const NOT_SUPPORTED: &'static [&'static str] = &[];
    /// Whether the value decides how bytes in files are read, so that no other value can stand in.
    const TELLS_HOW_TO_READ: bool = false;
}

/// A name without its type's affixes, in small letters and without `_` and `-`.
pub(super) fn short<T: NamedChoice>(name: &str) -> String {
    let (prefix, suffix) = T::AFFIXES;
    let core = name.strip_prefix(prefix).or_else(|| name.strip_prefix('k')).unwrap_or(name);
    let core = core.strip_suffix(suffix).filter(|core| !core.is_empty()).unwrap_or(core);
    let core = if core == "No" { "none" } else { core };
    core.chars().filter(|c| !"_-".contains(*c)).map(|c| c.to_ascii_lowercase()).collect()
}

/// The value that `text` names, in full or in short.
fn named<T: NamedChoice>(text: &str) -> Option<T> {
    let in_full = T::NAMES.iter().find(|(name, _)| *name == text);
    let found = in_full.or_else(|| {
        let folded: String = text.chars().filter(|c| !"_-".contains(*c)).collect();
        T::NAMES.iter().find(|(name, _)| short::<T>(name).eq_ignore_ascii_case(&folded))
    });
    found.map(|(_, value)| *value)
}

/// The name that was probably meant.
fn meant<T: NamedChoice>(text: &str) -> Option<&'static str> {
    let shorts: Vec<String> = T::NAMES.iter().map(|(name, _)| short::<T>(name)).collect();
    let near = nearest(&short::<T>(text), shorts.iter().map(String::as_str))?;
    shorts.iter().position(|short| short == near).map(|at| T::NAMES[at].0)
}

impl<T: NamedChoice> SettingValue for T {
    fn assign(&mut self, text: &str) -> Result<()> {
        match named(text) {
            Some(value) => *self = value,
            None => {
                let names: Vec<_> = T::NAMES.iter().map(|(name, _)| *name).collect();
                let mut message = format!("expected one of {}, found '{text}'", names.join(", "));
                if let Some(meant) = meant::<T>(text) {
                    message.push_str(&format!("; did you mean '{meant}'?"));
                }
                return Err(if T::NOT_SUPPORTED.contains(&text) {
                    Error::not_supported(message)
                } else if T::TELLS_HOW_TO_READ {
                    invalid(message)
                } else {
                    invalid(message).with_subcode(SubCode::OtherRelease)
                });
            }
        }
        Ok(())
    }

    fn text(&self) -> String {
        let named = T::NAMES.iter().find(|(_, value)| value == self);
        named.expect("every value of a choice has a name").0.to_string()
    }

    fn sample(random: RandomBits<'_>) -> Self {
        T::NAMES[(random() % T::NAMES.len() as u64) as usize].1
    }
}

#[cfg(test)]
mod tests;
