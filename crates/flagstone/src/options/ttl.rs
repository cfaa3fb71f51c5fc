//! The components that handle the time stamps of a TTL database, as RocksDB writes them to an
//! OPTIONS file.
//!
//! ```text
//! merge_operator={id=TtlMergeOperator;user_operator=OPERATOR;}
//! compaction_filter_factory={id=TtlCompactionFilterFactory;user_filter_factory=nullptr;ttl=SECONDS;}
//! ```

use std::sync::Arc;

use super::assembled::ColumnFamilyOptions;
use super::missing::MissingMergeOperator;
use super::text::{null_text, pairs, without_braces};
use crate::base::merge::{MergeOperator, merge_operator_from_option_text};
use crate::base::{Error, Result};
use crate::env::Env;
use crate::expiry::{Lifetime, TtlCompactionFilterFactory, TtlMergeOperator};

/// The properties of `text` if it is of the form `{id=NAME;...}`.
fn properties_of<'a>(text: &'a str, name: &str) -> Result<Option<Vec<(&'a str, &'a str)>>> {
    if text == name {
        return Ok(Some(Vec::new()));
    }
    if !text.starts_with('{') || !text.contains(name) {
        return Ok(None);
    }
    let properties = pairs(without_braces(text))?;
    Ok(properties.contains(&("id", name)).then_some(properties))
}

/// As `merge_operator_from_option_text`, which knows nothing of stamps.
pub(super) fn merge_operator(text: &str) -> Result<Option<Arc<dyn MergeOperator>>> {
    let Some(properties) = properties_of(text, TtlMergeOperator::NAME)? else {
        return merge_operator_from_option_text(text);
    };
    let user =
        properties.iter().find(|(name, _)| *name == "user_operator").map_or("", |(_, text)| text);
    let Some(user) = merge_operator_from_option_text(user)? else {
        return Err(Error::invalid_argument(format!(
            "{} has no user_operator",
            TtlMergeOperator::NAME
        )));
    };
    let lifetime = Lifetime::new(0, Env::os().clock)?;
    Ok(Some(Arc::new(TtlMergeOperator::around(user, Arc::new(lifetime)))))
}

/// What stands in for the operator that `text` says, which is not built in.
pub(super) fn stand_in_for_merge_operator(text: &str) -> Result<Arc<dyn MergeOperator>> {
    let Some(properties) = properties_of(text, TtlMergeOperator::NAME)? else {
        return Ok(Arc::new(MissingMergeOperator::new(text)));
    };
    let user =
        properties.iter().find(|(name, _)| *name == "user_operator").map_or("", |(_, text)| text);
    let lifetime = Arc::new(Lifetime::new(0, Env::os().clock)?);
    Ok(Arc::new(TtlMergeOperator::around(Arc::new(MissingMergeOperator::new(user)), lifetime)))
}

/// The factory that `text` says; `None` if it is another one, or has one of the application's in
/// it.
pub(super) fn filter_factory(text: &str) -> Result<Option<TtlCompactionFilterFactory>> {
    let Some(properties) = properties_of(text, TtlCompactionFilterFactory::NAME)? else {
        return Ok(None);
    };
    let mut seconds = 0;
    for (name, value) in properties {
        match name {
            "user_filter_factory" if value != null_text() && !value.is_empty() => return Ok(None),
            "ttl" => {
                // RocksDB takes what is negative for no end.
                let ttl = value.parse::<i32>();
                let ttl = ttl.map_err(|_| {
                    Error::invalid_argument(format!("'{value}' is not a number of seconds"))
                })?;
                seconds = u64::try_from(ttl).unwrap_or(0);
            }
            _ => {}
        }
    }
    let lifetime = Lifetime::new(seconds, Env::os().clock)?;
    Ok(Some(TtlCompactionFilterFactory::new(Arc::new(lifetime))))
}

impl ColumnFamilyOptions {
    /// The time to live, in seconds, of a family whose options, those of its OPTIONS file perhaps,
    /// are those of a TTL database; 0 is for ever.
    pub fn recorded_ttl(&self) -> Option<u64> {
        let factory = self.compaction_filter_factory.as_deref()?;
        TtlCompactionFilterFactory::find(factory).map(|factory| factory.lifetime().seconds())
    }

    /// These options for values that carry a stamp and live as `lifetime` says: filter and merge
    /// operator deal with the stamps, and have the application's within.
    #[must_use]
    pub fn with_lifetime(&self, lifetime: &Arc<Lifetime>) -> Self {
        let mut stamping = self.clone();
        let (filter, factory) =
            (stamping.compaction_filter.take(), stamping.compaction_filter_factory.take());
        let aged = TtlCompactionFilterFactory::over(lifetime.clone(), filter, factory);
        stamping.compaction_filter_factory = Some(Arc::new(aged));
        stamping.merge_operator = stamping.merge_operator.map(|operator| {
            Arc::new(TtlMergeOperator::around(operator, lifetime.clone())) as Arc<dyn MergeOperator>
        });
        stamping
    }
}
