use super::*;

const MIB: u64 = 1 << 20;

/// Plays what was seen, a line a moment, and compares with the size and the reason that follow:
///
/// ```text
/// SECONDS: misses SECONDS, threads SECONDS, cached MIB [, used MIB] [, most MIB] [, free MIB of MIB] [, stalled PERCENT]
///   => MIB REASON
/// ```
///
/// Misses and threads are sums since the beginning. What a line does not name is plenty.
fn play(story: &str) {
    let rules = Rules { miss_percent: 2.0, unused_seconds: 60 };
    let mut size = AutoSize::new(0, 0);
    for step in story.split("\n\n") {
        let (line, wanted) = step.trim().split_once("=>").expect("a line and what follows");
        size = size.next(&rules, &seen(line.trim()));
        let found = format!("{} {}", size.bytes / MIB, size.why);
        assert_eq!(found, wanted.trim(), "after {line}");
    }
}

fn seen(line: &str) -> Seen {
    let (seconds, facts) = line.split_once(": ").expect("a time");
    let us = |text: &str| (text.parse::<f64>().unwrap() * 1e6) as u64;
    let mib = |text: &str| text.parse::<u64>().unwrap() * MIB;
    let mut seen = Seen {
        now_us: us(seconds),
        miss_us: 0,
        processor_us: 0,
        cached: 0,
        used: None,
        most: 1024 * MIB,
        memory: MemoryState::default(),
    };
    for fact in facts.split(", ") {
        match fact.split(' ').collect::<Vec<_>>()[..] {
            ["misses", seconds] => seen.miss_us = us(seconds),
            ["threads", seconds] => seen.processor_us = us(seconds),
            ["cached", bytes] => seen.cached = mib(bytes),
            ["used", bytes] => seen.used = Some(mib(bytes)),
            ["most", bytes] => seen.most = mib(bytes),
            ["free", free, "of", limit] => {
                (seen.memory.free_bytes, seen.memory.limit_bytes) = (mib(free), mib(limit));
            }
            ["stalled", percent] => seen.memory.stalled_percent = percent.parse().unwrap(),
            _ => panic!("{fact}?"),
        }
    }
    seen
}

#[test]
fn it_doubles_while_misses_cost_more_than_two_percent_of_ten_seconds() {
    play(
        "1: misses 0.2, threads 1, cached 32
           => 32 as it began

         1.1: misses 0.3, threads 1, cached 32
           => 64 it grew because misses cost more than 2% of the process's time

         1.2: misses 0.45, threads 1, cached 64
           => 64 it grew because misses cost more than 2% of the process's time

         1.3: misses 0.51, threads 1, cached 64
           => 128 it grew because misses cost more than 2% of the process's time

         1.9: misses 0.75, threads 2, cached 128, most 150
           => 150 it grew because misses cost more than 2% of the process's time

         2.9: misses 1.75, threads 2, cached 150, most 150
           => 150 misses cost more than 2% of the process's time, but it may not grow

         12.9: misses 1.9, threads 2, cached 150, most 150
           => 150 misses cost little",
    );
}

#[test]
fn what_was_long_ago_does_not_add_up() {
    play(
        "9: misses 0.15, threads 9, cached 32
           => 32 as it began

         10: misses 0.15, threads 10, cached 32
           => 32 as it began

         19: misses 0.3, threads 19, cached 32
           => 32 as it began

         60: misses 0.8, threads 19, cached 32
           => 32 as it began",
    );
}

#[test]
fn the_time_is_that_of_all_threads() {
    play(
        "5: misses 1.5, threads 80, cached 32
           => 32 as it began

         6: misses 1.7, threads 82, cached 32
           => 64 it grew because misses cost more than 2% of the process's time",
    );
}

#[test]
fn it_does_not_grow_where_there_is_room_left() {
    play(
        "5: misses 5, threads 5, cached 27
           => 32 as it began

         6: misses 6, threads 5, cached 28
           => 64 it grew because misses cost more than 2% of the process's time",
    );
}

#[test]
fn it_gives_back_what_was_not_used() {
    play(
        "1: misses 1, threads 1, cached 32
           => 64 it grew because misses cost more than 2% of the process's time

         2: misses 2, threads 1, cached 64
           => 128 it grew because misses cost more than 2% of the process's time

         3: misses 3, threads 1, cached 128
           => 256 it grew because misses cost more than 2% of the process's time

         63: misses 3, threads 1, cached 256, used 129
           => 256 it grew because misses cost more than 2% of the process's time

         123: misses 3, threads 1, cached 256, used 128
           => 128 it shrank because the rest was unused for 60 s

         183: misses 3, threads 1, cached 128, used 0
           => 32 it shrank because the rest was unused for 60 s

         243: misses 3, threads 1, cached 0, used 0
           => 32 it shrank because the rest was unused for 60 s",
    );
}

#[test]
fn it_gives_memory_back_where_that_is_short() {
    play(
        "1: misses 1, threads 1, cached 32, free 400 of 512
           => 64 it grew because misses cost more than 2% of the process's time

         2: misses 2, threads 1, cached 64, free 31 of 512
           => 32 it shrank because only 31 MiB of 512 MiB of memory were free

         3: misses 3, threads 1, cached 32, free 31 of 512
           => 32 it shrank because only 31 MiB of 512 MiB of memory were free

         4: misses 4, threads 1, cached 20, free 500 of 512, stalled 10
           => 10 it shrank because threads waited for memory for 10% of the time

         6: misses 4, threads 1, cached 7, free 500 of 512, stalled 10
           => 4 it shrank because threads waited for memory for 10% of the time

         8: misses 4, threads 1, cached 4, free 500 of 512, stalled 10
           => 4 it shrank because threads waited for memory for 10% of the time

         9: misses 5, threads 1, cached 4, free 500 of 512
           => 4 misses cost more than 2% of the process's time, but little memory is free

         18: misses 6, threads 1, cached 4, free 500 of 512
           => 8 it grew because misses cost more than 2% of the process's time",
    );
}

#[test]
fn it_takes_no_memory_that_is_not_free() {
    play(
        "1: misses 1, threads 1, cached 32, free 95 of 512
           => 32 misses cost more than 2% of the process's time, but little memory is free

         2: misses 2, threads 1, cached 32, free 96 of 512
           => 64 it grew because misses cost more than 2% of the process's time",
    );
}

#[test]
fn it_has_less_as_soon_as_the_budget_is_less() {
    play(
        "1: misses 1, threads 1, cached 32
           => 64 it grew because misses cost more than 2% of the process's time

         2: misses 1, threads 1, cached 64, most 50
           => 50 it grew because misses cost more than 2% of the process's time

         3: misses 1, threads 1, cached 50, most 2
           => 32 it grew because misses cost more than 2% of the process's time",
    );
}
