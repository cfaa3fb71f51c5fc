//! Iterators that merge what the structures hold into what a user sees.
