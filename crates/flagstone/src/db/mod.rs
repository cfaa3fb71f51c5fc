//! The engine itself.
