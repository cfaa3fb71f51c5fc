//! Setting and reading options by name, as in an OPTIONS file or on the command line.

use super::assembled::{ColumnFamilyOptions, Options};
use super::filters::{self, FILTER, FILTER_FACTORY};
use super::hooks::{self, COLLECTORS, PARTITIONER};
use super::kept::KeptSetting;
use super::known::{self, Known};
use super::missing::BLOCK_BASED_TABLE;
use super::names::{TABLE_FACTORY_NAMES, taken_apart, unknown_name, without_alias};
use super::rate_limiter::{AUTO_TUNED, RATE_LIMITER};
use super::removed;
use super::secondary_cache::{BLOB_CACHE, SECONDARY_CACHE, secondary_cache};
use super::table::{Section, Settings};
use super::text::{null_text, pairs, without_braces};
use crate::base::{Comparator, Error, PrefixExtractor, Result};

impl ColumnFamilyOptions {
    /// Sets the option called `name`: a setting of the family or its tables, or a built-in
    /// component. The name may be dotted (`compression_opts.level`); `block_based_table_factory`
    /// takes `{name=value;...}`.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown name or a wrong value, `NotSupported` for what the engine
    /// does not support.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        self.try_set(name, value).unwrap_or_else(|| Err(unknown_name(name)))
    }

    /// The text of the option called `name`.
    pub fn get(&self, name: &str) -> Option<String> {
        match name {
            "comparator" => Some(self.comparator.name().to_string()),
            "merge_operator" => Some(
                self.merge_operator
                    .as_ref()
                    .map_or_else(null_text, |operator| operator.option_text()),
            ),
            "prefix_extractor" => Some(
                self.prefix_extractor
                    .as_ref()
                    .map_or_else(null_text, |extractor| extractor.name().into_owned()),
            ),
            FILTER | FILTER_FACTORY => Some(filters::text(self, name)),
            PARTITIONER => Some(hooks::text(self, name).unwrap_or_else(null_text)),
            COLLECTORS => Some(hooks::text(self, name).unwrap_or_default()),
            _ => {
                let name = without_alias(name);
                self.settings.text(name).or_else(|| self.table.text(name))
            }
        }
    }

    /// `None` if the name is not one of a column family's.
    pub(super) fn try_set(&mut self, name: &str, value: &str) -> Option<Result<()>> {
        let name = without_alias(name.strip_prefix("cf.").unwrap_or(name));
        let result = match removed::find(name) {
            Some(_) => Some(Ok(())),
            None => self.try_assign(name, value),
        };
        if let Some(Ok(())) = result {
            note(&mut self.kept, name.split('.').next().unwrap_or(name), value);
        }
        result
    }

    fn try_assign(&mut self, name: &str, value: &str) -> Option<Result<()>> {
        if let Some((outer, inner)) = name.split_once('.') {
            return self.set_dotted(outer, inner, value);
        }
        if TABLE_FACTORY_NAMES.contains(&name) {
            return Some(self.set_table_factory(value));
        }
        let result = match name {
            BLOB_CACHE if !matches!(value, "nullptr" | "") => Err(Error::not_supported(
                "the blob cache belongs to the database, not to a column family; set it there",
            )),
            "comparator" => Comparator::from_name(value).map(|found| self.comparator = found),
            "merge_operator" => {
                super::ttl::merge_operator(value).map(|found| self.merge_operator = found)
            }
            "prefix_extractor" => {
                PrefixExtractor::from_option_text(value).map(|found| self.prefix_extractor = found)
            }
            FILTER | FILTER_FACTORY => filters::set(self, name, value),
            PARTITIONER | COLLECTORS => hooks::set(self, name, value),
            _ => {
                let assigned =
                    self.settings.assign(name, value).or_else(|| self.table.assign(name, value));
                match assigned {
                    Some(result) => result,
                    None => known::find(name)
                        .filter(|known| known.section != Section::Db)
                        .map(|k| check(k, value))?,
                }
            }
        };
        Some(result.map_err(|error| error.context(format!("option '{name}'"))))
    }

    fn set_dotted(&mut self, outer: &str, inner: &str, value: &str) -> Option<Result<()>> {
        if outer == "table" || TABLE_FACTORY_NAMES.contains(&outer) {
            return Some(self.set_table(inner, value));
        }
        // A nested struct keeps what its text does not name.
        let result = self.settings.assign(outer, &format!("{{{inner}={value}}}"))?;
        Some(result.map_err(|error| error.context(format!("option '{outer}.{inner}'"))))
    }

    fn set_table_factory(&mut self, value: &str) -> Result<()> {
        if matches!(value, BLOCK_BASED_TABLE | "rocksdb.BlockBasedTable") {
            return Ok(());
        }
        if !value.contains('=') {
            return Err(Error::not_supported(format!(
                "table factory '{value}': only BlockBasedTable is supported, also as {{name=value;...}}"
            )));
        }
        pairs(without_braces(value))?
            .into_iter()
            .try_for_each(|(name, value)| self.set_table(name, value))
    }

    fn set_table(&mut self, name: &str, value: &str) -> Result<()> {
        if name == "id" {
            return self.set_table_factory(value);
        }
        let result = match (self.table.assign(name, value), known::find(name)) {
            (Some(result), _) => result,
            (None, Some(known)) if known.section == Section::Table => check(known, value),
            _ => return Err(unknown_name(name)),
        };
        result.map_err(|error| error.context(format!("option '{name}'")))?;
        forget(&mut self.kept, name);
        Ok(())
    }
}

