//! The application's merge operator never sees a stamp.

use std::sync::Arc;

use super::stamp::{Lifetime, split, stamped};
use crate::base::Error;
use crate::base::merge::{MergeFailureScope, MergeOperator};

/// Takes the stamps off a value and its operands, and puts one on what they come to: to merge is to write.
///
/// As RocksDB does, it puts the present time there, so that what it returns depends on when it is asked; and it does not ask
/// whether the value has expired. Where readers find nothing that has, the time is that of the newest operand, whenever the
/// operands are put together, and a value that had expired before the first of them was written is none.
pub struct TtlMergeOperator {
    user: Arc<dyn MergeOperator>,
    lifetime: Arc<Lifetime>,
}

impl TtlMergeOperator {
    /// RocksDB's name.
    pub const NAME: &'static str = "TtlMergeOperator";

    /// Around the application's operator. One that deals with stamps itself is replaced.
    pub fn around(user: Arc<dyn MergeOperator>, lifetime: Arc<Lifetime>) -> Self {
        let user = match (&*user as &dyn std::any::Any).downcast_ref::<Self>() {
            Some(stamping) => stamping.user.clone(),
            None => user,
        };
        Self { user, lifetime }
    }

    /// When what these operands come to was written.
    fn written(&self, operands: &Operands<'_>) -> u32 {
        match self.lifetime.is_strict() {
            true => operands.newest.unwrap_or_else(|| self.lifetime.stamp_of_now()),
            false => self.lifetime.stamp_of_now(),
        }
    }

    /// Whether nothing was left of a value when the first of these operands was written.
    fn had_expired(&self, stamp: u32, operands: &Operands<'_>) -> bool {
        self.lifetime.is_strict()
            && operands.first.is_some_and(|first| self.lifetime.is_stale(stamp, u64::from(first)))
    }
}

/// Operands without their stamps, the oldest first.
struct Operands<'a> {
    values: Vec<&'a [u8]>,
    first: Option<u32>,
    newest: Option<u32>,
}

impl<'a> Operands<'a> {
    fn split(operands: &[&'a [u8]]) -> Option<Self> {
        let parts = operands.iter().map(|operand| split(operand)).collect::<Option<Vec<_>>>()?;
        let stamps = || parts.iter().map(|(_, stamp)| *stamp);
        let (first, newest) = (stamps().next(), stamps().max());
        Some(Self { values: parts.iter().map(|(value, _)| *value).collect(), first, newest })
    }
}

impl MergeOperator for TtlMergeOperator {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn option_text(&self) -> String {
        format!("{{id={};user_operator={};}}", Self::NAME, self.user.option_text())
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let operands = Operands::split(operands)?;
        let existing = match existing {
            Some(stored) => Some(split(stored)?).filter(|(_, stamp)| !self.had_expired(*stamp, &operands)),
            None => None,
        };
        let merged = self.user.full_merge(key, existing.map(|(value, _)| value), &operands.values)?;
        Some(stamped(&merged, self.lifetime.stamp_of_value(self.written(&operands))))
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let operands = Operands::split(operands)?;
        let combined = self.user.partial_merge(key, &operands.values)?;
        Some(stamped(&combined, self.written(&operands)))
    }

    fn allows_single_operand(&self) -> bool {
        self.user.allows_single_operand()
    }

    fn failure_scope(&self) -> MergeFailureScope {
        self.user.failure_scope()
    }

    fn refusal(&self, key: &[u8], operand_count: usize) -> Error {
        self.user.refusal(key, operand_count)
    }
}
