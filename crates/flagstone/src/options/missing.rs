//! Components that an OPTIONS file names and only the application can supply.

use std::sync::Arc;

use super::assembled::ColumnFamilyOptions;
use super::filters::{FILTER, FILTER_FACTORY};
use super::kept::KeptSetting;
use super::memtable_factory::MemTableFactory;
use super::table::Section;
use super::text::null_text;
use super::value::SettingValue;
use crate::base::merge::{MergeFailureScope, MergeOperator, merge_operator_name};
use crate::base::{Comparator, Error, KeepEverything, Result, key_in_words};
use crate::sst::IndexType;

/// The only kind of table that the engine has, and RocksDB's default.
pub(super) const BLOCK_BASED_TABLE: &str = "BlockBasedTable";

pub(super) const COMPARATOR: &str = "comparator";
pub(super) const MERGE_OPERATOR: &str = "merge_operator";
pub(super) const PREFIX_EXTRACTOR: &str = "prefix_extractor";

/// The component that creates tables.
pub(super) const TABLE_FACTORY: &str = "table_factory";

/// The components in the order in which an OPTIONS file lists them.
pub(super) const COMPONENTS: [&str; 3] = [COMPARATOR, MERGE_OPERATOR, PREFIX_EXTRACTOR];

/// Stands in for a merge operator that the program does not have. It merges nothing: operands stay
/// as they are, also in compactions, and reading a key that has some fails with an error that says
/// why.
pub(super) struct MissingMergeOperator {
    text: String,
}

impl MissingMergeOperator {
    /// A stand-in for the operator that an OPTIONS file describes by `text`.
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned() }
    }
}

impl MergeOperator for MissingMergeOperator {
    fn name(&self) -> &str {
        merge_operator_name(&self.text)
    }

    fn option_text(&self) -> String {
        self.text.clone()
    }

    fn full_merge(
        &self,
        _key: &[u8],
        _existing: Option<&[u8]>,
        _operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        None
    }

    fn failure_scope(&self) -> MergeFailureScope {
        MergeFailureScope::MustMerge
    }

    fn refusal(&self, key: &[u8], operand_count: usize) -> Error {
        Error::invalid_argument(format!(
            "the value of key '{}' consists of {operand_count} operands of merge operator '{}', which is not built in; only a \
             program that supplies it can read the key",
            key_in_words(key),
            self.name()
        ))
    }
}

impl ColumnFamilyOptions {
    /// Replaces compaction filters that an OPTIONS file names and the program did not supply by
    /// `KeepEverything`. The database can then be written to, nothing is filtered, and the
    /// OPTIONS file keeps naming the filters.
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

    /// Allows opening without a merge operator and a prefix extractor that an OPTIONS file names,
    /// that are not built in, and that the program did not supply. Reads work except for keys with
    /// merge operands, and so do writes. Compactions leave operands as they are, new tables have no
    /// prefix filter, and the OPTIONS file keeps naming both components. A comparator cannot be
    /// replaced.
    ///
    /// # Errors
    /// `InvalidArgument` for a malformed description of a merge operator.
    pub fn stand_in_for_components(&mut self) -> Result<()> {
        if let Some(missing) = self.missing_component(MERGE_OPERATOR) {
            self.merge_operator = Some(super::ttl::stand_in_for_merge_operator(&missing.value)?);
        }
        if self.missing_component(PREFIX_EXTRACTOR).is_none() {
            return Ok(());
        }
        self.kept.iter_mut().filter(|kept| kept.name == PREFIX_EXTRACTOR).for_each(|kept| {
            kept.taken_for = Some(null_text());
        });
        // What needs an extractor cannot be had without.
        if matches!(self.memtable_factory, MemTableFactory::PrefixHash { .. }) {
            let asked = std::mem::take(&mut self.memtable_factory);
            self.keep(
                Section::ColumnFamily,
                "memtable_factory",
                asked.text(),
                self.memtable_factory.text(),
            );
        }
        if self.table.index_type == IndexType::HashSearch {
            self.make_do_without_hash_index();
        }
        Ok(())
    }

