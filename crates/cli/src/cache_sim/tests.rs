use std::path::Path;

use clap::Parser;

use super::read::{Format, read};
use super::trace::{Builder, Request};
use super::*;

fn trace_of(requests: &[(u64, u64)]) -> Trace {
    let mut builder = Builder::default();
    requests.iter().for_each(|(key, size)| assert!(builder.push(*key, *size, false)));
    builder.finish()
}

fn hits(player: Player, trace: &Trace, capacity: u64) -> u64 {
    let future = clairvoyant::next_uses(&trace.requests);
    player.play(trace, &future, capacity, &Progress::things(0, "requests")).hits
}

fn player(name: &str) -> Player {
    name.parse().unwrap()
}

#[test]
fn every_policy_replays_what_its_traces_say() {
    // From the engine's traces worked by hand: a to g of SIEVE and of S4LRU.
    let keys =
        |text: &str| trace_of(&text.bytes().map(|key| (u64::from(key), 1)).collect::<Vec<_>>());
    assert_eq!(hits(player("sieve"), &keys("abcdabebfghhgia"), 4), 5);
    assert_eq!(hits(player("s4lru"), &keys("abcbdcdbbdbbefdefee"), 8), 13);
    assert_eq!(hits(player("fifo"), &keys("abcadac"), 3), 2);
    assert_eq!(hits(player("lru"), &keys("abcadbae"), 3), 2);
    assert_eq!(hits(player("clairvoyant"), &keys("abcadbae"), 3), 3);
}

/// The replays of both were taken for those of each, so that its second size had the hits of the
/// first.
#[test]
fn a_policy_that_is_named_twice_counts_once() {
    let trace = trace_of(&[(1, 1), (2, 1), (1, 1), (2, 1)]);
    let line = ["cache-sim", "--synthetic", "photo", "--policies", "lru,fifo,lru"];
    let curves = replay_all(&Line::parse_from(line).arguments, &trace, &[1, 2]);
    let hits = |curve: &Curve| curve.points.iter().map(|point| point.hits).collect::<Vec<_>>();
    let found: Vec<_> = curves.iter().map(|curve| (curve.player.name(), hits(curve))).collect();
    assert_eq!(found, [("lru", vec![0, 2]), ("fifo", vec![0, 2])]);
}

#[test]
fn deletions_take_objects_out() {
    let mut builder = Builder::default();
    for (key, is_deletion) in
        [(1, false), (1, false), (1, true), (1, true), (1, false), (2, true), (1, false)]
    {
        assert!(builder.push(key, 1, is_deletion));
    }
    let trace = builder.finish();
    for (name, _) in PolicyKind::NAMES {
        assert_eq!(hits(player(name), &trace, 10), 2, "{name}");
    }
    assert_eq!(hits(Player::Clairvoyant, &trace, 10), 2);
}

/// The most hits that any choices can give, by trying all of them.
fn best(requests: &[Request], cached: &[u32], capacity: usize) -> u64 {
    let Some((first, rest)) = requests.split_first() else { return 0 };
    let object = first.object();
    if cached.contains(&object) {
        return 1 + best(rest, cached, capacity);
    }
    let mut most = best(rest, cached, capacity);
    let mut fuller = cached.to_vec();
    fuller.push(object);
    if fuller.len() <= capacity {
        return most.max(best(rest, &fuller, capacity));
    }
    for victim in 0..capacity {
        let mut changed = fuller.clone();
        changed.swap_remove(victim);
        most = most.max(best(rest, &changed, capacity));
    }
    most
}

#[test]
fn nobody_does_better_than_the_clairvoyant() {
    let mut random = fastrand::Rng::with_seed(11);
    for capacity in 1..=3 {
        for _ in 0..30 {
            let requests: Vec<(u64, u64)> = (0..10).map(|_| (random.u64(..5), 1)).collect();
            let trace = trace_of(&requests);
            let found = hits(Player::Clairvoyant, &trace, capacity);
            assert_eq!(found, best(&trace.requests, &[], capacity as usize), "{requests:?}");
        }
    }
}

