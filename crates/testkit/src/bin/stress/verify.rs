//! Everything that the database holds against what it must hold.
//!
//! 1. Every family is read forwards, backwards and by lookups, which must agree; every value is
//!    checked alone.
//! 2. Each key must hold what was acknowledged last. An operation that was on its way is there as a
//!    whole or not at all; what an acknowledged one wrote is there.
//! 3. Writes without the WAL are found up to some moment of each thread and family, and none after
//!    it.
//! 4. Joint keys agree in all families; every byte of every file has its checksum.

use flagstone::base::counted;
use std::collections::BTreeMap;
use std::ops::Range;

use flagstone::db::{ColumnFamily, Db};
use flagstone::options::ReadOptions;

use crate::expected::{Change, Expected, Slot, Stage};
use crate::fault::{Fault, read};
use crate::space::{Class, FAMILIES, Space};
use crate::value::{Place, State, parse};

/// What every key was found to hold, by family and index.
pub type Found = Vec<Vec<State>>;

/// A key as messages name it.
pub fn name(space: &Space, place: Place) -> String {
    let key = space.key(place.index);
    let class = space.class(place.index);
    format!("family {}, key {} ({class:?})", FAMILIES[place.family], key.escape_ascii())
}

/// Reads one value that a reader returned for a key.
pub fn check_value(
    space: &Space,
    place: Place,
    how: &str,
    value: Option<&[u8]>,
) -> Result<State, Fault> {
    let Some(value) = value else { return Ok(State::default()) };
    parse(place, value).map_err(|wrong| {
        let shown = value[..value.len().min(40)].escape_ascii();
        let found = format!("{} bytes, {shown}..: {wrong}", value.len());
        Fault::new(format!("{how} of {}", name(space, place)), "a value of this key", found)
    })
}

/// The families that hold the keys.
pub fn families(db: &Db) -> Result<Vec<ColumnFamily>, Fault> {
    let find = |name: &&str| {
        db.column_family(name)
            .ok_or_else(|| Fault::new(format!("family {name}"), "that it exists", "nothing"))
    };
    FAMILIES.iter().map(find).collect()
}

/// Reads every key, in every way.
pub fn read_all(db: &Db, space: &Space, keys: Range<usize>) -> Result<Found, Fault> {
    let families = families(db)?;
    (0..FAMILIES.len())
        .map(|family| {
            let handle = &families[family];
            let forwards = scan(db, handle, space, family, &keys, true)?;
            let backwards = scan(db, handle, space, family, &keys, false)?;
            let mut looked_up = Vec::with_capacity(keys.len());
            let indexes: Vec<usize> = keys.clone().collect();
            for part in indexes.chunks(100) {
                let names: Vec<_> = part.iter().map(|&index| space.key(index)).collect();
                for (&index, value) in
                    part.iter().zip(db.multi_get_with(&ReadOptions::default(), handle, &names))
                {
                    let place = Place { family, index };
                    let value = read(format!("multi_get of {}", name(space, place)), value)?;
                    looked_up.push(check_value(space, place, "multi_get", value.as_deref())?);
                }
            }
            for (how, other) in [("a scan backwards", &backwards), ("multi_get", &looked_up)] {
                if let Some(at) = (0..keys.len()).find(|&at| forwards[at] != other[at]) {
                    let place = name(space, Place { family, index: keys.start + at });
                    return Err(Fault::new(
                        format!("{how} of {place}"),
                        format!("{}, as a scan forwards found", forwards[at]),
                        other[at].to_string(),
                    ));
                }
            }
            Ok(forwards)
        })
        .collect()
}

fn scan(
    db: &Db,
    handle: &ColumnFamily,
    space: &Space,
    family: usize,
    keys: &Range<usize>,
    forwards: bool,
) -> Result<Vec<State>, Fault> {
    let how = format!("a scan {}", if forwards { "forwards" } else { "backwards" });
    let options = ReadOptions {
        total_order_seek: true,
        iterate_lower_bound: (keys.start > 0).then(|| space.key(keys.start)),
        iterate_upper_bound: (keys.end < space.keys()).then(|| space.key(keys.end)),
        ..ReadOptions::default()
    };
    let mut found = vec![State::default(); keys.len()];
    let mut iter = read(&how, db.iter_cf(handle, &options))?;
    let mut last = None;
    if forwards {
        iter.seek_to_first()
    } else {
        iter.seek_to_last()
    }
    while iter.valid() {
        let index =
            space.index(iter.key()).filter(|index| keys.contains(index)).ok_or_else(|| {
                Fault::new(
                    &how,
                    "keys that were written",
                    format!("key {}", iter.key().escape_ascii()),
                )
            })?;
        let is_in_order =
            last.is_none_or(|last| if forwards { last < index } else { last > index });
        if !is_in_order {
            return Err(Fault::new(
                &how,
                "keys in their order",
                format!("key {index} after key {last:?}"),
            ));
        }
        last = Some(index);
        let place = Place { family, index };
        let value = read(&how, iter.value())?;
        found[index - keys.start] = check_value(space, place, &how, Some(value))?;
        if forwards { iter.next() } else { iter.prev() }
    }
    read(&how, iter.status())?;
    Ok(found)
}

