//! Reads, compared with the model.

use flagstone::base::Code;
use flagstone::db::{ColumnFamily, Iter};
use flagstone::options::ReadOptions;

use super::life::Life;
use super::operation::Move;
use super::task::{Scan, get_by_task};
use crate::compare;
use crate::model::{Entry, Family};

/// An open iterator, the family as it was when it was opened, and the key that it must stand on.
pub(super) struct Reader {
    iter: Iter,
    name: String,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    family: Family,
    at: Option<Vec<u8>>,
    /// Whether it goes on in newer files by itself.
    pub(super) moves_on: bool,
    /// Whether it may read no file or step over few entries only.
    is_limited: bool,
    /// Whether it may give up for that.
    may_give_up: bool,
}

/// More cursors than this at a time show nothing new.
const SCANS_MAX: usize = 4;

/// More hidden entries than there are.
const ALL_HIDDEN: u64 = 1 << 40;

impl Life {
    pub(super) fn get(
        &self,
        name: &str,
        snapshot: Option<usize>,
        only_cached: bool,
        keys: &[Vec<u8>],
    ) {
        let (options, model) = self.moment(snapshot);
        if let Some(handle) = self.family(name) {
            let options = ReadOptions { cache_only: only_cached, ..options };
            if self.any(2) > 0 {
                get_by_task(&self.db, &handle, &model.families[name], &options, keys);
            }
            compare::check_lookups(&self.db, &handle, &model.families[name], &options, keys);
            if only_cached && self.is_in_memory(name) {
                // Values may lie in blob files that nobody lists yet.
                for key in keys.iter().filter(|key| model.families[name].get(key).is_none()) {
                    let found =
                        self.db.get_with(&options, &handle, key).expect("an answer from memory");
                    assert!(found.is_none(), "{} is found in memory", key.escape_ascii());
                }
            }
        }
    }

    /// A family that is there, how to read it at that moment between the bounds, and what is to be
    /// found.
    pub(super) fn within(
        &self,
        name: &str,
        snapshot: Option<usize>,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
    ) -> Option<(ColumnFamily, ReadOptions, Family)> {
        let handle = self.family(name)?;
        let (options, model) = self.moment(snapshot);
        let options = ReadOptions {
            iterate_lower_bound: lower.map(<[u8]>::to_vec),
            iterate_upper_bound: upper.map(<[u8]>::to_vec),
            ..options
        };
        let family = model.families[name].within(lower, upper);
        Some((handle, options, family))
    }

    pub(super) fn open_scan(
        &mut self,
        name: &str,
        snapshot: Option<usize>,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
    ) {
        let Some((handle, options, family)) = self.within(name, snapshot, lower, upper) else {
            return;
        };
        let entries = self.db.iter_async(&handle, &options);
        if self.held.scans.len() == SCANS_MAX {
            self.held.scans.remove(0);
        }
        self.held.scans.push(Scan::new(entries, family));
    }