impl Options {
    /// Sets the option called `name`: a setting of the database, of its default column family or
    /// that family's tables, or a built-in component. See [`ColumnFamilyOptions::set`] for the
    /// forms of names. `block_cache` takes a size in bytes, or RocksDB's
    /// `{capacity=...;num_shard_bits=...;high_pri_pool_ratio=...;secondary_cache=...}`.
    /// `blob_cache` takes the same without a secondary cache, or `nullptr`.
    ///
    /// A named value may be short: `zstd` for `kZSTD`, `universal` for `kCompactionStyleUniversal`.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown name (with the nearest known one) or a wrong value,
    /// `NotSupported` for what the engine does not support.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let plain = name.strip_prefix("db.").unwrap_or(name);
        let result = match (self.db.assign(plain, value), known::find(plain)) {
            (Some(result), _) => result,
            (None, Some(known)) if known.section == Section::Db => check(known, value),
            _ if plain == "block_cache" => self.set_block_cache(value),
            _ if plain == BLOB_CACHE => self.set_blob_cache(value),
            _ if plain == SECONDARY_CACHE => {
                secondary_cache(value).map(|bytes| self.db.compressed_secondary_cache_size = bytes)
            }
            _ if [RATE_LIMITER, AUTO_TUNED].contains(&plain) => self.set_rate_limiter(plain, value),
            _ if TABLE_FACTORY_NAMES.contains(&plain) => {
                return self.set_table_factory(plain, value);
            }
            _ => return self.cf.set(name, value),
        };
        result.map_err(|error| error.context(format!("option '{plain}'")))?;
        note(&mut self.kept, plain, value);
        self.kept_values.retain(|(name, _)| name != plain);
        Ok(())
    }

    /// RocksDB's struct of table options holds the block cache, too.
    fn set_table_factory(&mut self, name: &str, value: &str) -> Result<()> {
        if !value.contains('=') {
            return self.cf.set(name, value);
        }
        for (inner, value) in pairs(without_braces(value))? {
            match inner {
                "block_cache" => self.set(inner, value)?,
                _ => self.cf.set_table(inner, value)?,
            }
        }
        Ok(())
    }

    /// Sets a setting of the database for one opening; the OPTIONS file written by that opening
    /// keeps the current value. It is meant for settings that ignore damage, so that later damage
    /// does not go unnoticed.
    ///
    /// # Errors
    /// As [`Options::set`]; `InvalidArgument` for a name that is not a setting of the database.
    pub fn set_for_one_opening(&mut self, name: &str, value: &str) -> Result<()> {
        let name = name.strip_prefix("db.").unwrap_or(name);
        let known =
            self.kept_values.iter().find(|(known, _)| known == name).map(|(_, kept)| kept.clone());
        let kept = known.or_else(|| self.db.text(name)).ok_or_else(|| unknown_name(name))?;
        self.set(name, value)?;
        self.kept_values.push((name.to_string(), kept));
        Ok(())
    }

    /// The options as the OPTIONS file has them: without what was set for one opening.
    #[must_use]
    pub fn as_kept(&self) -> Self {
        let mut options = Self { kept_values: Vec::new(), ..self.clone() };
        for (name, value) in &self.kept_values {
            options.set(name, value).expect("a value that the setting had");
        }
        options
    }

    /// Like [`Options::set`], and sets options of column families in each of `families` too.
    ///
    /// # Errors
    /// As [`Options::set`].
    pub fn set_everywhere(
        &mut self,
        families: &mut [(String, ColumnFamilyOptions)],
        name: &str,
        value: &str,
    ) -> Result<()> {
        for (name, value) in taken_apart(name, value)? {
            self.set(&name, &value)?;
            if name != BLOB_CACHE {
                let each = families.iter_mut();
                each.filter_map(|(_, family)| family.try_set(&name, &value))
                    .collect::<Result<()>>()?;
            }
        }
        Ok(())
    }

    /// Sets several options from `name=value;name=value`.
    ///
    /// # Errors
    /// As [`Options::set`]; the options before the wrong one are then set.
    pub fn set_all(&mut self, text: &str) -> Result<()> {
        pairs(text)?.into_iter().try_for_each(|(name, value)| self.set(name, value))
    }

    /// The text of the option called `name`.
    pub fn get(&self, name: &str) -> Option<String> {
        match name {
            "block_cache" => Some(self.block_cache_text()),
            BLOB_CACHE => Some(self.blob_cache_text()),
            RATE_LIMITER | AUTO_TUNED => Some(self.rate_limiter_text(name)),
            _ => self.db.text(name).or_else(|| self.cf.get(name)),
        }
    }
}

/// What was kept makes way for what was set.
fn forget(kept: &mut Vec<KeptSetting>, name: &str) {
    kept.retain(|kept| kept.name != name);
}

/// The same; what was set is kept in its place if it was accepted and has no effect.
fn note(kept: &mut Vec<KeptSetting>, name: &str, value: &str) {
    forget(kept, name);
    let (section, in_comment) = match (removed::find(name), known::find(name)) {
        (Some(removed), _) if !removed.is_default(value) => (Section::ColumnFamily, false),
        (None, Some(known)) if known.keeps(value) => (known.section, !known.in_both),
        _ => return,
    };
    kept.push(KeptSetting { in_comment, ..KeptSetting::new(section, name, value) });
}

fn check(known: &Known, value: &str) -> Result<()> {
    if known.accepts(value) { Ok(()) } else { Err(known.refusal()) }
}
