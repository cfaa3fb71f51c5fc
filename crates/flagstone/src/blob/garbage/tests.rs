use super::*;

fn blob(file: u64, size: u64) -> BlobIndex {
    BlobIndex { file: FileNumber(file), offset: 100, size, compression: 0 }
}

#[test]
fn what_flows_in_and_not_out_is_garbage() {
    let mut meter = GarbageMeter::new();
    for file in [4, 7, 4, 9] {
        meter.flow_in(3, &blob(file, 10));
    }
    meter.flow_out(3, &blob(4, 10));
    meter.flow_out(3, &blob(9, 10));
    let garbage = |number, count, bytes| GarbageDelta { number: FileNumber(number), count, bytes };
    assert_eq!(meter.finish().unwrap(), [garbage(4, 1, 45), garbage(7, 1, 45)]);
}

#[test]
fn files_that_the_compaction_wrote_have_none() {
    let mut meter = GarbageMeter::new();
    meter.flow_in(1, &blob(4, 10));
    meter.flow_out(1, &blob(12, 10));
    assert_eq!(
        meter.finish().unwrap(),
        [GarbageDelta { number: FileNumber(4), count: 1, bytes: 43 }]
    );
}

#[test]
fn a_file_that_was_taken_is_left_out() {
    let mut meter = GarbageMeter::new();
    meter.flow_in(1, &blob(4, 10));
    meter.flow_in(1, &blob(4, 10));
    meter.flow_out(1, &blob(4, 10));
    assert_eq!(meter.take(FileNumber(4)), Outflow { count: 1, bytes: 43 });
    assert_eq!(meter.take(FileNumber(4)), Outflow { count: 0, bytes: 0 });
    assert_eq!(meter.finish().unwrap(), []);
}

#[test]
fn parts_of_a_compaction_add_up() {
    let (mut first, mut second) = (GarbageMeter::new(), GarbageMeter::new());
    for file in [4, 7, 4] {
        first.flow_in(3, &blob(file, 10));
        second.flow_in(3, &blob(file + 1, 10));
    }
    second.flow_in(3, &blob(4, 10));
    first.flow_out(3, &blob(4, 10));
    second.flow_out(3, &blob(8, 10));
    second.flow_out(3, &blob(4, 10));
    first.absorb(second);
    let garbage = |number, count, bytes| GarbageDelta { number: FileNumber(number), count, bytes };
    assert_eq!(first.finish().unwrap(), [garbage(4, 1, 45), garbage(5, 2, 90), garbage(7, 1, 45)]);
}

#[test]
fn references_out_of_nowhere_are_refused() {
    let mut meter = GarbageMeter::new();
    meter.flow_in(1, &blob(4, 10));
    meter.flow_out(1, &blob(4, 10));
    meter.flow_out(1, &blob(4, 10));
    assert!(meter.finish().unwrap_err().is_corruption());
}