    pub(super) fn open_iterator(
        &mut self,
        name: &str,
        snapshot: Option<usize>,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
    ) {
        let Some((handle, options, family)) = self.within(name, snapshot, lower, upper) else {
            return;
        };
        let options = ReadOptions {
            cache_only: self.any(9) == 0,
            max_skippable_internal_keys: [0, 0, 0, 0, ALL_HIDDEN, 1, 5][self.any(7)],
            // It may be refreshed, and show what was deleted since.
            ignore_range_deletions: false,
            ..options
        };
        let needs_files = !self.is_in_memory(name);
        let iter = match self.db.iter_cf(&handle, &options) {
            // The table is not open.
            Err(error) if options.cache_only && needs_files && error.code() == Code::Incomplete => {
                return;
            }
            iter => iter.expect("an iterator"),
        };
        let (lower, upper) = (lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec));
        let moves_on = options.auto_refresh_iterator_with_snapshot;
        let skips_few = (1..ALL_HIDDEN).contains(&options.max_skippable_internal_keys);
        let is_limited = options.cache_only || skips_few;
        let may_give_up = skips_few || options.cache_only && (moves_on || needs_files);
        let (name, at) = (name.to_string(), None);
        let reader =
            Reader { iter, name, lower, upper, family, at, moves_on, is_limited, may_give_up };
        self.held.readers.push(reader);
    }

    /// Whether no file has anything of a family, nor will have while somebody reads.
    fn is_in_memory(&self, name: &str) -> bool {
        self.unasked.is_some() && self.db.live_files().iter().all(|file| file.column_family != name)
    }

    /// An iterator over a family that is gone stays as it is.
    pub(super) fn refresh_iterator(&mut self, index: usize) {
        let reader = &mut self.held.readers[index];
        if let Some(family) = self.model.families.get(&reader.name) {
            match reader.iter.refresh() {
                // It is as it was.
                Err(error) if reader.is_limited && error.code() == Code::Incomplete => return,
                refreshed => refreshed.expect("a newer state"),
            }
            assert!(!reader.iter.valid(), "a refreshed iterator stands nowhere");
            reader.family = family.within(reader.lower.as_deref(), reader.upper.as_deref());
            (reader.at, reader.moves_on, reader.may_give_up) = (None, false, reader.is_limited);
        }
    }

    /// Another family may get the name of one that is dropped.
    pub(super) fn forget_name(&mut self, name: &str) {
        self.held
            .readers
            .iter_mut()
            .filter(|reader| reader.name == name)
            .for_each(|reader| reader.name.clear());
    }

    /// With a prefix extractor, a seek that may use the filter finds the keys of its own prefix, in
    /// both directions, also where it turns round. Without a prefix it finds all, as the ends do,
    /// unless they are bounds.
    pub(super) fn prefix_scan(&self, name: &str, snapshot: Option<usize>, target: &[u8]) {
        let Some(extractor) = &self.setup.chosen.family(name).prefix_extractor else { return };
        let prefix = extractor.prefix(target);
        let [lower, upper] = self.some_bounds(name);
        let within = self.within(name, snapshot, lower.as_deref(), upper.as_deref());
        let Some((handle, options, model)) = within else { return };
        let options =
            ReadOptions { total_order_seek: false, prefix_same_as_start: true, ..options };
        let mut iter = self.db.iter_cf(&handle, &options).expect("an iterator");
        let stays = |(key, _): &Entry<'_>| prefix.is_none() || extractor.prefix(key) == prefix;
        iter.seek(target);
        check_run(&model, &mut iter, model.from(target).take_while(stays), Iter::next);
        iter.seek_for_prev(target);
        check_run(&model, &mut iter, model.back_from(target).take_while(stays), Iter::prev);
        let steps = self.any(3);
        iter.seek(target);
        if let Some(at) =
            check_steps(&model, &mut iter, model.from(target).take_while(stays), Iter::next, steps)
        {
            iter.prev();
            check_run(&model, &mut iter, model.back_from(at).skip(1).take_while(stays), Iter::prev);
        }
        iter.seek_for_prev(target);
        let back = model.back_from(target).take_while(stays);
        if let Some(at) = check_steps(&model, &mut iter, back, Iter::prev, steps) {
            iter.next();
            check_run(&model, &mut iter, model.from(at).skip(1).take_while(stays), Iter::next);
        }
        if lower.is_none() {
            iter.seek_to_first();
            check_stop(&model, &mut model.iter(), &mut iter, false, || {
                format!("{name}: the first key of a prefix scan")
            });
        }
        iter.seek_to_last();
        check_stop(&model, &mut model.iter_back(), &mut iter, false, || {
            format!("{name}: the last key of a prefix scan")
        });
    }

    /// Bounds now and then, at keys of the family.
    fn some_bounds(&self, name: &str) -> [Option<Vec<u8>>; 2] {
        let keys: Vec<_> =
            self.model.families.get(name).into_iter().flat_map(Family::iter).collect();
        [(4, 17), (6, 19)].map(|(one_in, parts)| {
            let at = self.any(parts) * keys.len() / parts;
            let (key, _) = keys.get(at).filter(|_| self.any(one_in) == 0)?;
            Some((*key).clone())
        })
    }
}

