use super::*;

fn shown(files: &[(&str, &str)], path: &Path) -> Option<String> {
    files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_string())
}

fn of(files: &[(&str, &str)]) -> Option<u64> {
    limit(|path| shown(files, path))
}

fn left(files: &[(&str, &str)]) -> (u64, u64, f64) {
    let MemoryState { limit_bytes, free_bytes, stalled_percent } = state(|path| shown(files, path));
    (limit_bytes, free_bytes, stalled_percent)
}

const MEMINFO: (&str, &str) = ("/proc/meminfo", "MemTotal:       1024 kB\nMemFree: 7 kB\n");

#[test]
fn the_tightest_limit_holds() {
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[MEMINFO]), Some(1 << 20));
    let group = ("/proc/self/cgroup", "0::/user.slice/job\n");
    assert_eq!(of(&[MEMINFO, group]), Some(1 << 20));
    let own = ("/sys/fs/cgroup/user.slice/job/memory.max", "max\n");
    let outer = ("/sys/fs/cgroup/user.slice/memory.max", "5000\n");
    assert_eq!(of(&[MEMINFO, group, own, outer]), Some(5000));
    let high = ("/sys/fs/cgroup/user.slice/job/memory.high", "3000\n");
    assert_eq!(of(&[MEMINFO, group, own, outer, high]), Some(3000), "the group is slowed down");
    let contained = [MEMINFO, group, ("/sys/fs/cgroup/memory.max", "4000")];
    assert_eq!(of(&contained), Some(4000), "the path is the host's");
}

#[test]
fn version_1_has_a_file_of_its_own() {
    let groups = ("/proc/self/cgroup", "3:cpu,cpuacct:/a\n4:memory:/a\nnonsense\n5:\n");
    let cpu = ("/sys/fs/cgroup/a/memory.max", "1");
    let none = ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
    assert_eq!(of(&[MEMINFO, groups, cpu, none]), Some(1 << 20));
    let some = ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "65536\n");
    assert_eq!(of(&[MEMINFO, groups, cpu, some]), Some(65536));
}

#[test]
fn what_is_left_is_that_of_the_tightest_group() {
    const MACHINE: (&str, &str) =
        ("/proc/meminfo", "MemTotal:       1024 kB\nMemAvailable:   512 kB\n");
    assert_eq!(left(&[]), (u64::MAX, u64::MAX, 0.0), "a system that does not tell");
    assert_eq!(left(&[MACHINE]), (1 << 20, 1 << 19, 0.0));
    let of_version_2 = [
        MACHINE,
        ("/proc/pressure/memory", "some avg10=1.50 avg60=0.00 total=7\nfull avg10=90.00 total=0\n"),
        ("/proc/self/cgroup", "0::/a/b\n"),
        ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
        ("/sys/fs/cgroup/a/b/memory.current", "900\n"),
        ("/sys/fs/cgroup/a/b/memory.pressure", "some avg10=12.25 avg60=0.00 total=7\n"),
        ("/sys/fs/cgroup/a/memory.max", "1000\n"),
        ("/sys/fs/cgroup/a/memory.current", "900\n"),
        ("/sys/fs/cgroup/a/memory.stat", "anon 500\ninactive_file 250\nactive_file 50\n"),
    ];
    assert_eq!(left(&of_version_2), (1000, 400, 12.25), "its page cache can be read again");
    let of_version_1 = [
        MACHINE,
        ("/proc/self/cgroup", "4:memory:/a\n"),
        ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n"),
        ("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "990\n"),
        (
            "/sys/fs/cgroup/memory/a/memory.stat",
            "active_file 900\ntotal_inactive_file 30\ntotal_active_file 10\n",
        ),
    ];
    assert_eq!(left(&of_version_1), (1000, 50, 0.0));
}

#[test]
#[cfg(target_os = "linux")]
fn this_machine_tells_what_is_left() {
    let MemoryState { limit_bytes, free_bytes, .. } = memory_state();
    assert!(limit_bytes < 1 << 60 && free_bytes < limit_bytes, "{limit_bytes} {free_bytes}");
}

#[test]
#[cfg(target_os = "linux")]
fn this_machine_has_some() {
    assert!(memory_limit().is_some_and(|bytes| bytes > 1 << 20));
}
