//! Partitioners and collectors of table properties as options: supplied in code, named in the
//! OPTIONS file if they are built in.

use std::sync::Arc;

use super::assembled::ColumnFamilyOptions;
use super::text::{null_text, pairs, without_braces};
use crate::base::{
    CompactOnDeletionCollectorFactory, Error, Result, SstPartitionerFixedPrefixFactory,
};

pub(super) const PARTITIONER: &str = "sst_partitioner_factory";
pub(super) const COLLECTORS: &str = "table_properties_collectors";

/// The text in an OPTIONS file; `None` where nothing is set.
pub(super) fn text(options: &ColumnFamilyOptions, name: &str) -> Option<String> {
    if name == PARTITIONER {
        return options.sst_partitioner_factory.as_ref().map(|factory| factory.option_text());
    }
    let factories = options.table_properties_collectors.0.iter();
    let texts: Vec<_> = factories.map(|factory| factory.option_text()).collect();
    (!texts.is_empty()).then(|| format!("{{{}}}", texts.join(":")))
}

/// Sets what is built in by its text.
///
/// # Errors
/// `NotSupported` for what is not built in; `InvalidArgument`.
pub(super) fn set(options: &mut ColumnFamilyOptions, name: &str, value: &str) -> Result<()> {
    if name == PARTITIONER {
        options.sst_partitioner_factory = match value {
            "" => None,
            value if value == null_text() => None,
            value => Some(Arc::new(partitioner(value)?)),
        };
    } else {
        let mut factories = options.table_properties_collectors.clone();
        factories.0.clear();
        for text in parts(without_braces(value)) {
            factories.0.push(Arc::new(collector(text)?));
        }
        options.table_properties_collectors = factories;
    }
    options.kept.retain(|kept| kept.name != name);
    Ok(())
}

/// Splits `{a}:{b}` at its colons.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0usize, 0, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b':' if depth == 0 => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[start..]);
    found.retain(|part| !part.trim().is_empty());
    found
}

/// The name and the settings of a component.
fn taken_apart(text: &str) -> Result<(&str, Vec<(&str, &str)>)> {
    let inner = without_braces(text);
    if !inner.contains('=') {
        return Ok((inner, Vec::new()));
    }
    let mut settings = pairs(inner)?;
    let id = settings.iter().position(|(name, _)| *name == "id");
    let id = id.map(|at| settings.remove(at).1);
    Ok((id.ok_or_else(|| Error::invalid_argument(format!("'{text}' has no id")))?, settings))
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T> {
    value.parse().map_err(|_| Error::invalid_argument(format!("{name}: '{value}' is no number")))
}

fn unknown(name: &str) -> Error {
    Error::invalid_argument(format!("there is no setting '{name}'"))
}

fn partitioner(text: &str) -> Result<SstPartitionerFixedPrefixFactory> {
    let (id, settings) = taken_apart(text)?;
    if id != SstPartitionerFixedPrefixFactory::NAME {
        return Err(Error::not_supported(format!(
            "'{id}' is not built in; supply it in code as ColumnFamilyOptions::{PARTITIONER}"
        )));
    }
    let mut length = 0;
    for (name, value) in settings {
        match name {
            "length" => length = number(name, value)?,
            _ => return Err(unknown(name)),
        }
    }
    Ok(SstPartitionerFixedPrefixFactory::new(length))
}

fn collector(text: &str) -> Result<CompactOnDeletionCollectorFactory> {
    let (id, settings) = taken_apart(text)?;
    if id != CompactOnDeletionCollectorFactory::NAME {
        return Err(Error::not_supported(format!(
            "'{id}' is not built in; supply it in code as ColumnFamilyOptions::{COLLECTORS}"
        )));
    }
    let mut factory = CompactOnDeletionCollectorFactory::new(0, 0);
    for (name, value) in settings {
        match name {
            "window_size" => factory.window_size = number(name, value)?,
            "deletion_trigger" => factory.deletion_trigger = number(name, value)?,
            "deletion_ratio" => factory.deletion_ratio = number(name, value)?,
            "min_file_size" => factory.min_file_size = number(name, value)?,
            _ => return Err(unknown(name)),
        }
    }
    Ok(factory)
}