/// Steps on so often, if there is so much; the key that was come to.
fn check_steps<'a>(
    model: &'a Family,
    iter: &mut Iter,
    mut expected: impl Iterator<Item = Entry<'a>>,
    step: impl Fn(&mut Iter),
    count: usize,
) -> Option<&'a [u8]> {
    let mut check = |iter: &mut Iter| {
        check_stop(model, &mut expected, iter, false, || {
            "a prefix scan that turns round".to_string()
        })
    };
    let mut at = check(iter);
    for _ in 0..count {
        at?;
        step(iter);
        at = check(iter);
    }
    at.map(|(key, _)| &**key)
}

/// From where a prefix scan stands to its end.
fn check_run<'a>(
    model: &'a Family,
    iter: &mut Iter,
    mut expected: impl Iterator<Item = Entry<'a>>,
    step: impl Fn(&mut Iter),
) {
    while check_stop(model, &mut expected, iter, false, || "a prefix scan".to_string()).is_some() {
        step(iter);
    }
}

/// Compares where an iterator stands with the next entry that is expected, which is returned;
/// without the value, if that `may_be_elsewhere` than in memory.
fn check_stop<'a>(
    family: &'a Family,
    expected: &mut dyn Iterator<Item = Entry<'a>>,
    iter: &mut Iter,
    may_be_elsewhere: bool,
    where_it_stands: impl Fn() -> String,
) -> Option<Entry<'a>> {
    iter.status().expect("no error");
    let found = iter.valid().then(|| family.known_as(iter.key()).into_owned());
    let entry = family.stop(expected, found.as_deref());
    let show = |key: &[u8]| key.escape_ascii().to_string();
    let expected = entry.map(|(key, _)| show(key));
    assert_eq!(found.as_deref().map(show), expected, "{}", where_it_stands());
    if let Some(entry) = entry {
        let value = match iter.value() {
            Err(error) if may_be_elsewhere && error.code() == Code::Incomplete => {
                return Some(entry);
            }
            value => value.expect("a value"),
        };
        assert!(
            family.may_have(entry, value),
            "{}: another value at {}",
            where_it_stands(),
            show(entry.0)
        );
    }
    entry
}

impl Reader {
    /// Moves as told, and checks every stop.
    pub(super) fn walk(&mut self, moves: &[Move]) {
        moves.iter().for_each(|step| self.go(step));
    }

    /// To the end from where it is, and all the way back.
    pub(super) fn walk_through(&mut self) {
        while self.at.is_some() {
            self.go(&Move::Next);
        }
        self.go(&Move::Last);
        while self.at.is_some() {
            self.go(&Move::Prev);
        }
    }

    fn go(&mut self, step: &Move) {
        let (iter, family) = (&mut self.iter, &self.family);
        let mut expected: Box<dyn Iterator<Item = Entry<'_>>> = match (step, self.at.take()) {
            (Move::First, _) | (Move::Next, None) => {
                iter.seek_to_first();
                Box::new(family.iter())
            }
            (Move::Last, _) | (Move::Prev, None) => {
                iter.seek_to_last();
                Box::new(family.iter_back())
            }
            (Move::Seek(target), _) => {
                iter.seek(target);
                Box::new(family.from(target))
            }
            (Move::Back(target), _) => {
                iter.seek_for_prev(target);
                Box::new(family.back_from(target))
            }
            (Move::Next, Some(at)) => {
                iter.next();
                Box::new(family.from(&at).skip(1))
            }
            (Move::Prev, Some(at)) => {
                iter.prev();
                Box::new(family.back_from(&at).skip(1))
            }
        };
        if self.may_give_up && iter.status().is_err_and(|error| error.code() == Code::Incomplete) {
            assert!(!iter.valid(), "an iterator that gave up stands nowhere");
            return;
        }
        let stop = check_stop(family, &mut *expected, iter, self.is_limited, || {
            format!("where an iterator stands after {step:?}")
        });
        self.at = stop.map(|(key, _)| key.clone());
    }
}
