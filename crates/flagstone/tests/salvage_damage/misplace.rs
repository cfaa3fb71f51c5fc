//! Files that are where they do not belong, as people and other programs leave them.

use std::ops::Range;

use fastrand::Rng;

use super::damage::Damage;
use super::{Files, file_name};

/// What is put where nothing should be, beside the files themselves.
#[derive(Debug, Default)]
pub struct Clutter {
    /// Directories in the place of files.
    pub directories: Vec<String>,
    /// Whether nothing tells where the WALs end: the newest one is as it was earlier, or another
    /// lies behind it.
    pub hides_end_of_logs: bool,
    /// Whether a table is there that was replaced: the MANIFEST alone knows.
    has_old_table: bool,
}

impl Clutter {
    /// Does one such thing. `before` are the files at an earlier time.
    pub fn add(
        &mut self,
        random: &mut Rng,
        files: &mut Files,
        before: &Files,
        damage: &mut Damage,
    ) {
        let is_data =
            |name: &&String| [".sst", ".log", ".blob"].iter().any(|kind| name.ends_with(kind));
        let data: Vec<String> = files.keys().filter(is_data).cloned().collect();
        if data.is_empty() {
            return;
        }
        let name = data[random.usize(..data.len())].clone();
        match random.u32(..5) {
            0 => {
                files.remove(&name);
                damage.words.push(format!("a directory in the place of {name}"));
                damage.touched.push((name.clone(), 0..u64::MAX));
                self.directories.push(name);
            }
            1 => {
                let bytes = files.remove(&name).expect("it is there");
                damage.words.push(format!("{name} in capitals"));
                damage.touched.push((name.clone(), 0..u64::MAX));
                let directory = &name[..name.len() - file_name(&name).len()];
                files.insert(format!("{directory}{}", file_name(&name).to_uppercase()), bytes);
            }
            2 => copy(random, files, &name, damage),
            3 => self.stray(random, files, damage),
            _ => self.bring_back(random, files, before, damage),
        }
    }

    /// A copy of a file as it was once, perhaps of one that is gone since.
    fn bring_back(
        &mut self,
        random: &mut Rng,
        files: &mut Files,
        before: &Files,
        damage: &mut Damage,
    ) {
        let is_manifest = |name: &str| name.contains("MANIFEST") || name == "CURRENT";
        let is_manifest_whole = !damage.touches_file("MANIFEST") && !damage.touches_file("CURRENT");
        let is_changed = |name: &&String| match files.get(*name) {
            Some(now) => before[*name] != *now && !(self.has_old_table && is_manifest(name)),
            None => name.ends_with(".sst") && is_manifest_whole && !damage.touches_file(name),
        };
        let changed: Vec<&String> = before.keys().filter(is_changed).collect();
        if changed.is_empty() {
            return;
        }
        let name = changed[random.usize(..changed.len())];
        let newest =
            files.keys().filter(|name| name.ends_with(".log")).max_by_key(|name| file_name(name));
        self.hides_end_of_logs |= newest == Some(name);
        damage.words.push(format!("{name} as it was before"));
        match files.get(name) {
            None => self.has_old_table = true,
            Some(now) => damage
                .touched
                .extend(differences(now, &before[name]).map(|range| (name.clone(), range))),
        }
        files.insert(name.clone(), before[name].clone());
    }

    /// A file of a number that no other has, with bytes that mean nothing.
    fn stray(&mut self, random: &mut Rng, files: &mut Files, damage: &mut Damage) {
        let kind = ["sst", "log", "blob", "ldb"][random.usize(..4)];
        let name = format!("{:06}.{kind}", random.u32(1..2000));
        let number = &name[..6];
        if files.keys().any(|known| known.contains(number)) {
            return;
        }
        let size = random.usize(..10_000);
        let bytes = match random.u32(..3) {
            0 => Vec::new(),
            1 => vec![0; size],
            _ => (0..size).map(|_| random.u8(..)).collect(),
        };
        self.hides_end_of_logs |= kind == "log";
        damage.words.push(format!("{name}, {} bytes of nothing", bytes.len()));
        files.insert(name, bytes);
    }
}

/// A part of a file under another spelling of its number.
fn copy(random: &mut Rng, files: &mut Files, name: &str, damage: &mut Damage) {
    let last = file_name(name);
    let bytes = &files[name];
    let part = bytes[..random.usize(..=bytes.len())].to_vec();
    let copy = format!("{}{}", &name[..name.len() - last.len()], last.trim_start_matches('0'));
    if !name.ends_with(".log") && copy != name {
        damage.words.push(format!("{} bytes of {name} as {copy}", part.len()));
        files.insert(copy, part);
    }
}

/// The bytes of `now` that `before` has not.
fn differences(now: &[u8], before: &[u8]) -> impl Iterator<Item = Range<u64>> {
    let mut at = 0;
    let mut ranges = Vec::new();
    let pairs: Vec<bool> = now.iter().zip(before).map(|(now, before)| now != before).collect();
    for part in pairs.chunk_by(|one, other| one == other) {
        ranges.extend(part[0].then_some(at..at + part.len() as u64));
        at += part.len() as u64;
    }
    ranges.push(at..u64::MAX);
    ranges.into_iter()
}
