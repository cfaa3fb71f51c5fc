//! Simpler forms of one operation, the simplest first.

use flagstone::options::{CompactFilesOptions, CompactRangeOptions, FlushOptions};

use super::operation::{Durability, Operation, Power};
use crate::model::{ENTITY, Edit, SINGLE};

/// What to try in place of an operation. Each is shorter or plainer, so that trying comes to an
/// end.
pub fn simpler(operation: &Operation) -> Vec<Operation> {
    match operation {
        Operation::Write { durability, edits } => simpler_writes(*durability, edits),
        Operation::PutStream { .. } => simpler_streams(operation),
        Operation::CompactFiles { .. } => simpler_compactions_of_files(operation),
        Operation::Get { .. } => simpler_gets(operation),
        Operation::Flush { family, options } if *options != FlushOptions::default() => {
            vec![Operation::Flush { family: family.clone(), options: FlushOptions::default() }]
        }
        Operation::OpenIterator { family, snapshot, lower, upper } => {
            let with =
                |snapshot: &Option<usize>, lower: &Option<Vec<u8>>, upper: &Option<Vec<u8>>| {
                    let (lower, upper) = (lower.clone(), upper.clone());
                    Operation::OpenIterator {
                        family: family.clone(),
                        snapshot: *snapshot,
                        lower,
                        upper,
                    }
                };
            let mut tried = Vec::new();
            tried.extend(snapshot.is_some().then(|| with(&None, lower, upper)));
            tried.extend(lower.is_some().then(|| with(snapshot, &None, upper)));
            tried.extend(upper.is_some().then(|| with(snapshot, lower, &None)));
            tried
        }
        Operation::NextBatch { index, from: Some(_), max_entries } => {
            vec![Operation::NextBatch { index: *index, from: None, max_entries: *max_entries }]
        }
        Operation::MoveIterator { index, moves } => fewer(moves)
            .into_iter()
            .map(|moves| Operation::MoveIterator { index: *index, moves })
            .collect(),
        Operation::CompactRange { .. } => simpler_compactions(operation),
        Operation::SetOptions { family, changes } => fewer(changes)
            .into_iter()
            .map(|changes| Operation::SetOptions { family: family.clone(), changes })
            .collect(),
        Operation::CreateFamilies(names) => {
            fewer(names).into_iter().map(Operation::CreateFamilies).collect()
        }
        Operation::GoOn { index, steps } => {
            fewer(steps).into_iter().map(|steps| Operation::GoOn { index: *index, steps }).collect()
        }
        Operation::Commit { index, durability } if *durability != Durability::Logged => {
            vec![Operation::Commit { index: *index, durability: Durability::Logged }]
        }
        Operation::Prepare { durability, edits } => fewer(edits)
            .into_iter()
            .map(|edits| Operation::Prepare { durability: *durability, edits })
            .collect(),
        Operation::Reopen(settings) => fewer(settings).into_iter().map(Operation::Reopen).collect(),
        Operation::Background(steps) => halves(*steps).map(Operation::Background).collect(),
        Operation::Crash { power, back } => {
            let plainer =
                (*power != Power::Kept).then_some(Operation::Crash { power: Power::Kept, back: 0 });
            let nearer = halves(*back).map(|back| Operation::Crash { power: *power, back });
            let lost = matches!(power, Power::Random(_))
                .then_some(Operation::Crash { power: Power::Lost, back: *back });
            let now = (*back > 0).then_some(Operation::Crash { power: *power, back: 0 });
            plainer.into_iter().chain(lost).chain(now).chain(nearer).collect()
        }
        _ => Vec::new(),
    }
}

/// Smaller numbers than this, down to 1.
fn halves(number: usize) -> impl Iterator<Item = usize> {
    [1, number / 2, number.saturating_sub(1)]
        .into_iter()
        .filter(move |smaller| (1..number).contains(smaller))
}

/// A list's halves, if it is long, and the list without each of its elements.
fn fewer<T: Clone>(all: &[T]) -> Vec<Vec<T>> {
    let (front, back) = all.split_at(all.len() / 2);
    let halves = [front, back]
        .into_iter()
        .filter(|half| all.len() > 3 && !half.is_empty())
        .map(<[T]>::to_vec);
    let without = (0..all.len()).map(|index| {
        let (before, after) = (&all[..index], &all[index + 1..]);
        [before, after].concat()
    });
    halves.chain(without.filter(|rest| !rest.is_empty())).collect()
}

fn simpler_gets(operation: &Operation) -> Vec<Operation> {
    let Operation::Get { family, snapshot, only_cached, keys } = operation else {
        return Vec::new();
    };
    let with = |snapshot: Option<usize>, only_cached: bool, keys: &[Vec<u8>]| Operation::Get {
        family: family.clone(),
        snapshot,
        only_cached,
        keys: keys.to_vec(),
    };
    let fewer = fewer(keys).into_iter().map(|keys| with(*snapshot, *only_cached, &keys));
    let from_files = only_cached.then(|| with(*snapshot, false, keys));
    let now = snapshot.map(|_| with(None, *only_cached, keys));
    fewer.chain(from_files).chain(now).collect()
}

fn simpler_compactions_of_files(operation: &Operation) -> Vec<Operation> {
    let Operation::CompactFiles { family, level, tables, options } = operation else {
        return Vec::new();
    };
    let with = |tables: &[usize], options: &CompactFilesOptions| Operation::CompactFiles {
        family: family.clone(),
        level: *level,
        tables: tables.to_vec(),
        options: options.clone(),
    };
    let default = CompactFilesOptions::default();
    let plainer = (*options != default).then(|| with(tables, &default));
    let shorter = fewer(tables);
    plainer.into_iter().chain(shorter.iter().map(|tables| with(tables, options))).collect()
}

