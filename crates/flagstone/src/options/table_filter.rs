//! Which tables an iterator reads.

use std::fmt;
use std::sync::Arc;

use crate::sst::TableProperties;

/// Says of a table, by its properties, whether an iterator reads it
/// ([`ReadOptions::table_filter`](super::ReadOptions::table_filter)).
///
/// ```
/// use flagstone::{ReadOptions, TableFilter};
///
/// let recent = TableFilter::new(|table| table.newest_key_time >= 1_700_000_000);
/// let options = ReadOptions { table_filter: Some(recent), ..ReadOptions::default() };
/// # assert_eq!(options, options.clone());
/// ```
#[derive(Clone)]
pub struct TableFilter(Arc<Admits>);

type Admits = dyn Fn(&TableProperties) -> bool + Send + Sync;

impl TableFilter {
    /// Reads the tables for which `admits` returns true.
    pub fn new(admits: impl Fn(&TableProperties) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(admits))
    }

    /// Whether a table with these properties is read.
    pub(crate) fn admits(&self, properties: &TableProperties) -> bool {
        (self.0)(properties)
    }
}

/// Filters are equal if they are the same one.
impl PartialEq for TableFilter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for TableFilter {}

impl fmt::Debug for TableFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TableFilter")
    }
}
