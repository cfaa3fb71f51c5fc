//! A cursor that is moved, and keeps what went wrong.

use crate::error::Error;
use crate::store::Cursor;

/// A cursor that reads the value of each key that it stands on. Each move returns that value, and
/// `None` if it is not valid any more.
pub struct Walker {
    /// The engine's cursor, or why there is none.
    cursor: Result<Cursor, Error>,
    /// What reading a value said, until it is moved again.
    failed: Option<Error>,
    /// Whether each step looks for what was written since.
    is_tailing: bool,
    /// In an iteration over history, the stored key of the version shown.
    internal_key: Option<Vec<u8>>,
}

impl Walker {
    /// One that stands on no key. A tailing one shows what is written after it was made.
    pub fn new(cursor: Result<Cursor, Error>, is_tailing: bool) -> Self {
        Self { cursor, failed: None, is_tailing, internal_key: None }
    }

    /// The cursor.
    ///
    /// # Errors
    /// Why there is none.
    pub fn into_cursor(self) -> Result<Cursor, Error> {
        self.cursor
    }

    /// Whether it stands on a key.
    #[inline]
    pub fn valid(&self) -> bool {
        self.failed.is_none() && self.cursor.as_ref().is_ok_and(Cursor::valid)
    }

    /// The error that ended the iteration, if one did.
    ///
    /// # Errors
    /// What reading files said, or the refusal of a merge operator.
    pub fn status(&self) -> Result<(), Error> {
        match (&self.cursor, &self.failed) {
            (Err(error), _) | (_, Some(error)) => Err(error.clone()),
            (Ok(cursor), None) => Ok(cursor.status()?),
        }
    }

    /// Shows the database as it is now, and stands on no key.
    ///
    /// # Errors
    /// If a file cannot be opened.
    pub fn refresh(&mut self) -> Result<(), Error> {
        self.failed = None;
        self.cursor.as_mut().map_err(|error| error.clone())?.refresh()?;
        Ok(())
    }

    /// Moves to the first key.
    pub fn seek_to_first(&mut self) -> Option<&[u8]> {
        self.look_again();
        self.go(Cursor::seek_to_first)
    }

    /// Moves to the last key.
    pub fn seek_to_last(&mut self) -> Option<&[u8]> {
        if self.refuses_to_go_back() {
            return None;
        }
        self.go(Cursor::seek_to_last)
    }

    /// Moves to `key`, or to the next one behind it.
    pub fn seek(&mut self, key: &[u8]) -> Option<&[u8]> {
        self.look_again();
        self.go(|cursor| cursor.seek(key))
    }

    /// Moves to `key`, or to the next one before it.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Option<&[u8]> {
        if self.refuses_to_go_back() {
            return None;
        }
        self.go(|cursor| cursor.seek_for_prev(key))
    }

    /// Moves to the next key; does nothing unless it is valid.
    #[expect(clippy::should_implement_trait, reason = "an iterator of Rust's lends nothing")]
    #[inline]
    pub fn next(&mut self) -> Option<&[u8]> {
        if !self.valid() {
            return None;
        }
        if !self.is_tailing {
            return self.go(Cursor::next);
        }
        self.next_of_now()
    }

    #[cold]
    fn next_of_now(&mut self) -> Option<&[u8]> {
        let key = self.item().map(|(key, _)| key.to_vec()).unwrap_or_default();
        self.look_again();
        self.go(|cursor| {
            cursor.seek(&key);
            if cursor.valid() && cursor.key() == key {
                cursor.next();
            }
        })
    }

    /// Moves to the key before; does nothing unless it is valid.
    pub fn prev(&mut self) -> Option<&[u8]> {
        if !self.valid() || self.refuses_to_go_back() {
            return None;
        }
        self.go(Cursor::prev)
    }

    /// The key, if it is valid.
    #[inline]
    pub fn key(&self) -> Option<&[u8]> {
        let cursor = self.cursor.as_ref().ok().filter(|_| self.valid())?;
        Some(self.internal_key.as_deref().unwrap_or_else(|| cursor.key()))
    }

    /// The key and the value, if it is valid.
    pub fn item(&self) -> Option<(&[u8], &[u8])> {
        let key = self.key()?;
        Some((key, self.cursor.as_ref().ok()?.found_value()?))
    }

    /// The timestamp of the version shown, if it is valid.
    pub fn timestamp(&self) -> Option<&[u8]> {
        match self.cursor.as_ref().ok().filter(|_| self.valid())? {
            Cursor::Plain(inner) => Some(inner.timestamp()),
            Cursor::Expiring(_) | Cursor::Overlaid(_) => Some(&[]),
        }
    }

    /// Moves, and reads the value there: what it says must be known before it is asked for.
    #[inline]
    fn go(&mut self, step: impl FnOnce(&mut Cursor)) -> Option<&[u8]> {
        let Self { cursor: Ok(cursor), failed, internal_key, .. } = self else { return None };
        *failed = None;
        step(cursor);
        if !cursor.valid() {
            *internal_key = None;
            return None;
        }
        *internal_key = match cursor {
            Cursor::Plain(inner) => inner.internal_key(),
            _ => None,
        };
        match cursor.load_value() {
            Ok(value) => Some(value),
            Err(error) => {
                *failed = Some(error.into());
                None
            }
        }
    }

    /// Goes on with the database as it is now, if it is a tailing one.
    fn look_again(&mut self) {
        if self.is_tailing
            && let Ok(cursor) = &mut self.cursor
            && let Err(error) = cursor.refresh()
        {
            self.cursor = Err(error.into());
        }
    }

    /// A tailing cursor only goes forward, as in RocksDB.
    fn refuses_to_go_back(&mut self) -> bool {
        if self.is_tailing {
            self.failed = Some(Error::not_supported("a tailing iterator does not go back"));
        }
        self.is_tailing
    }
}
