//! How much memory the process may have, and how many open files.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

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

/// The same, of a system whose files `read` shows.
fn limit(read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let machine = total(&read(Path::new("/proc/meminfo"))?)?;
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits =
        groups.lines().flat_map(files_of).filter_map(|file| read(&file)?.trim().parse().ok());
    // "No limit" is a word in version 2, a large number in version 1.
    Some(limits.fold(machine, u64::min))
}

/// `MemTotal` of `/proc/meminfo`, in bytes.
fn total(meminfo: &str) -> Option<u64> {
    let rest = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    rest.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// Where the limits of a group stand that a line of `/proc/self/cgroup` names
/// (`NUMBER:CONTROLLERS:PATH`), and of those that it is in. A container may see only part of the
/// path, or none.
fn files_of(line: &str) -> Vec<PathBuf> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return Vec::new() };
    let (root, name) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let path = Path::new(path.trim_start_matches('/'));
    path.ancestors().map(|group| Path::new(root).join(group).join(name)).collect()
}

#[cfg(test)]
mod tests;
