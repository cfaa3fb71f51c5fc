//! All the ways in which a disk may come out of a crash that are worth a look.
//!
//! All combinations would be too many: a hundred pages have more aftermaths than the universe has
//! atoms. A fault in recovery is found when one thing goes another way than the rest; so the list
//! is, for a disk with changes of names N and unsynced files F:
//! 1. everything kept; everything lost;
//! 2. names: every subset of N if they are few, else every prefix, each one lost alone, each one
//!    kept alone; with all files kept, and with all lost;
//! 3. files: every subset of F wholly kept and the others lost, if they are few; with all names
//!    kept, and with all lost;
//! 4. for every file of F each of its fates (below), with all other files kept and with all lost,
//!    with all names kept and with all lost. After a write, only for the file that was written to:
//!    the others had theirs before;
//! 5. some by chance: every name and every page for itself.
//!
//! The fates of a file: each version since the sync; each length with the oldest and the newest
//! bytes; a cut at each page; each page alone lost, kept, or as at another moment; everything
//! before a page lost and the rest kept; and each of these within a page, by sectors (but a block
//! that was given back is never torn).

use super::aftermath::{Aftermath, Fate};
use super::disk::{Disk, Grain, Inode, Versions};
use super::record::Change;

/// So many changes of names are combined in all ways.
const NAMES_COMBINED: usize = 5;

/// So many files are combined in all ways.
const FILES_COMBINED: usize = 4;

/// Survivals by chance at each moment.
const BY_CHANCE: usize = 12;

/// What may survive on `disk`, whose last change was `last`; always the same list.
pub(super) fn aftermaths(
    disk: &Disk,
    last: Option<&Change>,
    grain: Grain,
    seed: u64,
) -> Vec<Aftermath> {
    let mut list = vec![Aftermath::kept(), Aftermath::lost()];
    for names in subsets(disk.pending.len(), NAMES_COMBINED) {
        for others_kept in [true, false] {
            list.push(Aftermath { names: names.clone(), files: Vec::new(), others_kept });
        }
    }
    let files: Vec<(Inode, &Versions)> = disk.unsynced().collect();
    if files.len() <= FILES_COMBINED {
        for kept in subsets(files.len(), FILES_COMBINED) {
            let chosen = files.iter().zip(&kept).map(|((inode, versions), kept)| {
                (*inode, Fate::version(versions, if *kept { versions.len() - 1 } else { 0 }))
            });
            let chosen: Vec<_> = chosen.collect();
            for others_kept in [true, false] {
                list.push(Aftermath { names: Vec::new(), files: chosen.clone(), others_kept });
            }
        }
    }
    let written = match last {
        Some(
            Change::Write { inode, .. }
            | Change::Truncate { inode, .. }
            | Change::Allocate { inode, .. }
            | Change::Punch { inode, .. },
        ) => Some(*inode),
        _ => None,
    };
    for (inode, versions) in
        files.iter().filter(|(inode, _)| written.is_none_or(|one| one == *inode))
    {
        for fate in fates(versions, grain) {
            for others_kept in [true, false] {
                for names_kept in [true, false] {
                    let names = vec![names_kept; disk.pending.len()];
                    list.push(Aftermath {
                        names,
                        files: vec![(*inode, fate.clone())],
                        others_kept,
                    });
                }
                if disk.pending.is_empty() && files.len() == 1 {
                    break;
                }
            }
        }
    }
    let mut random = fastrand::Rng::with_seed(seed);
    if !disk.pending.is_empty() || !files.is_empty() {
        list.extend((0..BY_CHANCE).map(|_| by_chance(disk, grain, &mut random)));
    }
    list
}

/// Every choice of `count` things if they are at most `few`; else prefixes, all but one, and one
/// alone.
fn subsets(count: usize, few: usize) -> Vec<Vec<bool>> {
    if count <= few {
        return (0..1u32 << count)
            .map(|bits| (0..count).map(|at| bits >> at & 1 == 1).collect())
            .collect();
    }
    let prefixes = (0..=count).map(|end| (0..count).map(|at| at < end).collect());
    let singles = [true, false].into_iter().flat_map(|other| {
        (0..count).map(move |one| (0..count).map(|at| (at == one) != other).collect::<Vec<bool>>())
    });
    prefixes.chain(singles).collect()
}

