//! Merge operators as functions.
//!
//! ```
//! use flagstone_rocksdb::{DB, MergeOperands, Options};
//!
//! fn join(_key: &[u8], before: Option<&[u8]>, added: &MergeOperands) -> Option<Vec<u8>> {
//!     let parts = before.into_iter().chain(added);
//!     Some(parts.flatten().copied().collect())
//! }
//!
//! # let directory = tempfile::tempdir().unwrap();
//! let mut options = Options::default();
//! options.create_if_missing(true);
//! options.set_merge_operator_associative("join", join);
//! let db = DB::open(&options, directory.path()).unwrap();
//! db.put("word", "flag").unwrap();
//! db.merge("word", "stone").unwrap();
//! assert_eq!(db.get("word").unwrap().unwrap(), b"flagstone");
//! ```

use std::sync::Arc;

use flagstone::MergeOperator;

/// Combines the value of a key, if there is one, and its operands, oldest first; `None` if they
/// make no sense. As a partial merge it combines operands alone, or declines with `None`.
pub trait MergeFn:
    Fn(&[u8], Option<&[u8]>, &MergeOperands<'_>) -> Option<Vec<u8>> + Send + Sync + 'static
{
}

impl<F> MergeFn for F where
    F: Fn(&[u8], Option<&[u8]>, &MergeOperands<'_>) -> Option<Vec<u8>> + Send + Sync + 'static
{
}

/// The operands of a merge, oldest first.
pub struct MergeOperands<'a> {
    operands: &'a [&'a [u8]],
}

impl<'a> MergeOperands<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.operands.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.operands.is_empty()
    }

    /// The operands, oldest first.
    pub fn iter(&self) -> MergeOperandsIter<'a> {
        MergeOperandsIter { rest: self.operands.iter() }
    }
}

/// An iterator over [`MergeOperands`].
pub struct MergeOperandsIter<'a> {
    rest: std::slice::Iter<'a, &'a [u8]>,
}

impl<'a> Iterator for MergeOperandsIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.rest.next().copied()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rest.size_hint()
    }
}

impl<'a> IntoIterator for &'a MergeOperands<'_> {
    type Item = &'a [u8];
    type IntoIter = MergeOperandsIter<'a>;

    fn into_iter(self) -> MergeOperandsIter<'a> {
        self.iter()
    }
}

/// An operator of the engine's made of two functions.
struct Functions<F, P> {
    name: String,
    full: F,
    partial: P,
}

impl<F: MergeFn, P: MergeFn> MergeOperator for Functions<F, P> {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        (self.full)(key, existing, &MergeOperands { operands })
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        (self.partial)(key, None, &MergeOperands { operands })
    }
}

pub(crate) fn operator(
    name: String,
    full: impl MergeFn,
    partial: impl MergeFn,
) -> Arc<dyn MergeOperator> {
    Arc::new(Functions { name, full, partial })
}
