use super::*;

#[test]
fn a_recorder_counts_what_was_done() {
    let mut one = Recorder::start();
    (0..1000).for_each(|_| one.finished(1));
    let mut other = Recorder::start();
    other.finished_since(other.started - Duration::from_millis(5), 10);
    one.merge(&other);
    let part = one.part("puts");
    assert_eq!((part.name.as_str(), part.operations), ("puts", 1010));
    assert!(
        part.latency_us.p50 <= part.latency_us.p99 && part.latency_us.p99 <= part.latency_us.max
    );
    assert!((5000.0..6000.0).contains(&part.latency_us.max), "{}", part.latency_us.max);
    assert!(part.rate() > 0.0);
    assert_eq!(part.slowest_second, None);
}

#[test]
fn recorders_one_after_the_other_count_no_pause() {
    let mut one = Recorder::start();
    one.finished(3);
    let mut other = Recorder::start();
    other.started -= Duration::from_secs(7);
    other.last = other.started + Duration::from_millis(250);
    other.per_second = vec![4];
    let before = one.elapsed();
    one.append(&other);
    assert_eq!((one.operations(), one.elapsed()), (7, before + Duration::from_millis(250)));
}

#[test]
fn the_system_counts_a_written_file() {
    let directory = tempfile::tempdir().unwrap();
    let before = Counters::now(directory.path()).unwrap();
    fs::write(directory.path().join("file"), vec![1; 1 << 20]).unwrap();
    let counted = Counters::now(directory.path()).unwrap().since(&before);
    assert!(counted.write_call_bytes >= 1 << 20);
    assert!(disk_bytes(directory.path()).unwrap() >= 1 << 20);
}

#[test]
fn tables_and_blob_files_are_data() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["000001.sst", "000002.blob", "000003.log"] {
        fs::write(directory.path().join(name), vec![1; 64 << 10]).unwrap();
    }
    assert_eq!(data_bytes(directory.path()).unwrap(), 128 << 10);
}

#[test]
fn the_peak_of_memory_can_begin_anew() {
    touch_memory(256 << 20);
    assert!(peak_memory_bytes().unwrap() >= 256 << 20);
    reset_peak_memory().unwrap();
    assert!(peak_memory_bytes().unwrap() < 256 << 20);
}

#[test]
fn proc_files_are_understood() {
    assert_eq!(number_after("rchar: 5\nwchar: 17\n", "wchar:"), Some(17));
    assert_eq!(machine_cpu_seconds("cpu  100 200 300 9999 50 10 20 30 0 0\ncpu0 1"), 6.6);
}
