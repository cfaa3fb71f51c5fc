//! The options of a life, and what follows from them for the model.

use std::collections::BTreeMap;
use std::sync::Arc;

use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{CompactionStyle, Options};

use super::case::ALL;
use crate::auditor::Auditor;
use crate::components;
use crate::model::{Family, Fifo, Losses};
use crate::settings::{Chosen, Setting};

pub(super) struct Setup {
    /// What the database is opened with.
    settings: Vec<Setting>,
    /// What they come to, with what was changed while the database ran.
    pub(super) chosen: Chosen,
    /// What compactions may have taken from the families by themselves.
    losses: BTreeMap<String, Losses>,
}

impl Setup {
    pub(super) fn new(env: &Env, settings: &[Setting]) -> Self {
        let chosen = Chosen::new(env, settings).expect("the options are taken");
        let losses = losses(&chosen, &BTreeMap::new());
        Self { settings: settings.to_vec(), chosen, losses }
    }

    /// Adds settings that go together with those before, and takes back what was changed while the
    /// database ran.
    pub(super) fn add(&mut self, env: &Env, settings: &[Setting]) {
        for setting in settings {
            let mut with = self.settings.clone();
            with.retain(|other| (&other.family, &other.name) != (&setting.family, &setting.name));
            with.push(setting.clone());
            if Chosen::new(env, &with).is_ok() {
                self.settings = with;
            }
        }
        self.chosen = Chosen::new(env, &self.settings).expect("they go together");
        self.losses = losses(&self.chosen, &self.losses);
    }

    /// What compactions may have taken from a family by themselves.
    pub(super) fn losses(&self, family: &str) -> Losses {
        self.losses[family]
    }

    /// A family without entries.
    pub(super) fn empty(&self, family: &str) -> Family {
        let order = components::order(&self.chosen.family(family).comparator);
        Family::empty(order, self.losses(family))
    }
}

/// What compactions under these options may take from the families by themselves, besides what they
/// may have taken before, if there is a before.
fn losses(chosen: &Chosen, before: &BTreeMap<String, Losses>) -> BTreeMap<String, Losses> {
    let with = |name: &str| {
        let options = chosen.family(name);
        let (thins, is_fifo) =
            (components::thins(options), options.compaction_style == CompactionStyle::Fifo);
        match before.get(name) {
            Some(before) => Losses {
                is_thinned: before.is_thinned || thins,
                fifo: before.fifo.goes_on(is_fifo),
            },
            None => Losses {
                is_thinned: thins,
                fifo: if is_fifo { Fifo::Oldest } else { Fifo::Nothing },
            },
        }
    };
    ALL.into_iter().map(|name| (name.to_string(), with(name))).collect()
}

/// The options, with a listener for one opening that looks at what it is told.
pub(super) fn audited(chosen: &Chosen) -> Options {
    let mut options = chosen.options.clone();
    options.listeners.push(Arc::<Auditor>::default());
    options
}

/// Opens a database that is there.
pub(super) fn open<'a>(
    path: &str,
    chosen: &Chosen,
    names: impl IntoIterator<Item = &'a String>,
) -> Db {
    let options = audited(chosen);
    let opened = if chosen.own.is_empty() {
        Db::open(path, &options)
    } else {
        Db::open_with_families(path, &options, &chosen.listed(names))
    };
    opened.unwrap_or_else(|error| panic!("opening {path} again: {error}"))
}
