//! Compaction filters as options: supplied in code, named in the OPTIONS file.

use std::sync::Arc;

use super::assembled::ColumnFamilyOptions;
use super::text::null_text;
use crate::base::{Error, Result};

pub(super) const FILTER: &str = "compaction_filter";
pub(super) const FILTER_FACTORY: &str = "compaction_filter_factory";

/// The text of a filter, or of a factory of filters, in an OPTIONS file.
pub(super) fn text(options: &ColumnFamilyOptions, name: &str) -> String {
    let given = match name {
        FILTER => options.compaction_filter.as_ref().map(|filter| filter.name().to_string()),
        _ => options.compaction_filter_factory.as_ref().map(|factory| factory.option_text()),
    };
    given.unwrap_or_else(null_text)
}

/// Sets a filter, or a factory of filters, by its text.
pub(super) fn set(options: &mut ColumnFamilyOptions, name: &str, value: &str) -> Result<()> {
    match name {
        FILTER_FACTORY if let Some(found) = super::ttl::filter_factory(value)? => {
            options.compaction_filter_factory = Some(Arc::new(found));
        }
        _ if value != null_text() => {
            return Err(Error::not_supported(format!(
                "'{value}' is not built in; supply it in code as ColumnFamilyOptions::{name}"
            )));
        }
        FILTER => options.compaction_filter = None,
        _ => options.compaction_filter_factory = None,
    }
    options.kept.retain(|kept| kept.name != name);
    Ok(())
}
