use super::*;

#[test]
fn each_line_counts_what_was_done_since_the_last() {
    let env = Env::memory();
    let directory = std::path::Path::new("/reports");
    env.fs.create_directory(directory).unwrap();
    let file = env.fs.create_writable(&directory.join("report.csv"), IoMode::Buffered).unwrap();
    let interval = Duration::from_secs(1);
    let mut reporter =
        Reporter { env: &env, file, offset: 0, interval, start_us: 7_000_000, told: 0 };
    assert_eq!(reporter.line(8_000_100, 300), "1,300\n");
    assert_eq!(reporter.line(8_900_000, 300), "2,0\n");
    assert_eq!(reporter.line(10_100_000, 1000), "3,700\n");
}
