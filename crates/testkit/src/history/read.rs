//! Reads, compared with the model.

use flagstone::db::Iter;
use flagstone::options::ReadOptions;

use super::life::Life;
use super::operation::Move;
use crate::compare;
use crate::model::{Entry, Family};

/// An open iterator, the family as it was when it was opened, and the key that it must stand on.
pub(super) struct Reader {
    iter: Iter,
    family: Family,
    at: Option<Vec<u8>>,
}

impl Life {
    pub(super) fn get(&self, name: &str, snapshot: Option<usize>, only_cached: bool, keys: &[Vec<u8>]) {
        let (options, model) = self.moment(snapshot);
        if let Some(handle) = self.family(name) {
            let options = ReadOptions { cache_only: only_cached, ..options };
            compare::check_lookups(&self.db, &handle, &model.families[name], &options, keys);
        }
    }

    pub(super) fn open_iterator(
        &mut self,
        name: &str,
        snapshot: Option<usize>,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
    ) {
        let Some(handle) = self.family(name) else { return };
        let (options, model) = self.moment(snapshot);
        let family = model.families[name].within(lower, upper);
        let options = ReadOptions {
            iterate_lower_bound: lower.map(<[u8]>::to_vec),
            iterate_upper_bound: upper.map(<[u8]>::to_vec),
            ..options
        };
        let iter = self.db.iter_cf(&handle, &options).expect("an iterator");
        self.readers.push(Reader { iter, family, at: None });
    }

    /// With a prefix extractor, a seek that may use the filter finds the keys of its own prefix, in both directions. Without a
    /// prefix it finds all, as the ends do.
    pub(super) fn prefix_scan(&self, name: &str, snapshot: Option<usize>, target: &[u8]) {
        let Some(handle) = self.family(name) else { return };
        let Some(extractor) = &self.chosen.family(name).prefix_extractor else { return };
        let prefix = extractor.prefix(target);
        let (options, model) = self.moment(snapshot);
        let model = &model.families[name];
        let options = ReadOptions { total_order_seek: false, prefix_same_as_start: true, ..options };
        let mut iter = self.db.iter_cf(&handle, &options).expect("an iterator");
        let stays = |(key, _): &Entry<'_>| prefix.is_none() || extractor.prefix(key) == prefix;
        iter.seek(target);
        check_run(name, &mut iter, model.from(target).take_while(stays), Iter::next);
        iter.seek_for_prev(target);
        check_run(name, &mut iter, model.back_from(target).take_while(stays), Iter::prev);
        let key = |iter: &Iter| iter.valid().then(|| iter.key().escape_ascii().to_string());
        let text = |key: Option<&Vec<u8>>| key.map(|key| key.escape_ascii().to_string());
        iter.seek_to_first();
        assert_eq!(key(&iter), text(model.first()), "{name}: the first key of a prefix scan");
        iter.seek_to_last();
        assert_eq!(key(&iter), text(model.last()), "{name}: the last key of a prefix scan");
        iter.status().expect("no error");
    }
}

/// From where a prefix scan stands to its end.
fn check_run<'a>(
    name: &str,
    iter: &mut Iter,
    expected: impl Iterator<Item = Entry<'a>>,
    step: impl Fn(&mut Iter),
) {
    for (key, value) in expected {
        assert!(iter.valid(), "{name}: {} is missing in a prefix scan", key.escape_ascii());
        assert_eq!(iter.key().escape_ascii().to_string(), key.escape_ascii().to_string());
        let found = iter.value().expect("a value");
        assert!(found == value, "{name}: {} has another value", key.escape_ascii());
        step(iter);
    }
    iter.status().expect("no error");
    assert!(!iter.valid(), "a prefix scan ends with its prefix; found {}", iter.key().escape_ascii());
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
        let expected = match (step, self.at.take()) {
            (Move::First, _) | (Move::Next, None) => {
                iter.seek_to_first();
                family.first()
            }
            (Move::Last, _) | (Move::Prev, None) => {
                iter.seek_to_last();
                family.last()
            }
            (Move::Seek(target), _) => {
                iter.seek(target);
                family.from(target).next().map(|(key, _)| key)
            }
            (Move::Back(target), _) => {
                iter.seek_for_prev(target);
                family.back_from(target).next().map(|(key, _)| key)
            }
            (Move::Next, Some(at)) => {
                iter.next();
                family.from(&at).nth(1).map(|(key, _)| key)
            }
            (Move::Prev, Some(at)) => {
                iter.prev();
                family.back_from(&at).nth(1).map(|(key, _)| key)
            }
        };
        iter.status().expect("no error");
        let show = |key: &[u8]| key.escape_ascii().to_string();
        let found = iter.valid().then(|| show(iter.key()));
        assert_eq!(found, expected.map(|key| show(key)), "where an iterator stands after {step:?}");
        if let Some(key) = expected {
            let value = iter.value().expect("a value");
            assert!(value == family.entries[key], "an iterator finds another value at {}", show(key));
        }
        self.at = expected.cloned();
    }
}
