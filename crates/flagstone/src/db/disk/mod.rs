//! What the database takes on the disk, and how it is given back.

pub(super) mod deletions;
pub(super) mod hole_speed;
pub(super) mod obsolete;
mod promise;
pub(super) mod punch;
#[cfg(test)]
mod recycling_tests;
pub(super) mod reserve;
pub(super) mod space;