fn simpler_writes(durability: Durability, edits: &[(String, Edit)]) -> Vec<Operation> {
    let with = |edits| Operation::Write { durability, edits };
    let mut tried: Vec<_> = fewer(edits).into_iter().map(with).collect();
    if durability != Durability::Logged {
        tried.push(Operation::Write { durability: Durability::Logged, edits: edits.to_vec() });
    }
    for (index, (family, edit)) in edits.iter().enumerate() {
        let mut replace = |family: &str, edit: Edit| {
            let mut edits = edits.to_vec();
            edits[index] = (family.to_string(), edit);
            tried.push(with(edits));
        };
        if family != "default" {
            replace("default", edit.clone());
        }
        simpler_edits(edit).into_iter().for_each(|edit| replace(family, edit));
    }
    tried
}

fn simpler_edits(edit: &Edit) -> Vec<Edit> {
    match edit {
        Edit::Put { key, value } => {
            let put =
                |key: &[u8], value: &[u8]| Edit::Put { key: key.to_vec(), value: value.to_vec() };
            let values = simpler_values(value).into_iter().map(|value| put(key, &value));
            values.chain(simpler_key(key).map(|key| put(&key, value))).collect()
        }
        Edit::PutEntity { key, value } => {
            let value = value.strip_prefix(ENTITY).unwrap_or(value);
            let put = Edit::Put { key: key.clone(), value: value.to_vec() };
            let values = simpler_values(value).into_iter();
            let entities = values.map(|value| Edit::PutEntity {
                key: key.clone(),
                value: [ENTITY, &value].concat(),
            });
            std::iter::once(put).chain(entities).collect()
        }
        Edit::Merge { key, operand } => {
            let put = Edit::Put { key: key.clone(), value: operand.clone() };
            let values = simpler_values(operand).into_iter();
            let merges = values.map(|operand| Edit::Merge { key: key.clone(), operand });
            std::iter::once(put).chain(merges).collect()
        }
        Edit::DeleteRange { begin, .. } => {
            let delete =
                (begin.first() != Some(&SINGLE)).then(|| Edit::Delete { key: begin.clone() });
            delete.into_iter().collect()
        }
        Edit::Delete { .. } | Edit::SingleDelete { .. } => Vec::new(),
    }
}

/// A write of the whole, fewer pieces, shorter ones.
fn simpler_streams(operation: &Operation) -> Vec<Operation> {
    let Operation::PutStream { durability, family, key, buffer, pieces } = operation else {
        return Vec::new();
    };
    let put = Edit::Put { key: key.clone(), value: pieces.concat() };
    let write = Operation::Write { durability: *durability, edits: vec![(family.clone(), put)] };
    let with = |pieces: Vec<Vec<u8>>| {
        let (durability, family, key, buffer) = (*durability, family.clone(), key.clone(), *buffer);
        Operation::PutStream { durability, family, key, buffer, pieces }
    };
    let shorter =
        pieces.iter().enumerate().filter(|(_, piece)| piece.len() > 3).map(|(at, piece)| {
            let half = piece[..piece.len() / 2].to_vec();
            [&pieces[..at], &[half], &pieces[at + 1..]].concat()
        });
    let pieces = fewer(pieces).into_iter().chain(shorter).map(with);
    std::iter::once(write).chain(pieces).collect()
}

/// Nothing, one letter, half as much, as much of one letter.
fn simpler_values(value: &[u8]) -> Vec<Vec<u8>> {
    let mut tried = Vec::new();
    if !value.is_empty() {
        tried.push(Vec::new());
    }
    if value.len() > 1 {
        tried.push(vec![b'x']);
        tried.push(value[..value.len() / 2].to_vec());
    }
    if value.iter().any(|byte| *byte != b'x') {
        tried.push(vec![b'x'; value.len()]);
    }
    tried
}

/// A key without its last byte, if that leaves some.
fn simpler_key(key: &[u8]) -> Option<Vec<u8>> {
    (key.len() > 1).then(|| key[..key.len() - 1].to_vec())
}

fn simpler_compactions(operation: &Operation) -> Vec<Operation> {
    let Operation::CompactRange { family, begin, end, options } = operation else {
        return Vec::new();
    };
    let with = |begin: &Option<Vec<u8>>, end: &Option<Vec<u8>>, options: CompactRangeOptions| {
        let (begin, end) = (begin.clone(), end.clone());
        Operation::CompactRange { family: family.clone(), begin, end, options }
    };
    let default = CompactRangeOptions::default();
    let mut tried = Vec::new();
    tried.extend((*options != default).then(|| with(begin, end, default.clone())));
    tried.extend(begin.is_some().then(|| with(&None, end, options.clone())));
    tried.extend(end.is_some().then(|| with(begin, &None, options.clone())));
    let part = |change: fn(&mut CompactRangeOptions, &CompactRangeOptions)| {
        let mut options = options.clone();
        change(&mut options, &default);
        options
    };
    let parts = [
        part(|options, _| options.exclusive_manual_compaction = false),
        part(|options, _| options.allow_write_stall = false),
        part(|options, _| options.change_level = false),
        part(|options, default| options.target_level = default.target_level),
        part(|options, _| options.target_path_id = 0),
        part(|options, _| options.max_subcompactions = 0),
        part(|options, default| {
            options.bottommost_level_compaction = default.bottommost_level_compaction
        }),
        part(|options, default| {
            options.blob_garbage_collection_policy = default.blob_garbage_collection_policy;
        }),
        part(|options, default| {
            options.blob_garbage_collection_age_cutoff = default.blob_garbage_collection_age_cutoff;
        }),
    ];
    tried.extend(
        parts
            .into_iter()
            .filter(|plainer| plainer != options)
            .map(|options| with(begin, end, options)),
    );
    tried
}
