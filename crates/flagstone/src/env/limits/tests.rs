use super::*;

fn of(files: &[(&str, &str)]) -> Option<u64> {
    let text =
        |path: &Path| files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| text);
    limit(|path| text(path).map(ToString::to_string))
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
#[cfg(target_os = "linux")]
fn this_machine_has_some() {
    assert!(memory_limit().is_some_and(|bytes| bytes > 1 << 20));
}
