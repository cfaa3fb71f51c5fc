//! The collectors of a table's properties.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::base::{
    CollectedEntry, CollectorContext, CollectorFactories, Error, Result, TablePropertiesCollector,
    TablePropertiesCollectorFactory, UserProperties,
};

/// Bytes of names and values that one collector may give a table: properties must fit into a block
/// and are kept in memory with each open table.
const BYTES_MAX: usize = 16 << 20;

/// Prefixes of the engines' own names.
const RESERVED: [&[u8]; 2] = [b"rocksdb.", b"flagstone."];

/// The collectors that have not failed, with the names of their factories.
pub(super) struct Collectors(Vec<(String, Box<dyn TablePropertiesCollector>)>);

impl Collectors {
    pub(super) fn new(factories: &CollectorFactories, context: CollectorContext) -> Self {
        let create = |factory: &Arc<dyn TablePropertiesCollectorFactory>| {
            let created = catch_unwind(AssertUnwindSafe(|| factory.create(&context)));
            let name = factory.name().to_string();
            let created = created.unwrap_or_else(|_| {
                tracing::error!(%name, "a factory of table properties collectors panicked");
                None
            });
            created.map(|collector| (name, collector))
        };
        Self(factories.0.iter().filter_map(create).collect())
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, entry: &CollectedEntry<'_>) {
        self.each("add", |collector| collector.add(entry));
    }

    pub(super) fn block_added(&mut self, bytes: usize) {
        self.each("block_add", |collector| {
            collector.block_add(bytes as u64);
            Ok(())
        });
    }

    /// The properties of all, and whether any wants the table to be compacted.
    pub(super) fn finish(&mut self) -> (UserProperties, bool) {
        let (mut properties, mut needs_compaction) = (UserProperties::new(), false);
        self.each("finish", |collector| {
            let found = collector.finish()?;
            check(&found)?;
            properties.extend(found);
            needs_compaction |= collector.need_compact();
            Ok(())
        });
        (properties, needs_compaction)
    }

    /// Calls each; those that fail are not called again.
    fn each(
        &mut self,
        call: &str,
        mut work: impl FnMut(&mut dyn TablePropertiesCollector) -> Result<()>,
    ) {
        self.0.retain_mut(|(name, collector)| {
            match catch_unwind(AssertUnwindSafe(|| work(&mut **collector))) {
                Ok(Ok(())) => true,
                Ok(Err(error)) => {
                    tracing::error!(%name, call, %error, "a table properties collector failed");
                    false
                }
                Err(_) => {
                    tracing::error!(%name, call, "a table properties collector panicked");
                    false
                }
            }
        });
    }
}

fn check(properties: &UserProperties) -> Result<()> {
    let bytes: usize = properties.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > BYTES_MAX {
        let message = format!("{bytes} bytes of properties; a collector may give {BYTES_MAX}");
        return Err(Error::invalid_argument(message));
    }
    let is_reserved = |name: &&Vec<u8>| RESERVED.iter().any(|prefix| name.starts_with(prefix));
    match properties.keys().find(is_reserved) {
        Some(name) => {
            let name = name.escape_ascii();
            let message = format!("the property '{name}' has a name of the engine's own");
            Err(Error::invalid_argument(message))
        }
        None => Ok(()),
    }
}

/// The names of factories as a table lists them.
pub(super) fn names(factories: &CollectorFactories) -> String {
    let names: Vec<_> = factories.0.iter().map(|factory| factory.name()).collect();
    format!("[{}]", names.join(","))
}
