use super::*;
use crate::base::Code;

/// Samples as `sequence@time`.
fn times(text: &str) -> WriteTimes {
    let sample = |word: &str| {
        let (sequence, time) = word.split_once('@').expect("a sample");
        WriteTime {
            sequence: sequence.parse().expect("a sequence number"),
            time: time.parse().expect("a time"),
        }
    };
    WriteTimes::of(text.split_whitespace().map(sample))
}

fn text(times: &WriteTimes) -> String {
    let words = times.samples().iter().map(|one| format!("{}@{}", one.sequence, one.time));
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_sample_lies_behind_its_sequence_number_and_before_the_next() {
    let times = times("10@500 20@600 30@700");
    assert_eq!(
        [10, 11, 20, 21, 99].map(|sequence| times.time_before(sequence)),
        [0, 500, 500, 600, 700]
    );
    assert_eq!([499, 500, 599, 600, 999].map(|time| times.sequence_at(time)), [0, 10, 10, 20, 30]);
    assert_eq!(WriteTimes::default().time_before(5), 0);
    assert_eq!(WriteTimes::default().sequence_at(5), 0);
}

#[test]
fn samples_that_tell_nothing_new_go() {
    assert_eq!(text(&times("20@600 10@500 20@650 0@3")), "10@500 20@600");
    assert_eq!(text(&times("10@500 20@500 30@700")), "20@500 30@700", "all written by then");
    assert_eq!(text(&times("10@500 20@600 30@550 40@800")), "10@500 30@550 40@800");
    assert_eq!(text(&times("10@500 20@600 30@400")), "30@400", "the clock went back");
}

#[test]
fn the_past_is_forgotten_but_for_one_sample() {
    let all = || times("10@500 20@600 30@700 40@800");
    assert_eq!(text(&all().within(800, 150)), "20@600 30@700 40@800");
    assert_eq!(text(&all().within(800, 200)), "20@600 30@700 40@800");
    assert_eq!(text(&all().within(9999, 1)), "40@800");
    assert_eq!(text(&all().within(800, u64::MAX)), text(&all()));
}

#[test]
fn a_table_has_the_samples_about_its_sequence_numbers() {
    let all = times("10@500 20@600 30@700 40@800");
    assert_eq!(text(&all.about(20, 30)), "10@500 20@600 30@700");
    assert_eq!(text(&all.about(21, 29)), "20@600 30@700");
    assert_eq!(text(&all.about(0, 9)), "10@500");
    assert_eq!(text(&all.about(41, 50)), "40@800");
    assert_eq!(text(&all.about(50, 0)), "40@800", "a table without entries");
}

#[test]
fn too_many_samples_are_thinned_where_they_are_dense() {
    let all = || times("1@100 2@110 3@120 4@200 5@300 6@310");
    assert_eq!(text(&all().limited(6)), text(&all()));
    assert_eq!(text(&all().limited(5)), "1@100 3@120 4@200 5@300 6@310");
    assert_eq!(text(&all().limited(4)), "1@100 4@200 5@300 6@310");
    assert_eq!(text(&all().limited(0)), "1@100 6@310", "the ends stay");
    let many = WriteTimes::of((1..=1000).map(|n| WriteTime { sequence: n, time: 5 * n }));
    let few = many.limited(WriteTimes::TABLE_MAX);
    assert_eq!(few.samples().len(), 100);
    let gaps = few.samples().windows(2).map(|pair| pair[1].time - pair[0].time);
    assert!(gaps.max() <= Some(100), "they are spread evenly");
}

/// The annotated bytes of RocksDB's form.
#[test]
fn the_bytes_are_rocksdb_s() {
    let bytes = [
        2, // Samples.
        10, 0xf4, 0x03, // 10 at 500.
        20, 100, // 30 at 600.
    ];
    let two = times("10@500 30@600");
    assert_eq!(two.encode(), bytes);
    assert_eq!(WriteTimes::decode(&bytes).expect("well formed"), two);
    assert_eq!(WriteTimes::default().encode(), [0; 0]);
    assert!(WriteTimes::decode(&[]).expect("no samples").is_empty());
}

#[test]
fn malformed_bytes_are_refused() {
    let overflow = [&[2, 1, 1][..], &[0xff; 9], &[1, 1]].concat();
    let endless = [0xff, 0xff, 0xff, 0xff, 0x7f, 1, 1];
    for bytes in [&[1][..], &[1, 1], &[1, 1, 1, 1], &[0x80], &overflow, &endless] {
        let error = WriteTimes::decode(bytes).expect_err("malformed");
        assert_eq!(error.code(), Code::Corruption, "{bytes:?}");
    }
}
