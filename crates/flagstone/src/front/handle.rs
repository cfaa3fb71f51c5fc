//! What a handle of a database passes for: its family `default`, the engine's handle, a text.

use std::fmt;
use std::ops::Deref;

use crate::db;
use crate::front::database::Db;
use crate::front::family::Family;

impl Deref for Db {
    type Target = Family;

    fn deref(&self) -> &Family {
        &self.default
    }
}

impl AsRef<db::Db> for Db {
    fn as_ref(&self) -> &db::Db {
        self.engine()
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Db").field(&self.path()).finish()
    }
}
