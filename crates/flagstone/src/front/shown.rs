//! A database that is followed, as a state that its readers see.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::base::Result;
use crate::base::sync::{ArcSwap, Mutex};
use crate::db;
use crate::front::builder::{Builder, Opened, open_by};
use crate::front::database::Db;
use crate::options::{ColumnFamilyOptions, Options};
use crate::ttl::TtlOptions;

/// The newest state of a database that is followed, with the times that values live for.
pub(super) struct Shown {
    how: Builder,
    /// How long the values of each family live, unless for ever.
    ttls: Mutex<BTreeMap<String, Option<TtlOptions>>>,
    now: ArcSwap<Db>,
}

impl Builder {
    /// Follows a database with all families, including later ones. `open` is given where it is, the
    /// options, the families that are named or found, and the options of all others; it returns
    /// what follows, and the first state.
    pub(super) fn follow<E>(
        self,
        open: impl FnOnce(
            &Path,
            &Options,
            &[(&str, ColumnFamilyOptions)],
            Option<ColumnFamilyOptions>,
        ) -> Result<(E, db::Db)>,
    ) -> Result<(E, Shown)> {
        let families = self.all_families()?;
        let named: Vec<_> =
            families.iter().map(|(name, family, _)| (name.as_str(), family.clone())).collect();
        let options = self.shown_options();
        let (engine, first) = open(self.path(), options, &named, Some(options.cf.clone()))?;
        Ok((engine, Shown::new(self, families, &first)?))
    }
}

impl Shown {
    /// The first state; `families` are those that `how` names or found.
    fn new(how: Builder, families: Vec<Opened>, first: &db::Db) -> Result<Self> {
        let ttls: BTreeMap<_, _> = families.into_iter().map(|(name, _, ttl)| (name, ttl)).collect();
        let first = state(&how, &ttls, first)?;
        Ok(Self { how, ttls: Mutex::new(ttls), now: ArcSwap::from_pointee(first) })
    }

    /// The engine's `newest` state.
    ///
    /// # Errors
    /// Of a family that was created since: `Corruption` or `IoError` of the OPTIONS file that says
    /// whether its values expire.
    pub(super) fn at(&self, newest: &db::Db) -> Result<Db> {
        let shown = self.now.load();
        if shown.engine().is_same(newest) {
            return Ok(Db::clone(&shown));
        }
        let ttls = self.ttls_of(newest)?;
        let shown = state(&self.how, &ttls, newest)?;
        self.now.store(Arc::new(shown.clone()));
        Ok(shown)
    }

    fn ttls_of(&self, newest: &db::Db) -> Result<BTreeMap<String, Option<TtlOptions>>> {
        let mut ttls = self.ttls.lock().clone();
        let families = newest.column_families();
        if families.iter().all(|family| ttls.contains_key(family.name())) {
            return Ok(ttls);
        }
        let stored = self.how.stored_ttls()?;
        for family in families {
            let ttl = || stored.get(family.name()).copied().flatten().map(TtlOptions::strict);
            ttls.entry(family.name().to_string()).or_insert_with(ttl);
        }
        self.ttls.lock().clone_from(&ttls);
        Ok(ttls)
    }
}

/// A state of the engine, with the times that values live for.
fn state(how: &Builder, ttls: &BTreeMap<String, Option<TtlOptions>>, now: &db::Db) -> Result<Db> {
    let families: Vec<Opened> = now
        .column_families()
        .iter()
        .map(|family| {
            let options: ColumnFamilyOptions = (*family.options()).clone();
            (family.name().to_string(), options, ttls.get(family.name()).copied().flatten())
        })
        .collect();
    open_by(how.shown_options(), &families, |_| Ok(now.clone()))
}
