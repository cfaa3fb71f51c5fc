//! Opening a database with stamps, and its families.

use std::path::Path;
use std::sync::Arc;

use super::{Rule, Rules, TtlDb, TtlOptions};
use crate::base::{Error, Result};
use crate::db::{ColumnFamily, Db};
use crate::expiry::Lifetime;
use crate::options::{ColumnFamilyOptions, Options};

/// A family to open whose values may live for ever: its name, its options, how long they live.
pub(crate) type MixedFamily<'a> = (&'a str, ColumnFamilyOptions, Option<TtlOptions>);

/// A family to open: its name, its options without anything about stamps, how long its values live.
pub type TtlFamily<'a> = (&'a str, ColumnFamilyOptions, TtlOptions);

impl TtlDb {
    /// Opens the database in `path` as [`Db::open`] does, all of its families with the same time to
    /// live.
    ///
    /// # Errors
    /// As [`Db::open`]; `InvalidArgument` for a time to live of more than 2^31 - 1 seconds.
    pub fn open(path: impl AsRef<Path>, options: &Options, ttl: TtlOptions) -> Result<Self> {
        Self::open_alike(options, ttl, |options| Db::open(path, options))
    }

    /// As [`TtlDb::open`], for reading, as [`Db::open_read_only`] does.
    ///
    /// # Errors
    /// As [`TtlDb::open`].
    pub fn open_read_only(
        path: impl AsRef<Path>,
        options: &Options,
        ttl: TtlOptions,
    ) -> Result<Self> {
        Self::open_alike(options, ttl, |options| Db::open_read_only(path, options))
    }

    /// Opens the database in `path` with exactly these families, as [`Db::open_with_families`]
    /// does. `default` is to be among them.
    ///
    /// # Errors
    /// As [`Db::open_with_families`], and as [`TtlDb::open`].
    pub fn open_with_families(
        path: impl AsRef<Path>,
        options: &Options,
        families: &[TtlFamily<'_>],
    ) -> Result<Self> {
        let families = families.iter().map(|(name, family, ttl)| (*name, family, Some(*ttl)));
        Self::open_each(options, families, |listed| Db::open_with_families(path, options, listed))
    }

    /// Opens by `open` a database some of whose families have a time to live.
    pub(crate) fn open_mixed(
        options: &Options,
        families: &[MixedFamily<'_>],
        open: impl FnOnce(&[(&str, ColumnFamilyOptions)]) -> Result<Db>,
    ) -> Result<Self> {
        let families = families.iter().map(|(name, family, ttl)| (*name, family, *ttl));
        Self::open_each(options, families, open)
    }

    /// As [`TtlDb::open_with_families`], for reading.
    ///
    /// # Errors
    /// As [`TtlDb::open_with_families`].
    pub fn open_read_only_with_families(
        path: impl AsRef<Path>,
        options: &Options,
        families: &[TtlFamily<'_>],
    ) -> Result<Self> {
        let families = families.iter().map(|(name, family, ttl)| (*name, family, Some(*ttl)));
        Self::open_each(options, families, |listed| {
            Db::open_read_only_with_families(path, options, listed)
        })
    }

    /// Makes a column family whose values live as `ttl` says.
    ///
    /// # Errors
    /// As [`Db::create_column_family`], and as [`TtlDb::open`].
    pub fn create_column_family(
        &self,
        name: &str,
        options: &ColumnFamilyOptions,
        ttl: TtlOptions,
    ) -> Result<ColumnFamily> {
        check_unstamped(options)?;
        let rule = Rule::new(ttl, self.base.env())?;
        let family =
            self.base.create_column_family(name, &options.with_lifetime(&rule.lifetime))?;
        self.rules.add(family.id(), rule);
        Ok(family)
    }

    fn open_alike(
        options: &Options,
        ttl: TtlOptions,
        open: impl FnOnce(&Options) -> Result<Db>,
    ) -> Result<Self> {
        check_unstamped(&options.cf)?;
        let rule = Rule::new(ttl, &options.env)?;
        let cf = options.cf.with_lifetime(&rule.lifetime);
        let base = open(&Options { cf, ..options.clone() })?;
        let rules =
            base.column_families().iter().map(|family| (family.id(), rule.clone())).collect();
        Ok(Self { base, rules: Rules::of(rules) })
    }

    fn open_each<'a>(
        options: &Options,
        families: impl Iterator<Item = (&'a str, &'a ColumnFamilyOptions, Option<TtlOptions>)>,
        open: impl FnOnce(&[(&str, ColumnFamilyOptions)]) -> Result<Db>,
    ) -> Result<Self> {
        let (mut listed, mut rules) = (Vec::new(), Vec::new());
        for (name, family, ttl) in families {
            let Some(ttl) = ttl else {
                listed.push((name, family.clone()));
                continue;
            };
            check_unstamped(family)?;
            let rule = Rule::new(ttl, &options.env)?;
            listed.push((name, family.with_lifetime(&rule.lifetime)));
            rules.push((name, rule));
        }
        let base = open(&listed)?;
        let known = rules.into_iter().filter_map(|(name, rule)| {
            let family = base.column_family(name)?;
            Some((family.id(), rule))
        });
        let rules = Rules::of(known.collect());
        Ok(Self { base, rules })
    }
}

/// A value's time to live counts from when it is written, which a timestamp need not be.
fn check_unstamped(options: &ColumnFamilyOptions) -> Result<()> {
    if options.comparator.timestamp_size() == 0 {
        return Ok(());
    }
    Err(Error::not_supported(
        "values do not expire in a family whose comparator has timestamps: raise full_history_ts_low instead",
    ))
}

impl Rule {
    fn new(ttl: TtlOptions, env: &crate::env::Env) -> Result<Self> {
        let lifetime = Lifetime::new(ttl.ttl_seconds, env.clock.clone())?;
        let lifetime = lifetime.with_rules(ttl.strict_reads, ttl.eternal_values);
        Ok(Self { lifetime: Arc::new(lifetime), is_strict: ttl.strict_reads })
    }
}
