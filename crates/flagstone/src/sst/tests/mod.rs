//! Tables as a whole.

mod damage;
mod earlier;
mod embedded;
mod embedded_damage;
mod fixtures;
mod forms;
mod golden;
mod guides;
mod missing;
mod prefixes;
mod referee;
mod round_trip;
mod super_blocks;
pub(super) mod support;
