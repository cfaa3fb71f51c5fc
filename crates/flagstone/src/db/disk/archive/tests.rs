use super::*;

fn archive(wals: &[(u64, u64, u64)]) -> Archive {
    let archived = |&(number, size, since)| ArchivedWal { number: FileNumber(number), size, since };
    Archive { wals: wals.iter().map(archived).collect(), ..Archive::default() }
}

#[test]
fn the_oldest_go_first() {
    let cases = [
        (Limits { seconds: 10, bytes: 0 }, 30, 2),
        (Limits { seconds: 10, bytes: 0 }, 20, 0),
        (Limits { seconds: 0, bytes: 300 }, 1000, 1),
        (Limits { seconds: 0, bytes: 99 }, 1000, 3),
        (Limits { seconds: 10, bytes: 350 }, 30, 2),
        // A clock that was put back is no reason to remove anything.
        (Limits { seconds: 10, bytes: 0 }, 0, 0),
    ];
    for (limits, now, expected) in cases {
        let archive = archive(&[(1, 200, 10), (2, 200, 19), (3, 100, 25)]);
        assert_eq!(
            archive.expired(limits, now),
            expected,
            "{} s, {} bytes, at {now}",
            limits.seconds,
            limits.bytes
        );
    }
}
