//! Tables as a whole.

mod fixtures;
