use super::*;

#[test]
fn the_line_is_db_bench_s() {
    let mut one = Report::start(1_000_000, None);
    one.finished(10_000, || 0);
    one.add_bytes(1 << 20);
    one.remark("(3 of 4 found)\n".to_string());
    one.stop(1_040_000);
    let mut both = Report::default();
    both.merge(one.clone());
    both.merge(one);
    assert_eq!(
        both.text("readrandom", "read"),
        "readrandom   :       4.000 micros/op 500000 ops/sec 0.040 seconds 20000 operations;   50.0 MB/s \
         (3 of 4 found)\n\n"
    );
}
