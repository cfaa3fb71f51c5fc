//! The grammar of a version edit.