/// Compares what was found with what must be there; what each key holds from now on.
pub fn judge(
    expected: &Expected,
    space: &Space,
    found: &Found,
) -> Result<Vec<(Place, Slot)>, Fault> {
    let notes = |error: std::io::Error| Fault::error("the stress test's own notes", error);
    let mut on_its_way = BTreeMap::new();
    for thread in 0..space.threads {
        let (stage, changes) = expected.on_its_way(thread).map_err(notes)?;
        let slots = changes.iter().map(|change| expected.slot(change.place));
        let slots: Vec<Slot> = slots.collect::<Result<_, _>>().map_err(notes)?;
        judge_operation(space, found, stage, &changes, &slots)?;
        for change in changes {
            on_its_way.insert((change.place.family, change.place.index), change.state);
        }
    }
    let mut settled = Vec::new();
    let mut cuts = BTreeMap::new();
    for (family, states) in found.iter().enumerate() {
        for (index, &here) in states.iter().enumerate() {
            let place = Place { family, index };
            let slot = expected.slot(place).map_err(notes)?;
            let wanted =
                on_its_way.get(&(family, index)).filter(|state| state.looks_like(here)).copied();
            let at = slot.states().iter().rposition(|state| state.looks_like(here));
            let holds = match (wanted, at) {
                (Some(state), _) => state,
                (None, Some(at)) => {
                    let cut: &mut Cut = cuts.entry((space.owner(index), family)).or_default();
                    cut.note(&slot, here, at, place);
                    slot.states()[at]
                }
                (None, None) => {
                    let states: Vec<_> = slot.states().iter().map(ToString::to_string).collect();
                    return Err(Fault::new(
                        name(space, place),
                        states.join(", or "),
                        here.to_string(),
                    ));
                }
            };
            if wanted.is_some() || slot.last() != holds || !slot.is_certain() {
                settled.push((place, Slot::certain(holds)));
            }
        }
    }
    cuts.values().try_for_each(|cut| cut.judge(space))?;
    judge_joint_keys(space, found)?;
    Ok(settled)
}

/// All or nothing.
fn judge_operation(
    space: &Space,
    found: &Found,
    stage: Stage,
    changes: &[Change],
    slots: &[Slot],
) -> Result<(), Fault> {
    let here = |change: &Change| found[change.place.family][change.place.index];
    let missing = changes.iter().find(|change| !change.state.looks_like(here(change)));
    let Some(missing) = missing else { return Ok(()) };
    if stage == Stage::Acknowledged {
        let place = format!(
            "{} of an acknowledged operation on {}",
            name(space, missing.place),
            counted(changes.len(), "key")
        );
        return Err(Fault::new(place, missing.state.to_string(), here(missing).to_string()));
    }
    // Something is missing, so nothing may be there; what looks the same before and after says
    // nothing.
    let done = changes.iter().zip(slots).find(|(change, slot)| {
        let found = here(change);
        change.state.looks_like(found) && !slot.states().iter().any(|state| state.looks_like(found))
    });
    match done {
        None => Ok(()),
        Some((done, _)) => Err(Fault::new(
            format!("an operation on {} that was on its way", counted(changes.len(), "key")),
            "all of it, or nothing",
            format!(
                "{}: {}; but {}: {}",
                name(space, done.place),
                here(done),
                name(space, missing.place),
                here(missing)
            ),
        )),
    }
}

/// Up to which version the unlogged writes of a thread to a family survived.
#[derive(Default)]
struct Cut {
    /// The last that surely did.
    kept: Option<(u64, Place)>,
    /// The first that surely did not.
    lost: Option<(u64, Place)>,
}

impl Cut {
    /// `last` is the newest state that looks like what was found. Where several do (all of them:
    /// nothing), only the oldest surely survived.
    fn note(&mut self, slot: &Slot, here: State, last: usize, place: Place) {
        let states = slot.states();
        let first = states.iter().position(|state| state.looks_like(here)).unwrap_or(last);
        // The oldest state is not an unlogged write, or was flushed long ago.
        if first > 0 && self.kept.is_none_or(|(version, _)| version < states[first].version()) {
            self.kept = Some((states[first].version(), place));
        }
        if let Some(next) = states.get(last + 1)
            && self.lost.is_none_or(|(version, _)| version > next.version())
        {
            self.lost = Some((next.version(), place));
        }
    }

    fn judge(&self, space: &Space) -> Result<(), Fault> {
        match (self.kept, self.lost) {
            (Some((kept, at)), Some((lost, missing))) if kept >= lost => Err(Fault::new(
                format!("unlogged writes to {}", name(space, at)),
                format!(
                    "nothing from version {lost} on, which was lost from {}",
                    name(space, missing)
                ),
                format!("version {kept}"),
            )),
            _ => Ok(()),
        }
    }
}

/// Keys that are only written by batches over all families agree in all.
pub fn judge_joint_keys(space: &Space, found: &Found) -> Result<(), Fault> {
    for thread in 0..space.threads {
        for index in space.of_class(thread, Class::Joint) {
            check_joint(
                space,
                index,
                &found.iter().map(|family| family[index]).collect::<Vec<_>>(),
            )?;
        }
    }
    Ok(())
}

/// The states of a joint key, one a family, must be one.
pub fn check_joint(space: &Space, index: usize, states: &[State]) -> Result<(), Fault> {
    let first = states[0];
    match states.iter().position(|state| !state.looks_like(first)) {
        None => Ok(()),
        Some(family) => Err(Fault::new(
            name(space, Place { family, index }),
            format!("{first}, as in family {}", FAMILIES[0]),
            states[family].to_string(),
        )),
    }
}

/// Every checksum, and every file that is named.
pub fn check_files(db: &Db) -> Result<(), Fault> {
    let report = db.verify(|_| {});
    let checked = read("a look into the directory", db.check())?;
    match report.faults.iter().chain(&checked.faults).next() {
        None => Ok(()),
        Some(fault) => Err(Fault::error("the files of the database", &fault.error)),
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
