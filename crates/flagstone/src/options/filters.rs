//! Compaction filters among the options: given in code, named in the OPTIONS file.

use std::sync::Arc;

use super::assembled::ColumnFamilyOptions;
use super::text::null_text;
use crate::base::{Error, KeepEverything, Result};

pub(super) const FILTER: &str = "compaction_filter";
pub(super) const FILTER_FACTORY: &str = "compaction_filter_factory";

impl ColumnFamilyOptions {
    /// Whether there is a filter, or a factory of filters.
    pub fn filters_compactions(&self) -> bool {
        self.compaction_filter.is_some() || self.compaction_filter_factory.is_some()
    }

    /// Puts [`KeepEverything`] in the place of filters that an OPTIONS file named and that were not
    /// given: the database can then be written to, nothing is filtered, and the OPTIONS file goes
    /// on naming them.
    pub fn stand_in_for_filters(&mut self) {
        for name in [FILTER, FILTER_FACTORY] {
            let Some(missing) = self.missing_filter(name) else { continue };
            let stand_in = Arc::new(KeepEverything::instead_of(missing));
            match name {
                FILTER => self.compaction_filter = Some(stand_in),
                _ => self.compaction_filter_factory = Some(stand_in),
            }
        }
    }

    pub(super) fn filter_text(&self, name: &str) -> String {
        let given = match name {
            FILTER => self.compaction_filter.as_ref().map(|filter| filter.name().to_string()),
            _ => self.compaction_filter_factory.as_ref().map(|factory| factory.option_text()),
        };
        given.unwrap_or_else(null_text)
    }

    pub(super) fn set_filter(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            FILTER_FACTORY if let Some(found) = super::ttl::filter_factory(value)? => {
                self.compaction_filter_factory = Some(Arc::new(found));
            }
            _ if value != null_text() => {
                return Err(Error::not_supported(format!(
                    "'{value}' is not built in: give it in code, as ColumnFamilyOptions::{name}"
                )));
            }
            FILTER => self.compaction_filter = None,
            _ => self.compaction_filter_factory = None,
        }
        self.kept.retain(|kept| kept.name != name);
        Ok(())
    }

    /// What the OPTIONS file calls the filter (or factory), if neither was given.
    fn missing_filter(&self, name: &str) -> Option<String> {
        let kept = self.kept.iter().find(|kept| kept.name == name)?;
        (!self.filters_compactions()).then(|| kept.value.clone())
    }

    /// Without its filter, a database would quietly keep what it was promised to lose.
    pub(super) fn check_filters_are_given(&self) -> Result<()> {
        let missing = [FILTER, FILTER_FACTORY]
            .into_iter()
            .find_map(|name| Some((name, self.missing_filter(name)?)));
        let Some((name, missing)) = missing else { return Ok(()) };
        Err(Error::invalid_argument(format!(
            "the OPTIONS file names {name} '{missing}', and none was given: set ColumnFamilyOptions::{name}, or call \
             stand_in_for_filters() to write without one, or set \"{name}\" to \"nullptr\" to give it up"
        )))
    }
}
