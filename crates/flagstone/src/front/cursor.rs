//! A cursor of a program: the engine's own, one that takes off stamps, or one that shows the
//! changes of a transaction.

use std::fmt;

use crate::base::{Error, Result, SequenceNumber, ValueType, WideColumns};
use crate::db::{Iter, Value, ValueReader};
use crate::transactions::OverlaidIter;
use crate::ttl::TtlIter;

/// A cursor over the keys of a family: made by [`View::cursor`](crate::View::cursor). It moves to
/// any key, and lends out what it stands on.
///
/// ```
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = flagstone::Db::open(directory.path())?;
/// for city in ["athens", "cairo", "delhi"] {
///     db.put(city, "")?;
/// }
/// let mut cursor = db.cursor(&Default::default())?;
/// cursor.seek("b");
/// assert_eq!(cursor.key(), b"cairo");
/// cursor.prev();
/// assert_eq!(cursor.key(), b"athens");
/// cursor.prev();
/// assert!(!cursor.valid());
/// // Whether it has come to the end, or met an error.
/// cursor.status()?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "DBRawIterator")]
#[doc(alias = "Iterator")]
pub struct Cursor(pub(super) Kind);

pub(super) enum Kind {
    Plain(Iter),
    Expiring(TtlIter),
    LaidOver(Box<OverlaidIter>),
}

macro_rules! each {
    ($cursor:expr, $inner:ident => $do:expr) => {
        match $cursor {
            Kind::Plain($inner) => $do,
            Kind::Expiring($inner) => $do,
            Kind::LaidOver($inner) => $do,
        }
    };
}

impl Cursor {
    /// Whether the cursor stands on a key. If not, [`Cursor::status`] tells the end from an error.
    pub fn valid(&self) -> bool {
        each!(&self.0, inner => inner.valid())
    }

    /// Moves to the first key.
    pub fn seek_to_first(&mut self) {
        each!(&mut self.0, inner => inner.seek_to_first());
    }

    /// Moves to the last key.
    pub fn seek_to_last(&mut self) {
        each!(&mut self.0, inner => inner.seek_to_last());
    }

    /// Moves to the first key at or after `target`.
    pub fn seek(&mut self, target: impl AsRef<[u8]>) {
        each!(&mut self.0, inner => inner.seek(target));
    }

    /// Moves to the last key at or before `target`.
    pub fn seek_for_prev(&mut self, target: impl AsRef<[u8]>) {
        each!(&mut self.0, inner => inner.seek_for_prev(target));
    }

    /// Moves on.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn next(&mut self) {
        each!(&mut self.0, inner => inner.next());
    }

    /// Moves back.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn prev(&mut self) {
        each!(&mut self.0, inner => inner.prev());
    }

    /// The key.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn key(&self) -> &[u8] {
        each!(&self.0, inner => inner.key())
    }

    /// The value. A large one is read from its blob file here, and the cursor stays valid after an
    /// error.
    ///
    /// # Errors
    /// `Corruption`, also where a merge operator refuses its operands; `IoError`.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn value(&mut self) -> Result<&[u8]> {
        each!(&mut self.0, inner => inner.value())
    }

    /// The columns of the key; a plain value is one column. Copies what is stored. A large column
    /// is read from its blob file here, and the cursor stays valid after an error.
    ///
    /// # Errors
    /// As [`Cursor::value`]; `NotSupported` in a family whose values expire, which has no entities.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn columns(&mut self) -> Result<WideColumns> {
        match &mut self.0 {
            Kind::Plain(inner) => inner.columns(),
            Kind::LaidOver(inner) => inner.columns(),
            Kind::Expiring(_) => Err(expiring()),
        }
    }

    /// The timestamp of the version shown: of the newest that the value is made of. Empty in a
    /// family without timestamps.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn timestamp(&self) -> &[u8] {
        match &self.0 {
            Kind::Plain(inner) => inner.timestamp(),
            Kind::Expiring(_) | Kind::LaidOver(_) => &[],
        }
    }

    /// What the version shown is, and its sequence number, in an iteration over history
    /// ([`ReadOptions::iter_start_ts`](crate::ReadOptions)).
    ///
    /// # Panics
    /// If the cursor is not valid.
    #[doc(hidden)]
    pub fn version(&self) -> Option<(SequenceNumber, ValueType)> {
        match &self.0 {
            Kind::Plain(inner) => Some(inner.version()),
            Kind::Expiring(_) | Kind::LaidOver(_) => None,
        }
    }

    /// Whether the version shown is a deletion, as an iteration over history shows them
    /// ([`ReadOptions::iter_start_ts`](crate::ReadOptions)).
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn is_deletion(&self) -> bool {
        self.version().is_some_and(|(_, kind)| {
            matches!(
                kind,
                ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp
            )
        })
    }

    /// A reader of the value, as [`View::get_in_pieces`]. A value that is not read from a blob file
    /// as the pieces are asked for is copied.
    ///
    /// [`View::get_in_pieces`]: crate::View::get_in_pieces
    ///
    /// # Errors
    /// As [`Cursor::value`].
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn value_in_pieces(&mut self) -> Result<ValueReader> {
        match each!(&self.0, inner => inner.value_in_pieces())? {
            Some(reader) => Ok(reader),
            None => Ok(Value::from(self.value()?.to_vec()).into()),
        }
    }

    /// The error that ended the iteration, if one did.
    ///
    /// # Errors
    /// `Corruption`, `IoError`; `Incomplete` if the options forbid to go on.
    pub fn status(&self) -> Result<()> {
        each!(&self.0, inner => inner.status())
    }
}

/// For entities where values expire.
pub(super) fn expiring() -> Error {
    Error::not_supported("the family's values expire; entities have no place for the time")
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        each!(&self.0, inner => fmt::Debug::fmt(inner, f))
    }
}
