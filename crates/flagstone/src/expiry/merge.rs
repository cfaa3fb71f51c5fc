//! The merge operator that hides stamps from the application's operator.

use std::sync::Arc;

use super::stamp::{Lifetime, split, stamped};
use crate::base::Error;
use crate::base::merge::{MergeFailureScope, MergeOperator};

/// Takes the stamps off a value and its operands, and puts one on what they come to: to merge is to
/// write.
///
/// As RocksDB does, it puts the present time there, so that what it returns depends on when it is
/// asked; and it does not ask whether the value has expired. Where readers find nothing that has,
/// it does not matter in how many steps the operands are put together, nor when: the time is that
/// of the last operand, and what had expired before an operand was written, a value or what the
/// operands before had come to, is not there for it.
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

    /// How many of the operands come to nothing, as what they had made of the value expired before
    /// the next one was written; `None` if all count, and the value does.
    fn expired(&self, value: Option<u32>, operands: &[u32]) -> Option<usize> {
        let before = |at: usize| match at.checked_sub(1) {
            Some(last) => Some(self.lifetime.stamp_of_value(operands[last])),
            None => value,
        };
        let is_late = |at: &usize| {
            before(*at).is_some_and(|stamp| self.lifetime.is_stale(stamp, u64::from(operands[*at])))
        };
        (0..operands.len()).rev().find(is_late).filter(|_| self.lifetime.is_strict())
    }

    /// When what these operands come to was written.
    fn written(&self, operands: &[u32]) -> u32 {
        match operands.last() {
            Some(last) if self.lifetime.is_strict() => *last,
            _ => self.lifetime.stamp_of_now(),
        }
    }
}

/// Operands without their stamps, and these; the oldest first.
fn split_all<'a>(operands: &[&'a [u8]]) -> Option<(Vec<&'a [u8]>, Vec<u32>)> {
    operands.iter().map(|operand| split(operand)).collect()
}

impl MergeOperator for TtlMergeOperator {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn option_text(&self) -> String {
        format!("{{id={};user_operator={};}}", Self::NAME, self.user.option_text())
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let (operands, stamps) = split_all(operands)?;
        let existing = match existing {
            Some(stored) => Some(split(stored)?),
            None => None,
        };
        let merged = match self.expired(existing.map(|(_, stamp)| stamp), &stamps) {
            Some(expired) => self.user.full_merge(key, None, &operands[expired..]),
            None => self.user.full_merge(key, existing.map(|(value, _)| value), &operands),
        };
        Some(stamped(&merged?, self.lifetime.stamp_of_value(self.written(&stamps))))
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let (operands, stamps) = split_all(operands)?;
        // What lies below may have expired between two of them, or before the first: one stamp
        // cannot say both.
        if self.lifetime.is_strict() && stamps.iter().any(|stamp| *stamp != stamps[0]) {
            return None;
        }
        let combined = self.user.partial_merge(key, &operands)?;
        Some(stamped(&combined, self.written(&stamps)))
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
