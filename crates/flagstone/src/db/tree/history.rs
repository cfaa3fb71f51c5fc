//! The oldest timestamp as of which a family can be read (`full_history_ts_low`).
//!
//! It is made durable before readers are held to it, and they before a job may forget what lies
//! before it.

use std::sync::Arc;

use crate::base::{Error, Result};
use crate::db::family::Family;
use crate::db::tree::Tree;
use crate::manifest::VersionEdit;

/// Raises a family's. Nothing happens if it is there already.
///
/// # Errors
/// `InvalidArgument` if it is higher already; those of the MANIFEST.
pub(in crate::db) fn raise_history_low(
    tree: &Tree,
    family: &Arc<Family>,
    low: &[u8],
) -> Result<()> {
    let mut state = tree.state.lock();
    family.check_alive()?;
    let order = family.comparator();
    if let Some(known) = family.current.load().history_low.as_deref() {
        match order.compare_timestamps(low, known) {
            std::cmp::Ordering::Less => {
                return Err(Error::invalid_argument(format!(
                    "full_history_ts_low of column family '{}' is higher already: what lies before it may \
                     be gone",
                    family.name
                )));
            }
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Greater => {}
        }
    }
    let edit =
        VersionEdit { full_history_ts_low: Some(low.to_vec()), ..VersionEdit::new(family.id) };
    tree.apply_edits(&mut state, vec![edit], &[])?;
    let now = tree.context.env.clock.now_us();
    if let Some(known) = state.families.get_mut(&family.id) {
        known.install_history_low(low, now);
    }
    Ok(())
}
