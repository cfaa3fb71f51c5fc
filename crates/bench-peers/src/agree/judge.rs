//! Comparing what is read with the model.

use rand::RngExt;
use rand::rngs::SmallRng;

use super::model::{Family, Model, Pair};
use super::party::{Start, View, Walk};
use crate::engine::Result;

/// How a family's prefixes are told, if anybody asks for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefixes {
    None,
    Fixed(usize),
    Capped(usize),
}

impl Prefixes {
    /// As the option's text says; other than these are not drawn.
    pub fn parse(text: &str) -> Self {
        let number = |text: &str| text.parse().ok();
        match text.split_once(':') {
            Some(("fixed", length)) => number(length).map_or(Self::None, Self::Fixed),
            Some(("capped", length)) => number(length).map_or(Self::None, Self::Capped),
            _ => Self::None,
        }
    }

    fn of(self, key: &[u8]) -> Option<&[u8]> {
        match self {
            Self::None => None,
            Self::Fixed(length) => key.get(..length),
            Self::Capped(length) => Some(&key[..length.min(key.len())]),
        }
    }
}

/// Compares all families.
pub fn compare(
    view: &dyn View,
    model: &Model,
    prefixes: impl Fn(&str) -> Prefixes,
    random: &mut SmallRng,
) -> Result<()> {
    for (name, family) in &model.families {
        let told =
            |error: Box<dyn std::error::Error + Send + Sync>| format!("family {name}: {error}");
        scans(view, name, family).map_err(told)?;
        lookups(view, name, family, random).map_err(told)?;
        for _ in 0..4 {
            walk(view, name, family, random).map_err(told)?;
            prefix_walk(view, name, family, prefixes(name), random).map_err(told)?;
        }
    }
    Ok(())
}

fn owned(entries: &[(&Vec<u8>, &Vec<u8>)]) -> Vec<Pair> {
    entries.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

fn scans(view: &dyn View, name: &str, family: &Family) -> Result<()> {
    let mut expected = owned(&family.within(None, None));
    for (way, start, forward) in
        [("a scan", Start::First, true), ("a scan back", Start::Last, false)]
    {
        // One step more than there should be entries.
        let moves = vec![forward; expected.len() + 1];
        let walk = Walk { lower: None, upper: None, start, moves, in_prefix: false };
        same(way, &view.walk(name, &walk)?, &expected)?;
        expected.reverse();
    }
    Ok(())
}

/// A key that is there, or another.
fn some_key(family: &Family, random: &mut SmallRng) -> Vec<u8> {
    let all = family.within(None, None);
    let mut key = match all.len() {
        0 => b"k0001".to_vec(),
        count => all[random.random_range(0..count)].0.clone(),
    };
    match random.random_range(0..6) {
        0 => key.push(random.random()),
        1 => drop(key.pop()),
        2 => {
            if let Some(last) = key.last_mut() {
                *last = last.wrapping_add(1);
            }
        }
        _ => {}
    }
    key
}

fn lookups(view: &dyn View, name: &str, family: &Family, random: &mut SmallRng) -> Result<()> {
    let keys: Vec<_> = (0..20).map(|_| some_key(family, random)).collect();
    let joint = view.multi_get(name, &keys)?;
    for (key, joint) in keys.iter().zip(joint) {
        let single =
            view.get(name, key).map_err(|error| format!("get {}: {error}", key.escape_ascii()))?;
        let expected = family.get(key);
        for (way, found) in [("get", &single), ("multi_get", &joint)] {
            if found.as_ref() != expected {
                let shown = |value: Option<&Vec<u8>>| {
                    value.map_or("nothing".to_string(), |value| shown(value))
                };
                let (found, expected) = (shown(found.as_ref()), shown(expected));
                return Err(
                    format!("{way} {}: {found}, expected {expected}", key.escape_ascii()).into()
                );
            }
        }
    }
    Ok(())
}

/// To and fro between bounds.
fn walk(view: &dyn View, name: &str, family: &Family, random: &mut SmallRng) -> Result<()> {
    let mut bound = || random.random_bool(0.4).then(|| some_key(family, random));
    let (mut lower, mut upper) = (bound(), bound());
    if let (Some(low), Some(up)) = (&lower, &upper)
        && family.is_before(up, low)
    {
        (lower, upper) = (upper, lower);
    }
    let inside = family.within(lower.as_deref(), upper.as_deref());
    let start = match random.random_range(0..4) {
        0 => Start::First,
        1 => Start::Last,
        2 => Start::Seek(some_key(family, random)),
        _ => Start::SeekForPrev(some_key(family, random)),
    };
    let straight = if random.random_bool(0.5) { 1.0 } else { 0.7 };
    let forward = random.random_bool(0.5);
    let moves: Vec<_> = (0..30).map(|_| random.random_bool(straight) == forward).collect();
    let mut at = match &start {
        Start::First => inside.first().map(|_| 0),
        Start::Last => inside.len().checked_sub(1),
        Start::Seek(key) => inside.iter().position(|(other, _)| !family.is_before(other, key)),
        Start::SeekForPrev(key) => {
            inside.iter().rposition(|(other, _)| !family.is_before(key, other))
        }
    };
    let (mut expected, mut steps) = (Vec::new(), moves.iter());
    while let Some((key, value)) = at.and_then(|index| inside.get(index)) {
        expected.push((key.to_vec(), value.to_vec()));
        at = match steps.next() {
            Some(true) => at.map(|index| index + 1),
            Some(false) => at.and_then(|index| index.checked_sub(1)),
            None => None,
        };
    }
    let walk = Walk { lower, upper, start, moves, in_prefix: false };
    same(&format!("{walk:?}"), &view.walk(name, &walk)?, &expected)
}

fn prefix_walk(
    view: &dyn View,
    name: &str,
    family: &Family,
    prefixes: Prefixes,
    random: &mut SmallRng,
) -> Result<()> {
    let key = some_key(family, random);
    let Some(prefix) = prefixes.of(&key) else { return Ok(()) };
    let from = family.within(Some(&key), None);
    let inside = from.iter().take_while(|(other, _)| prefixes.of(other) == Some(prefix));
    let expected: Vec<_> = inside.copied().take(30).collect();
    let (moves, start) = (vec![true; 29], Start::Seek(key.clone()));
    let walk = Walk { lower: None, upper: None, start, moves, in_prefix: true };
    same(
        &format!("the prefix of {}", key.escape_ascii()),
        &view.walk(name, &walk)?,
        &owned(&expected),
    )
}

/// The beginning of a value and its length.
fn shown(value: &[u8]) -> String {
    format!("{}.. ({} bytes)", value[..value.len().min(30)].escape_ascii(), value.len())
}

pub fn same(way: &str, found: &[Pair], expected: &[Pair]) -> Result<()> {
    let at = found.iter().zip(expected).position(|(one, other)| one != other);
    let at = at.unwrap_or_else(|| found.len().min(expected.len()));
    let entry = |entries: &[Pair]| {
        let entry = entries.get(at);
        entry.map_or("the end".to_string(), |(key, value)| {
            format!("{} = {}", key.escape_ascii(), shown(value))
        })
    };
    if found == expected {
        Ok(())
    } else {
        Err(format!("{way}: entry {at} is {}, expected {}", entry(found), entry(expected)).into())
    }
}
