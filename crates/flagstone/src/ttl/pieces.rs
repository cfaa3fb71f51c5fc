//! Large values that are read piece by piece.

use super::{Rule, TtlDb, TtlIter};
use crate::base::Result;
use crate::db::{ColumnFamily, ValueReader};
use crate::expiry::{STAMP_SIZE, no_stamp, split};
use crate::options::ReadOptions;

impl TtlDb {
    /// The value of `key`, without its stamp, to be read piece by piece, as
    /// [`Db::get_in_pieces`](crate::db::Db::get_in_pieces).
    ///
    /// # Errors
    /// As [`TtlDb::get_with`].
    pub fn get_in_pieces(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<ValueReader>> {
        let (rule, key) = (self.rule(family.id())?, key.as_ref());
        let now = rule.lifetime.now();
        let Some(mut reader) = self.base.get_in_pieces(options, family, key)? else {
            return Ok(None);
        };
        let stamp = rule.take_stamp(key, &mut reader, now)?;
        // What is hidden, `get` does not find either.
        Ok((!rule.hides(stamp, now)).then_some(reader))
    }
}

impl Rule {
    /// Takes the stamp off a value. Where the value is hidden for it, all of it is read first: the
    /// stamp may be damaged.
    pub(super) fn take_stamp(&self, key: &[u8], reader: &mut ValueReader, now: u64) -> Result<u32> {
        let stored_size = reader.size();
        let tail = reader.take_tail(STAMP_SIZE)?;
        let (_, stamp) = split(&tail).ok_or_else(|| no_stamp(key, stored_size))?;
        if self.hides(stamp, now) {
            reader.check_rest()?;
        }
        Ok(stamp)
    }
}

impl TtlIter {
    /// The value, without its stamp, to be read piece by piece, as
    /// [`Iter::value_in_pieces`](crate::db::Iter::value_in_pieces).
    ///
    /// # Errors
    /// As [`TtlIter::value`].
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn value_in_pieces(&self) -> Result<Option<ValueReader>> {
        let Some(mut reader) = self.inner.value_in_pieces()? else { return Ok(None) };
        self.rule.take_stamp(self.inner.key(), &mut reader, self.now)?;
        Ok(Some(reader))
    }
}