    /// Gives new tables another index; the OPTIONS file keeps naming the requested one.
    pub(super) fn make_do_without_hash_index(&mut self) {
        let asked = std::mem::take(&mut self.table.index_type);
        self.keep(Section::Table, "index_type", asked.text(), self.table.index_type.text());
    }

    fn keep(&mut self, section: Section, name: &str, value: String, taken_for: String) {
        self.kept.push(KeptSetting {
            taken_for: Some(taken_for),
            ..KeptSetting::new(section, name, &value)
        });
    }

    /// The OPTIONS file's entry for a component that is neither built in nor supplied nor stood in
    /// for.
    fn missing_component(&self, name: &str) -> Option<&KeptSetting> {
        let is_given = match name {
            COMPARATOR => matches!(self.comparator, Comparator::Custom(_)),
            MERGE_OPERATOR => self.merge_operator.is_some(),
            _ => self.prefix_extractor.is_some(),
        };
        let kept = self.kept.iter().find(|kept| kept.name == name && kept.taken_for.is_none())?;
        (!is_given).then_some(kept)
    }

    /// A component's text in an OPTIONS file, which keeps naming missing ones.
    pub(super) fn component_text(&self, name: &str) -> String {
        let text = self.get(name).expect("a family knows its components");
        let kept = self.kept.iter().find(|kept| kept.name == name);
        kept.filter(|_| text == null_text()).map_or(text, |kept| kept.value.clone())
    }

    /// Checks that the tables are block-based. Tables of another kind cannot be read, and RocksDB
    /// set to another kind cannot read this engine's tables.
    pub(super) fn check_table_factory_is_built_in(&self) -> Result<()> {
        let Some(kept) = self.kept.iter().find(|kept| kept.name == TABLE_FACTORY) else {
            return Ok(());
        };
        let refusal = Error::not_supported(format!(
            "the OPTIONS file names {TABLE_FACTORY} '{}', whose tables this engine does not read: only {BLOCK_BASED_TABLE} \
             is supported; if the family has no other tables, set \"{TABLE_FACTORY}\" to \"{BLOCK_BASED_TABLE}\"",
            kept.value
        ));
        Err(at_file(refusal, kept))
    }

    /// Checks that comparator and merge operator are supplied. Without the comparator no key is
    /// found, without the merge operator no merged value.
    pub(super) fn check_components_are_given(&self) -> Result<()> {
        self.check_given(COMPARATOR, "")?;
        self.check_given(MERGE_OPERATOR, ", or call stand_in_for_components() to open without it")
    }

    /// Checks that the prefix extractor is supplied. Without it new tables would silently lack a
    /// prefix filter.
    pub(super) fn check_extractor_is_given(&self) -> Result<()> {
        self.check_given(
            PREFIX_EXTRACTOR,
            ", call stand_in_for_components() to open without it, or set \"prefix_extractor\" to \"nullptr\" to give it up",
        )
    }

    /// The OPTIONS file's name for a filter or filter factory that was not supplied.
    fn missing_filter(&self, name: &str) -> Option<String> {
        let kept = self.kept.iter().find(|kept| kept.name == name)?;
        (!self.filters_compactions()).then(|| kept.value.clone())
    }

    /// Checks that compaction filters are supplied. Without them the database would silently keep
    /// what they should remove.
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

    fn check_given(&self, name: &str, or_else: &str) -> Result<()> {
        let Some(missing) = self.missing_component(name) else { return Ok(()) };
        let refusal = Error::invalid_argument(format!(
            "the OPTIONS file names {name} '{}', which is not built in: only a program that has it can open the database, and \
             sets ColumnFamilyOptions::{name}{or_else}",
            missing.value
        ));
        Err(at_file(refusal, missing))
    }
}

/// The error with the OPTIONS file that it concerns, if known.
fn at_file(error: Error, kept: &KeptSetting) -> Error {
    match &kept.file {
        Some(file) => error.at(file),
        None => error,
    }
}
