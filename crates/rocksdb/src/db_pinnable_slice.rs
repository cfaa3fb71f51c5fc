//! Values that are not copied.

use std::marker::PhantomData;
use std::ops::Deref;

use flagstone::Value;

use crate::db::DB;

/// A value that keeps the cached block it lies in, instead of being copied out of it.
pub struct DBPinnableSlice<'a> {
    value: Value,
    database: PhantomData<&'a DB>,
}

impl DBPinnableSlice<'_> {
    pub(crate) fn new(value: Value) -> Self {
        Self { value, database: PhantomData }
    }
}

impl AsRef<[u8]> for DBPinnableSlice<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.value
    }
}

impl Deref for DBPinnableSlice<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.value
    }
}
