//! A cursor over a database with a batch laid over it.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::base::{Comparator, Error, MergeOperator, Result, WideColumns};
use crate::db::{Iter, StreamedValue, ValueReader};
use crate::options::ReadOptions;
use crate::transactions::delta::{Base, DeltaCursor};
use crate::transactions::streamed::StreamedValues;

/// Which of the two cursors stands on the current key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Nothing,
    Below,
    Batch,
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// A cursor over the keys of a column family as they would be if a batch were written.
///
/// It sees the batch as it was when the cursor was made, and the database as of the snapshot of its
/// [`ReadOptions`], or of that moment. Later changes of the batch do not disturb it. Used like
/// [`Cursor`](crate::Cursor): it starts out invalid, and who sees an invalid cursor asks for its
/// [`OverlaidIter::status`].
pub struct OverlaidIter {
    below: Iter,
    batch: Option<DeltaCursor>,
    order: Comparator,
    operator: Option<Arc<dyn MergeOperator>>,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    direction: Direction,
    on: On,
    /// The value of the current key, where the batch says something of it. Empty for a streamed one
    /// that was not read yet.
    value: Vec<u8>,
    /// That of the current key, if it was streamed.
    current: Option<Arc<StreamedValue>>,
    streamed: StreamedValues,
    failure: Option<Error>,
}

impl OverlaidIter {
    pub(super) fn new(
        (below, order): (Iter, Comparator),
        batch: Option<DeltaCursor>,
        streamed: StreamedValues,
        operator: Option<Arc<dyn MergeOperator>>,
        options: &ReadOptions,
    ) -> Self {
        Self {
            below,
            batch,
            order,
            operator,
            lower: options.iterate_lower_bound.clone(),
            upper: options.iterate_upper_bound.clone(),
            direction: Direction::Forward,
            on: On::Nothing,
            value: Vec::new(),
            current: None,
            streamed,
            failure: None,
        }
    }

    /// Whether the cursor stands on a key.
    pub fn valid(&self) -> bool {
        self.on != On::Nothing
    }

    /// Moves to the first key.
    pub fn seek_to_first(&mut self) {
        self.begin(Direction::Forward);
        self.below.seek_to_first();
        if let Some(batch) = &mut self.batch {
            match &self.lower {
                Some(lower) => batch.seek(lower),
                None => batch.seek_to_first(),
            }
        }
        self.settle();
    }

    /// Moves to the last key.
    pub fn seek_to_last(&mut self) {
        self.begin(Direction::Backward);
        self.below.seek_to_last();
        if let Some(batch) = &mut self.batch {
            match &self.upper {
                Some(upper) => seek_before(batch, &self.order, upper),
                None => batch.seek_to_last(),
            }
        }
        self.settle();
    }

    /// Moves to the first key at or after `target`.
    pub fn seek(&mut self, target: impl AsRef<[u8]>) {
        let target = target.as_ref();
        self.begin(Direction::Forward);
        self.below.seek(target);
        if let Some(batch) = &mut self.batch {
            match &self.lower {
                Some(lower) if self.order.compare(target, lower).is_lt() => batch.seek(lower),
                _ => batch.seek(target),
            }
        }
        self.settle();
    }

    /// Moves to the last key at or before `target`.
    pub fn seek_for_prev(&mut self, target: impl AsRef<[u8]>) {
        let target = target.as_ref();
        self.begin(Direction::Backward);
        self.below.seek_for_prev(target);
        if let Some(batch) = &mut self.batch {
            match &self.upper {
                Some(upper) if self.order.compare(target, upper).is_ge() => {
                    seek_before(batch, &self.order, upper);
                }
                _ => batch.seek_for_prev(target),
            }
        }
        self.settle();
    }

    /// Moves to the next key; does nothing on an invalid cursor.
    pub fn next(&mut self) {
        if !self.turn(Direction::Forward) {
            return;
        }
        if matches!(self.on, On::Below | On::Both) {
            self.below.next();
        }
        if let On::Batch | On::Both = self.on
            && let Some(batch) = &mut self.batch
        {
            batch.next();
        }
        self.settle();
    }

    /// Moves to the key before; does nothing on an invalid cursor.
    pub fn prev(&mut self) {
        if !self.turn(Direction::Backward) {
            return;
        }
        if matches!(self.on, On::Below | On::Both) {
            self.below.prev();
        }
        if let On::Batch | On::Both = self.on
            && let Some(batch) = &mut self.batch
        {
            batch.prev();
        }
        self.settle();
    }

    /// The current key.
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn key(&self) -> &[u8] {
        let of_batch = || self.batch.as_ref().and_then(DeltaCursor::key);
        match self.on {
            On::Below => self.below.key(),
            On::Batch | On::Both => of_batch().expect("the cursor stands on a key of the batch"),
            On::Nothing => panic!("the cursor is not valid"),
        }
    }

    /// The current value.
    ///
    /// # Errors
    /// As [`Cursor::value`](crate::Cursor::value).
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn value(&mut self) -> Result<&[u8]> {
        match self.on {
            On::Below => self.below.value(),
            On::Batch | On::Both => {
                if let Some(streamed) = self.current.as_ref().filter(|_| self.value.is_empty()) {
                    self.value = streamed.read()?.to_vec();
                }
                Ok(&self.value)
            }
            On::Nothing => panic!("the cursor is not valid"),
        }
    }

    /// The columns of the current key; a plain value is one column.
    ///
    /// # Errors
    /// As [`OverlaidIter::value`].
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn columns(&mut self) -> Result<WideColumns> {
        match self.on {
            On::Below => self.below.columns(),
            On::Batch | On::Both => Ok(self.batch_columns()?.unwrap_or_default()),
            On::Nothing => panic!("the cursor is not valid"),
        }
    }