/// What may become of one file.
fn fates(versions: &Versions, grain: Grain) -> Vec<Fate> {
    let newest = versions.len() - 1;
    let size = |version: usize| versions[version].data.len();
    let mut list: Vec<Fate> = (0..=newest).map(|index| Fate::version(versions, index)).collect();
    for base in [0, newest] {
        list.extend((0..=newest).map(|index| Fate {
            length: size(index),
            base,
            patches: Vec::new(),
        }));
    }
    let whole = (0..=newest).map(size).max().unwrap_or(0);
    let (old, new) = (size(0), size(newest));
    for at in (0..=whole).step_by(grain.page).filter(|at| old.min(new) < *at && *at < old.max(new))
    {
        list.push(Fate { length: at, base: newest, patches: Vec::new() });
    }
    let length = size(newest);
    let differs = |start: usize, end: usize, one: usize, other: usize| {
        part(&versions[one].data, start, end) != part(&versions[other].data, start, end)
    };
    for page in (0..whole).step_by(grain.page) {
        let end = page + grain.page;
        let moments: Vec<usize> =
            (1..=newest).filter(|at| differs(page, end, *at, at - 1)).collect();
        let Some(last) = moments.last() else { continue };
        around(&mut list, page, end, whole, length, newest);
        for moment in moments.iter().map(|at| at - 1).chain([*last]) {
            for base in [0, newest] {
                list.push(Fate { length, base, patches: vec![(page..end, moment)] });
            }
        }
        for sector in (page..end).step_by(grain.sector).skip(1) {
            let stop = sector + grain.sector;
            if (1..=newest).any(|at| differs(sector, stop, at, at - 1)) {
                around(&mut list, sector, stop, whole, length, newest);
            }
        }
    }
    list
}

/// A file torn at `start`, one way and the other; and with this part alone lost, or alone kept.
fn around(
    list: &mut Vec<Fate>,
    start: usize,
    end: usize,
    whole: usize,
    length: usize,
    newest: usize,
) {
    for (base, other) in [(0, newest), (newest, 0)] {
        list.push(Fate { length, base, patches: vec![(0..start, other)] });
        list.push(Fate { length, base, patches: vec![(start..end.min(whole), other)] });
    }
}

fn part(bytes: &[u8], start: usize, end: usize) -> &[u8] {
    &bytes[start.min(bytes.len())..end.min(bytes.len())]
}

/// Every name and every file for itself; of some files every page, or every sector.
pub(super) fn by_chance(disk: &Disk, grain: Grain, random: &mut fastrand::Rng) -> Aftermath {
    let mut names: Vec<bool> = disk.pending.iter().map(|_| random.bool()).collect();
    if random.bool() {
        let end = random.usize(..=names.len());
        names.iter_mut().enumerate().for_each(|(at, kept)| *kept = at < end);
    }
    let fate = |versions: &Versions, random: &mut fastrand::Rng| {
        let any = |random: &mut fastrand::Rng| match random.u8(..3) {
            0 => 0,
            1 => versions.len() - 1,
            _ => random.usize(..versions.len()),
        };
        let base = any(random);
        let mut fate = Fate::version(versions, base);
        let piece = match random.u8(..3) {
            0 => return fate,
            1 => grain.page,
            _ => grain.sector,
        };
        fate.length = versions[any(random)].data.len();
        let pieces = (0..fate.length).step_by(piece);
        fate.patches = pieces.map(|start| (start..start + piece, any(random))).collect();
        fate
    };
    let files = disk.unsynced().map(|(inode, versions)| (inode, fate(versions, random))).collect();
    Aftermath { names, files, others_kept: random.bool() }
}
