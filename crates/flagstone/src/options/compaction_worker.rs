//! Options of a worker that does compactions for other processes.

use std::sync::Arc;

use super::assembled::{ColumnFamilyOptions, Options};
use super::control::CompactionControl;
use super::file;
use super::filters::{FILTER, FILTER_FACTORY};
use super::hooks::{COLLECTORS, PARTITIONER};
use super::info_log::InfoLog;
use super::listener::Listeners;
use super::missing::{COMPARATOR, MERGE_OPERATOR, PREFIX_EXTRACTOR};
use super::table_settings::TableSettings;
use super::text::null_text;
use crate::base::merge::MergeOperator;
use crate::base::{
    CollectorFactories, CompactionFilter, CompactionFilterFactory, Comparator, Error,
    FileChecksumFactory, Partitioning, PrefixExtractor, Result,
};
use crate::env::Env;

/// Options of [`open_and_compact`](crate::open_and_compact).
#[derive(Debug, Clone, Default)]
pub struct OpenAndCompactOptions {
    /// Cancels the compaction from another thread, and reports its progress.
    pub control: Option<Arc<CompactionControl>>,
    /// Goes on with what an earlier attempt has written. Not supported: with `true`,
    /// `open_and_compact` fails with `NotSupported`.
    pub allow_resumption: bool,
}

