//! Compactions that a program asks for, and automatic ones that it holds back.

pub(in crate::db) mod collect;
pub(in crate::db) mod compact_files;
mod damaged_files;
pub(in crate::db) mod flush;
pub(in crate::db) mod held;
mod history;
pub(in crate::db) mod manual;
