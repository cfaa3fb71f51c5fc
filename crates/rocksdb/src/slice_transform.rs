//! Prefixes of keys, for prefix filters and prefix seeks.

use std::sync::Arc;

use flagstone::base::prefix::UserPrefixExtractor;
use flagstone::options::PrefixExtractor;

use crate::c_text::{CStrLike, name_of};

/// Finds the prefix of a key.
pub type TransformFn = for<'a> fn(&'a [u8]) -> &'a [u8];
/// Whether a key has a prefix.
pub type InDomainFn = fn(&[u8]) -> bool;

/// How the prefix of a key is found.
pub struct SliceTransform {
    pub(crate) engine: PrefixExtractor,
}

struct Functions {
    name: String,
    transform: TransformFn,
    in_domain: Option<InDomainFn>,
}

impl UserPrefixExtractor for Functions {
    fn name(&self) -> &str {
        &self.name
    }

    fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        let has_prefix = self.in_domain.is_none_or(|in_domain| in_domain(key));
        has_prefix.then(|| (self.transform)(key))
    }
}

impl SliceTransform {
    /// A rule made of functions. Without `in_domain_fn` every key has a prefix. Tables store the
    /// name; two rules must never share one.
    ///
    /// # Panics
    /// If there is a NUL byte in the name.
    pub fn create(
        name: impl CStrLike,
        transform_fn: TransformFn,
        in_domain_fn: Option<InDomainFn>,
    ) -> Self {
        let functions =
            Functions { name: name_of(name), transform: transform_fn, in_domain: in_domain_fn };
        Self { engine: PrefixExtractor::Custom(Arc::new(functions)) }
    }

    /// The first `len` bytes; shorter keys have no prefix.
    pub fn create_fixed_prefix(len: usize) -> Self {
        Self { engine: PrefixExtractor::FixedPrefix(len) }
    }

    /// The whole key.
    pub fn create_noop() -> Self {
        Self { engine: PrefixExtractor::Noop }
    }
}
