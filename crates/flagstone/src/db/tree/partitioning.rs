//! The application's say in where tables end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::base::{Comparator, PartitionerContext, SstPartitioner};
use crate::compaction::pick::{CompactionPlan, LevelInput};
use crate::db::family::Family;
use crate::manifest::{TableFile, Version};
use crate::options::{ColumnFamilyOptions, CompactionStyle};

/// What cuts the tables of a compaction, if the application has something that does. Tables of
/// level 0 are not cut.
pub(in crate::db) fn partitioner_of(
    family: &Family,
    version: &Version,
    plan: &CompactionPlan,
    is_manual: bool,
) -> Option<Box<dyn SstPartitioner>> {
    create(&family.options.load(), version, plan, is_manual)
}

/// Has a plan rewrite tables that would move to another level as they are, if the application wants
/// any of them to be cut. It is asked while the state is locked; a panic counts as no answer.
///
/// Of several tables of level 0, which tables below may lie between, those move that may. Only if
/// none may, one is rewritten.
pub(in crate::db) fn cut_before_moving(
    options: &ColumnFamilyOptions,
    version: &Version,
    plan: &mut CompactionPlan,
    is_manual: bool,
) {
    if !plan.trivial_move || options.sst_partitioner_factory.is_none() {
        return;
    }
    let Some(movable) = movable(options, version, plan, is_manual) else { return };
    let all = plan.files().count();
    let is_apart = !is_manual
        && options.compaction_style == CompactionStyle::Level
        && plan.start_level() == 0
        && all > 1;
    match &mut plan.inputs[..] {
        _ if movable.len() == all => {}
        [LevelInput { files, .. }] if is_apart && !movable.is_empty() => *files = movable,
        // The oldest.
        [LevelInput { files, .. }] if is_apart => {
            *files = files.last().cloned().into_iter().collect();
            plan.trivial_move = false;
        }
        _ => plan.trivial_move = false,
    }
}

/// The tables of a plan that the application lets move; `None` if it has no say.
fn movable(
    options: &ColumnFamilyOptions,
    version: &Version,
    plan: &CompactionPlan,
    is_manual: bool,
) -> Option<Vec<Arc<TableFile>>> {
    let ask = || {
        let mut partitioner = create(options, version, plan, is_manual)?;
        let mut may_move = |file: &TableFile| {
            let (smallest, largest) = (file.meta.smallest.user_key(), file.meta.largest.user_key());
            partitioner.can_do_trivial_move(smallest, largest)
        };
        let files = plan.files().filter(|(_, file)| may_move(file));
        Some(files.map(|(_, file)| file.clone()).collect())
    };
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|_| {
        tracing::error!("a partitioner panicked");
        None
    })
}

fn create(
    options: &ColumnFamilyOptions,
    version: &Version,
    plan: &CompactionPlan,
    is_manual: bool,
) -> Option<Box<dyn SstPartitioner>> {
    let factory = options.sst_partitioner_factory.as_ref()?;
    if plan.output_level == 0 {
        return None;
    }
    let (smallest, largest) = bounds(&options.comparator, plan)?;
    let is_full = plan.files().count() == version.files().count();
    let level = plan.output_level;
    factory.create(&PartitionerContext::new((is_full, is_manual), level, smallest, largest))
}

/// The smallest and largest user key of a plan's tables.
fn bounds<'a>(user: &Comparator, plan: &'a CompactionPlan) -> Option<(&'a [u8], &'a [u8])> {
    let of_files =
        plan.files().map(|(_, file)| (file.meta.smallest.user_key(), file.meta.largest.user_key()));
    of_files.reduce(|all, one| {
        let smallest = if user.compare(one.0, all.0).is_lt() { one.0 } else { all.0 };
        let largest = if user.compare(one.1, all.1).is_gt() { one.1 } else { all.1 };
        (smallest, largest)
    })
}