/// Receives what a worker counted: the names of its tickers, and their values.
pub type StatisticsReceiver = Arc<dyn Fn(&[(&'static str, u64)]) + Send + Sync>;

/// Components that a worker of a compaction service supplies, because a description of a
/// compaction can only name them.
///
/// Settings come with the description, from the database that orders the compaction. Each component
/// must have the name that the database's has, and must be given if the database has one, except
/// those that are built in. Otherwise [`open_and_compact`](crate::open_and_compact) fails with
/// `InvalidArgument`.
#[derive(Clone)]
pub struct CompactionServiceOptionsOverride {
    /// Files, clock, randomness and threads.
    pub env: Env,
    /// The order of the family's keys; `None` for a built-in one.
    pub comparator: Option<Comparator>,
    /// Combines merge operands.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// Extracts a key's prefix.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// Decides which entries to keep.
    pub compaction_filter: Option<Arc<dyn CompactionFilter>>,
    /// Creates a filter for each compaction.
    pub compaction_filter_factory: Option<Arc<dyn CompactionFilterFactory>>,
    /// Creates a partitioner, which decides where tables end.
    pub sst_partitioner_factory: Partitioning,
    /// Factories of collectors of table properties.
    pub table_properties_collectors: CollectorFactories,
    /// Settings of new tables in the place of the database's.
    pub table: Option<TableSettings>,
    /// Computes checksums of new files in the worker. The database does not use them: it computes
    /// those of the files that it takes in with its own factory, and none if it has none.
    pub file_checksum_factory: Option<Arc<dyn FileChecksumFactory>>,
    /// Called on the files and parts of the compaction. The beginning and the end of the compaction
    /// are told to the listeners of the database that ordered it.
    pub listeners: Listeners,
    /// Where messages go. Default: nowhere.
    pub info_log: InfoLog,
    /// Called once a compaction, when it ended or failed.
    pub statistics: Option<StatisticsReceiver>,
    /// Settings by name, of the database or the family, in the place of the database's.
    pub settings: Vec<(String, String)>,
}

impl Default for CompactionServiceOptionsOverride {
    fn default() -> Self {
        Self {
            env: Env::default(),
            comparator: None,
            merge_operator: None,
            prefix_extractor: None,
            compaction_filter: None,
            compaction_filter_factory: None,
            sst_partitioner_factory: None,
            table_properties_collectors: CollectorFactories::default(),
            table: None,
            file_checksum_factory: None,
            listeners: Listeners::new(),
            info_log: InfoLog::Off,
            statistics: None,
            settings: Vec::new(),
        }
    }
}

impl CompactionServiceOptionsOverride {
    /// The components of these options, and none of their settings.
    pub fn of(options: &Options) -> Self {
        let family = options.cf.clone();
        Self {
            env: options.env.clone(),
            comparator: Some(family.comparator),
            merge_operator: family.merge_operator,
            prefix_extractor: family.prefix_extractor,
            compaction_filter: family.compaction_filter,
            compaction_filter_factory: family.compaction_filter_factory,
            sst_partitioner_factory: family.sst_partitioner_factory,
            table_properties_collectors: family.table_properties_collectors,
            table: None,
            file_checksum_factory: options.file_checksum_factory.clone(),
            listeners: options.listeners.clone(),
            info_log: InfoLog::Off,
            statistics: None,
            settings: Vec::new(),
        }
    }

    /// The options of a database and of its family `family` as `text` has them, the text of an
    /// OPTIONS file, with these components.
    ///
    /// # Errors
    /// `InvalidArgument`: the text has other components, an option is out of range.
    pub(crate) fn applied_to(
        &self,
        text: &str,
        family: &str,
    ) -> Result<(Options, ColumnFamilyOptions)> {
        let loaded = file::parse(text)?;
        let mut options = loaded.options.clone();
        let of_family = loaded.family(family).cloned();
        let mut cf = of_family.ok_or_else(|| {
            Error::corruption(format!("the description has no options of column family '{family}'"))
        })?;
        let wanted = NAMES.map(|name| wanted_text(&cf, name));
        self.put_into(&mut options, &mut cf);
        for (name, value) in &self.settings {
            match cf.try_set(name, value) {
                Some(outcome) => outcome?,
                None => options.set(name, value)?,
            }
        }
        // Settings can name components, too.
        check_names(&wanted, &cf)?;
        options.validate()?;
        let cf = cf.within(&options.db);
        cf.validate_for_writing()?;
        Ok((options, cf))
    }

    fn put_into(&self, options: &mut Options, cf: &mut ColumnFamilyOptions) {
        options.env = self.env.clone();
        options.listeners.clone_from(&self.listeners);
        options.info_log = self.info_log.clone();
        options.file_checksum_factory.clone_from(&self.file_checksum_factory);
        if let Some(comparator) = &self.comparator {
            cf.comparator = comparator.clone();
        }
        if self.merge_operator.is_some() {
            cf.merge_operator.clone_from(&self.merge_operator);
        }
        if self.prefix_extractor.is_some() {
            cf.prefix_extractor.clone_from(&self.prefix_extractor);
        }
        if self.compaction_filter.is_some() {
            cf.compaction_filter.clone_from(&self.compaction_filter);
        }
        if self.compaction_filter_factory.is_some() {
            cf.compaction_filter_factory.clone_from(&self.compaction_filter_factory);
        }
        if self.sst_partitioner_factory.is_some() {
            cf.sst_partitioner_factory.clone_from(&self.sst_partitioner_factory);
        }
        if !self.table_properties_collectors.0.is_empty() {
            cf.table_properties_collectors.clone_from(&self.table_properties_collectors);
        }
        if let Some(table) = &self.table {
            cf.table = table.clone();
        }
    }
}

/// The components that must agree, in no particular order.
const NAMES: [&str; 7] =
    [COMPARATOR, MERGE_OPERATOR, PREFIX_EXTRACTOR, FILTER, FILTER_FACTORY, PARTITIONER, COLLECTORS];

/// What a family of an OPTIONS file wants: what is not built in was kept.
fn wanted_text(cf: &ColumnFamilyOptions, name: &str) -> String {
    let kept = cf.kept.iter().find(|kept| kept.name == name);
    kept.map_or_else(|| given_text(cf, name), |kept| kept.value.clone())
}

fn given_text(cf: &ColumnFamilyOptions, name: &str) -> String {
    cf.get(name).filter(|text| !text.is_empty()).unwrap_or_else(null_text)
}

/// # Errors
/// `InvalidArgument` if the worker has other components than the database.
fn check_names(wanted: &[String], cf: &ColumnFamilyOptions) -> Result<()> {
    for (name, wanted) in NAMES.into_iter().zip(wanted) {
        let given = given_text(cf, name);
        if *wanted != given {
            return Err(Error::invalid_argument(format!(
                "the database's {name} is '{wanted}', the worker's is '{given}'"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