    /// The current value, if it is in memory: in the batch, or read by [`OverlaidIter::value`].
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn found_value(&self) -> Option<&[u8]> {
        match self.on {
            On::Below => self.below.found_value(),
            On::Batch | On::Both => {
                let is_there = self.current.is_none() || !self.value.is_empty();
                is_there.then_some(&*self.value)
            }
            On::Nothing => panic!("the cursor is not valid"),
        }
    }

    /// A reader of the current value's blob file, if the value is large and lies in the database or
    /// was streamed; `None` for any other, which [`OverlaidIter::value`] returns.
    ///
    /// # Errors
    /// As [`OverlaidIter::value`].
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn value_in_pieces(&self) -> Result<Option<ValueReader>> {
        match self.on {
            On::Below => self.below.value_in_pieces(),
            On::Batch | On::Both => match &self.current {
                Some(streamed) => streamed.in_pieces(),
                None => Ok(None),
            },
            On::Nothing => panic!("the cursor is not valid"),
        }
    }

    /// The error that made the cursor invalid, if one did.
    ///
    /// # Errors
    /// As [`Cursor::status`](crate::Cursor::status); what merging the batch's operands came to.
    pub fn status(&self) -> Result<()> {
        match &self.failure {
            Some(error) => Err(error.clone()),
            None => self.below.status(),
        }
    }

    fn begin(&mut self, direction: Direction) {
        self.direction = direction;
        self.failure = None;
    }

    /// Makes both cursors stand as after a seek in `direction` to the current key; whether there is
    /// one.
    fn turn(&mut self, direction: Direction) -> bool {
        if !self.valid() {
            return false;
        }
        if self.direction != direction {
            let key = self.key().to_vec();
            match direction {
                Direction::Forward => self.seek(&key),
                Direction::Backward => self.seek_for_prev(&key),
            }
        }
        self.valid()
    }

    /// Finds the current key from where both cursors stand, in the direction.
    fn settle(&mut self) {
        loop {
            self.on = self.nearest();
            let (On::Batch | On::Both) = self.on else { return };
            match self.resolve() {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    self.failure = Some(error);
                    self.on = On::Nothing;
                    return;
                }
            }
            // The batch deletes that key.
            let (is_both, forward) = (self.on == On::Both, self.direction == Direction::Forward);
            let Some(batch) = &mut self.batch else { return };
            if forward {
                batch.next();
            } else {
                batch.prev();
            }
            match (is_both, forward) {
                (true, true) => self.below.next(),
                (true, false) => self.below.prev(),
                (false, _) => {}
            }
        }
    }

    /// Which cursor stands on the key that is next in the direction.
    fn nearest(&self) -> On {
        let batch = self.batch.as_ref().and_then(DeltaCursor::key).filter(|key| self.within(key));
        match (self.below.valid(), batch) {
            (false, None) => On::Nothing,
            // Behind an error nothing is told, also not what the batch has.
            (false, _) if self.below.status().is_err() => On::Nothing,
            (true, None) => On::Below,
            (false, Some(_)) => On::Batch,
            (true, Some(key)) => {
                let order = self.order.compare(self.below.key(), key);
                match (order, self.direction) {
                    (Ordering::Equal, _) => On::Both,
                    (Ordering::Less, Direction::Forward)
                    | (Ordering::Greater, Direction::Backward) => On::Below,
                    _ => On::Batch,
                }
            }
        }
    }

    fn within(&self, key: &[u8]) -> bool {
        self.lower.as_ref().is_none_or(|lower| self.order.compare(key, lower).is_ge())
            && self.upper.as_ref().is_none_or(|upper| self.order.compare(key, upper).is_lt())
    }

    /// The columns of the batch's key, if there are any.
    fn batch_columns(&mut self) -> Result<Option<WideColumns>> {
        let Some((batch, key)) = self.batch.as_ref().and_then(|batch| Some((batch, batch.key()?)))
        else {
            return Ok(None);
        };
        let delta = batch.delta();
        let below = match &delta.base {
            Base::Below if self.on == On::Both => Some(self.below.columns()?),
            _ => None,
        };
        let delta = delta.clone().loaded(&self.streamed)?;
        delta.columns_over(key, below, self.operator.as_deref())
    }

    /// Makes the value of the batch's key; whether there is one.
    fn resolve(&mut self) -> Result<bool> {
        let Some((batch, key)) = self.batch.as_ref().and_then(|batch| Some((batch, batch.key()?)))
        else {
            return Ok(false);
        };
        let delta = batch.delta();
        if let Some(place) = delta.streamed() {
            self.current = Some(self.streamed.at(place)?.clone());
            self.value.clear();
            return Ok(true);
        }
        self.current = None;
        if delta.needs_columns_below(self.operator.as_deref()) {
            let columns = self.batch_columns()?;
            self.value =
                columns.and_then(|all| all.get("").map(<[u8]>::to_vec)).unwrap_or_default();
            return Ok(true);
        }
        let below = match &delta.base {
            Base::Below if self.on == On::Both => Some(self.below.value()?),
            _ => None,
        };
        match delta.clone().loaded(&self.streamed)?.over(key, below, self.operator.as_deref())? {
            Some(value) => self.value = value,
            None => return Ok(false),
        }
        Ok(true)
    }
}

/// Moves to the last key before `bound`.
fn seek_before(batch: &mut DeltaCursor, order: &Comparator, bound: &[u8]) {
    batch.seek_for_prev(bound);
    if batch.key().is_some_and(|key| order.compare(key, bound).is_eq()) {
        batch.prev();
    }
}

impl fmt::Debug for OverlaidIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.valid().then(|| self.key());
        f.debug_struct("OverlaidIter").field("key", &key).finish_non_exhaustive()
    }
}