/// The order that the study of photo caches found.
#[test]
fn photos_are_best_kept_in_segments() {
    let trace = Synthetic::Photo.generate(500_000, 1, &Progress::things(0, "requests"));
    for capacity in [1_000, 10_000] {
        let [fifo, lru, s4lru, bound] = ["fifo", "lru", "s4lru", "clairvoyant"]
            .map(|name| hits(player(name), &trace, capacity));
        assert!(
            fifo < lru && lru < s4lru && s4lru < bound,
            "{capacity}: {fifo} {lru} {s4lru} {bound}"
        );
    }
}

/// What the policies decided when each object of a trace had a slot of its own. A replay that goes
/// about it in another way finds the same hits.
#[test]
fn a_long_trace_has_the_hits_that_it_always_had() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut builder = Builder::default();
    for _ in 0..300_000 {
        let keys = 1 << random.u32(4..16);
        let key = random.u64(..keys);
        assert!(builder.push(key, 1 + key * 7 % 5, random.u8(..50) == 0));
    }
    let trace = builder.finish();
    for (name, expected) in [
        ("lru", [79751, 176972]),
        ("fifo", [67205, 162662]),
        ("lfu", [92808, 187748]),
        ("slru", [114066, 194946]),
        ("s4lru", [112710, 192916]),
        ("s3_fifo", [118702, 196640]),
        ("sieve", [101743, 187748]),
        // Entries are of several sizes: as many as there are when counters are halved say how many
        // uses are left (W/2).
        ("w_tiny_lfu", [118907, 197533]),
    ] {
        assert_eq!(
            [500, 5_000].map(|capacity| hits(player(name), &trace, capacity)),
            expected,
            "{name}"
        );
    }
}

fn write(path: &Path, bytes: &[u8]) {
    Env::os().fs.create_writable(path, IoMode::Buffered).unwrap().write_at(0, bytes).unwrap();
}

fn oracle(requests: &[(u64, u32)]) -> Vec<u8> {
    let record = |(key, size): &(u64, u32)| {
        [&7u32.to_le_bytes()[..], &key.to_le_bytes(), &size.to_le_bytes(), &(-1i64).to_le_bytes()]
            .concat()
    };
    requests.iter().flat_map(record).collect()
}

#[test]
fn all_forms_of_a_trace_are_read_alike() {
    let directory = tempfile::tempdir().unwrap();
    let csv = b"time,key,size\n1,10,100\n1.5, 20, 200\r\n\n2,10,100\n3,30,0\n";
    let binary = oracle(&[(10, 100), (20, 200), (10, 100), (30, 0)]);
    let compressed = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    for (name, bytes) in [
        ("a.csv", csv.to_vec()),
        ("a.csv.zst", compressed(csv)),
        ("a.oracleGeneral", binary.clone()),
        ("a.oracleGeneral.zst", compressed(&binary)),
    ] {
        let path = directory.path().join(name);
        write(&path, &bytes);
        let trace = read(&path, None).unwrap();
        let objects: Vec<u32> = trace.requests.iter().map(|request| request.object()).collect();
        assert_eq!((objects, trace.sizes), (vec![0, 1, 0, 2], vec![100, 200, 1]), "{name}");
    }
    let path = directory.path().join("words");
    write(&path, b"1,apple,5,get\n2,pear,6,set\n3,apple,7,get\n4,apple,0,DELETE\n");
    let trace = read(&path, Some(Format::Csv)).unwrap();
    assert_eq!((trace.sizes, trace.resized), (vec![5, 6], 1));
    let deletions: Vec<bool> = trace.requests.iter().map(|request| request.is_deletion()).collect();
    assert_eq!(deletions, [false, false, false, true]);
}

