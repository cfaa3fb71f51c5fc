//! How much memory the process may use, how much is free, and how many files may be open.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::MemoryState;

/// How old an answer of [`memory_state`] may be: many databases ask.
const FRESH: Duration = Duration::from_secs(1);

/// The files of a cgroup's memory controller.
struct GroupFiles {
    root: &'static str,
    /// The group may have what the least of them says. Above `memory.high` the system slows the
    /// group down and takes memory back; above the others it kills.
    limits: &'static [&'static str],
    used: &'static str,
    /// What of `memory.stat` the system can read again from files.
    cached: [&'static str; 2],
}

const VERSION_1: GroupFiles = GroupFiles {
    root: "/sys/fs/cgroup/memory",
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    cached: ["total_inactive_file ", "total_active_file "],
};
const VERSION_2: GroupFiles = GroupFiles {
    root: "/sys/fs/cgroup",
    limits: &["memory.max", "memory.high"],
    used: "memory.current",
    cached: ["inactive_file ", "active_file "],
};

impl GroupFiles {
    /// Bytes that `group` may have, if it has a limit.
    fn limit_in(&self, group: &Path, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
        // "No limit" is a word in version 2, a large number in version 1.
        self.limits.iter().filter_map(|name| number_in(&group.join(name), &read)).min()
    }
}

/// The number that is all of a file.
fn number_in(file: &Path, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    read(file)?.trim().parse().ok()
}

/// Bytes of memory that the process may have: what the machine has, or less where a cgroup (version
/// 1 or 2) sets a limit. `None` where the system does not tell, which only Linux does. As it was
/// when it was first asked.
pub fn memory_limit() -> Option<u64> {
    static LIMIT: LazyLock<Option<u64>> =
        LazyLock::new(|| limit(|path| std::fs::read_to_string(path).ok()));
    *LIMIT
}

/// Raises the soft limit of open files to the hard one; how many files the process may have open,
/// `None` for any number. Where the system refuses, the soft limit stays.
pub(super) fn raise_open_files() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum
        || setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_err()
    {
        return current;
    }
    maximum
}

/// What is left of memory, at most [`FRESH`] old; without bounds where the system does not tell.
#[expect(clippy::disallowed_methods, reason = "how old the system's answer is")]
pub(super) fn memory_state() -> MemoryState {
    static LAST: Mutex<Option<(Instant, MemoryState)>> = Mutex::new(None);
    // A fork copies a lock that is held, and no thread of the child releases it. So no caller waits
    // for this one, and none holds it while it reads files.
    let last = LAST.try_lock().and_then(|last| *last);
    match last {
        Some((asked, state)) if asked.elapsed() < FRESH => state,
        _ => {
            let state = state(|path| std::fs::read_to_string(path).ok());
            if let Some(mut last) = LAST.try_lock() {
                *last = Some((Instant::now(), state));
            }
            state
        }
    }
}

/// [`memory_limit`] of a system whose files `read` shows.
fn limit(read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let machine = kilobytes(&read(Path::new("/proc/meminfo"))?, "MemTotal:")?;
    let limits =
        groups(&read).into_iter().filter_map(|(group, files)| files.limit_in(&group, &read));
    Some(limits.fold(machine, u64::min))
}

/// [`memory_state`] of such a system.
fn state(read: impl Fn(&Path) -> Option<String>) -> MemoryState {
    let mut state = MemoryState::default();
    let mut waited = vec![PathBuf::from("/proc/pressure/memory")];
    let meminfo = read(Path::new("/proc/meminfo")).unwrap_or_default();
    if let (Some(all), Some(free)) =
        (kilobytes(&meminfo, "MemTotal:"), kilobytes(&meminfo, "MemAvailable:"))
    {
        (state.limit_bytes, state.free_bytes) = (all, free);
    }
    for (group, files) in groups(&read) {
        let used = number_in(&group.join(files.used), &read);
        if let (Some(limit), Some(used)) = (files.limit_in(&group, &read), used) {
            let stat = read(&group.join("memory.stat")).unwrap_or_default();
            let cached = files.cached.iter().filter_map(|name| {
                stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
            });
            let free = limit.saturating_sub(used.saturating_sub(cached.sum()));
            if free < state.free_bytes {
                (state.limit_bytes, state.free_bytes) = (limit, free);
            }
        }
        waited.push(group.join("memory.pressure"));
    }
    let stalled = waited.iter().filter_map(|file| stalled_percent(&read(file)?));
    state.stalled_percent = stalled.fold(0.0, f64::max);
    state
}

/// A line of `/proc/meminfo`, in bytes.
fn kilobytes(meminfo: &str, name: &str) -> Option<u64> {
    let rest = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    rest.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// `avg10` of the line `some` of pressure stall information.
fn stalled_percent(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split(' ').find_map(|pair| pair.strip_prefix("avg10=")?.parse().ok())
}

/// The directories of the cgroups that limit the process's memory, the innermost first.
fn groups(read: impl Fn(&Path) -> Option<String>) -> Vec<(PathBuf, &'static GroupFiles)> {
    let lines = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    lines.lines().flat_map(groups_of).collect()
}

/// The group that a line of `/proc/self/cgroup` names (`NUMBER:CONTROLLERS:PATH`), and those that
/// it is in. A container may see only part of the path, or none.
fn groups_of(line: &str) -> Vec<(PathBuf, &'static GroupFiles)> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return Vec::new() };
    let files = match controllers {
        "" => &VERSION_2,
        _ if controllers.split(',').any(|name| name == "memory") => &VERSION_1,
        _ => return Vec::new(),
    };
    let path = Path::new(path.trim_start_matches('/'));
    path.ancestors().map(|group| (Path::new(files.root).join(group), files)).collect()
}

#[cfg(test)]
mod tests;
