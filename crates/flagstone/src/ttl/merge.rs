//! The application's merge operator never sees a stamp.

use std::sync::Arc;

use super::stamp::{Lifetime, split, stamped};
use crate::base::Error;
use crate::base::merge::{MergeFailureScope, MergeOperator};

/// Takes the stamps off a value and its operands, and puts the present time on what they come to, as RocksDB does: to merge
/// is to write. So what it returns depends on when it is asked, in its last four bytes.
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

    fn stamp(&self, merged: &[u8]) -> Vec<u8> {
        stamped(merged, self.lifetime.stamp_of_now())
    }
}

fn unstamped_all<'a>(operands: &[&'a [u8]]) -> Option<Vec<&'a [u8]>> {
    operands.iter().map(|operand| split(operand).map(|(operand, _)| operand)).collect()
}

impl MergeOperator for TtlMergeOperator {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn option_text(&self) -> String {
        format!("{{id={};user_operator={};}}", Self::NAME, self.user.option_text())
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let existing = match existing {
            Some(stored) => Some(split(stored)?.0),
            None => None,
        };
        let merged = self.user.full_merge(key, existing, &unstamped_all(operands)?)?;
        Some(self.stamp(&merged))
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let combined = self.user.partial_merge(key, &unstamped_all(operands)?)?;
        Some(self.stamp(&combined))
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