#[test]
fn a_bad_trace_is_refused_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let good = "1,10,100\n".repeat(3);
    let binary = oracle(&[(10, 100); 3]);
    let mut cut = zstd::encode_all(&oracle(&[(10, 100); 100])[..], 3).unwrap();
    cut.truncate(cut.len() - 5);
    let immense = format!("{good}1,2,{}\n1,3,{0}\n", u64::MAX / 2 + 1);
    let cases: [(&str, Vec<u8>, &str, u64); 9] = [
        ("a.csv", format!("{good}1,10\n").into_bytes(), "line 4: expected time,key,size", 27),
        (
            "a.csv",
            format!("{good}x,10,100\n").into_bytes(),
            "line 4: the time 'x' is not a number",
            27,
        ),
        (
            "a.csv",
            format!("{good}1,10,-5\n").into_bytes(),
            "line 4: the size '-5' is not a number",
            27,
        ),
        ("a.csv", format!("{good}1,2,3,get,5\n").into_bytes(), "line 4: more than four fields", 27),
        // Two of them were more than a policy could count.
        ("a.csv", immense.into_bytes(), "line 4: an object of 9223372036854775808 bytes", 27),
        ("a.csv", [good.as_bytes(), b"\xff\n"].concat(), "line 4: not text", 27),
        (
            "a.csv",
            [good.as_bytes(), &[b'1'; 100_000]].concat(),
            "line 4: more than 65536 bytes",
            27,
        ),
        ("a.bin", binary[..60].to_vec(), "the trace ends within a request: 12 of 24 bytes", 48),
        ("a.bin", cut, "cannot read the trace", 0),
    ];
    for (name, bytes, expected, offset) in cases {
        let path = directory.path().join(name);
        write(&path, &bytes);
        let error = read(&path, None).unwrap_err();
        assert!(error.message().contains(expected), "{error}");
        assert_eq!((error.path(), error.offset()), (Some(&*path), Some(offset)), "{error}");
    }
}

/// Any bytes are a trace or an error, and what is a trace can be replayed.
#[test]
fn hostile_traces_are_read_and_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let csv = b"time,key,size,op\n1,10,100,get\n1.5,pear,200,set\n2,10,100,del\n3,30,0\n".to_vec();
    let binary = oracle(&[(10, 100), (20, 200), (10, 100), (30, 0)]);
    let compressed = zstd::encode_all(&csv[..], 3).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    for (name, seed) in [("a.csv", csv), ("a.bin", binary), ("b.csv", compressed)] {
        for _ in 0..200 {
            let mut bytes = seed.clone();
            testkit::fuzz::mutate(&mut random, &mut bytes);
            let path = directory.path().join(name);
            write(&path, &bytes);
            let Ok(trace) = read(&path, None) else { continue };
            for capacity in [1, trace.footprint(), u64::MAX] {
                for (policy, _) in PolicyKind::NAMES {
                    hits(player(policy), &trace, capacity);
                }
                hits(Player::Clairvoyant, &trace, capacity);
            }
        }
    }
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

#[test]
fn the_flags_are_understood() {
    let parse = |line: &str| Line::try_parse_from(["cache-sim"].into_iter().chain(line.split(' ')));
    let arguments = parse("--synthetic zipf:0.9 --sizes 1%,16M --policies sieve,clairvoyant")
        .unwrap()
        .arguments;
    assert_eq!(arguments.synthetic, Some(Synthetic::Zipf(0.9)));
    assert_eq!(arguments.sizes, [Size::Percent(1.0), Size::Bytes(16 << 20)]);
    assert_eq!(arguments.policies, [Player::Policy(PolicyKind::Sieve), Player::Clairvoyant]);
    for wrong in [
        "--synthetic cars",
        "--synthetic zipf:0",
        "--synthetic photo --sizes 0%",
        "--synthetic photo --sizes many",
        "--synthetic photo --policies best",
        "--synthetic photo a.csv",
        "--synthetic photo --requests 0",
        "--sizes 1%",
    ] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_plot_has_a_curve_for_each_policy() {
    let point = Counts { uses: 4, hits: 1, ..Counts::default() };
    let curves =
        ["lru", "clairvoyant"].map(|name| Curve { player: player(name), points: vec![point; 2] });
    let svg = plot::svg(&Trace::default(), &[100, 10_000], &curves);
    assert_eq!((svg.matches("<polyline").count(), svg.matches("<circle").count()), (2, 4));
    assert!(svg.contains("points=\"60.0,355.0 740.0,355.0\""), "{svg}");
    assert!(svg.contains(">clairvoyant<") && svg.contains(">9.8 KiB<"), "{svg}");
    // Objects that are made up were counted in bytes.
    let counted = Trace { uniform: Some(1), ..Trace::default() };
    assert!(plot::svg(&counted, &[100, 10_000], &curves).contains(">10000<"));
}
