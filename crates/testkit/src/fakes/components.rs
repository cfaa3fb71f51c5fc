//! Components of an application that do not do what [`crate::Model`] expects of them.

use std::cmp::Ordering;
use std::sync::Arc;

use flagstone::base::merge::{MergeFailureScope, MergeOperator};
use flagstone::base::{Error, UserComparator};
use flagstone::options::FilterDecision;

use super::Fake;

/// This comparator, or one that finds fewer keys equal.
pub(crate) fn broken_order(order: Arc<dyn UserComparator>) -> Arc<dyn UserComparator> {
    match Fake::now() {
        Some(Fake::TellKeysByBytes) => Arc::new(FinerOrder(order, |a, b| a.cmp(b))),
        Some(Fake::TellKeysByLength) => Arc::new(FinerOrder(order, |a, b| a.len().cmp(&b.len()))),
        _ => order,
    }
}

struct FinerOrder(Arc<dyn UserComparator>, fn(&[u8], &[u8]) -> Ordering);

impl UserComparator for FinerOrder {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.compare(a, b).then_with(|| (self.1)(a, b))
    }
}

/// This operator, or one that combines operands in reverse.
pub(crate) fn broken_operator(operator: Arc<dyn MergeOperator>) -> Arc<dyn MergeOperator> {
    match Fake::now() {
        Some(Fake::ReorderOperands) => Arc::new(Reversed(operator)),
        _ => operator,
    }
}

struct Reversed(Arc<dyn MergeOperator>);

fn reversed<'a>(operands: &[&'a [u8]]) -> Vec<&'a [u8]> {
    operands.iter().rev().copied().collect()
}

impl MergeOperator for Reversed {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn option_text(&self) -> String {
        self.0.option_text()
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        self.0.full_merge(key, existing, &reversed(operands))
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.0.partial_merge(key, &reversed(operands))
    }

    fn allows_single_operand(&self) -> bool {
        self.0.allows_single_operand()
    }

    fn failure_scope(&self) -> MergeFailureScope {
        self.0.failure_scope()
    }

    fn refusal(&self, key: &[u8], operand_count: usize) -> Error {
        self.0.refusal(key, operand_count)
    }
}

/// This decision of a compaction filter, or one that removes too little or too much.
pub(crate) fn broken_decision(decision: FilterDecision) -> FilterDecision {
    match (Fake::now(), decision) {
        (Some(Fake::ForgetFilteredDeletion), FilterDecision::Remove) => FilterDecision::Purge,
        (Some(Fake::SkipTooFar), FilterDecision::RemoveAndSkipUntil(mut until)) => {
            until.push(0);
            FilterDecision::RemoveAndSkipUntil(until)
        }
        (_, decision) => decision,
    }
}
