use super::*;

fn ordered(line: &str) -> String {
    let arguments = in_order(line.split(' ').map(OsString::from).collect());
    arguments.iter().filter_map(|argument| argument.to_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn flags_in_front_of_the_command_come_behind_it() {
    for (line, understood) in [
        ("flagstone --db=scan scan --limit=3", "flagstone scan --db=scan --limit=3"),
        ("flagstone --hex --db get --cf put scan", "flagstone scan --hex --db get --cf put"),
        ("flagstone --json bench -num=3", "flagstone bench --json -num=3"),
        ("flagstone --db /d repair", "flagstone repair --db /d"),
        // Of a flag that is no flag of every command the value passed for the command.
        ("flagstone --limit 3 scan --db d", "flagstone scan --limit 3 --db d"),
        ("flagstone --max_keys 3 --no_value scan", "flagstone scan --max_keys 3 --no_value"),
        ("flagstone --to get --db d salvage", "flagstone salvage --to get --db d"),
        ("flagstone --nonsense 3 scan", "flagstone scan --nonsense 3"),
        ("flagstone --ttl scan --db d", "flagstone scan --ttl --db d"),
        // What has a value in one command has none in another.
        ("flagstone --keys blob f", "flagstone blob --keys f"),
        ("flagstone --statistics f doctor", "flagstone doctor --statistics f"),
        ("flagstone --statistics -num 7 bench", "flagstone bench --statistics -num 7"),
        ("flagstone --block_size 8k --sync bench", "flagstone bench --block_size 8k --sync"),
        ("flagstone --enable_blob_files bench", "flagstone bench --enable_blob_files"),
    ] {
        assert_eq!(ordered(line), understood);
    }
    for line in [
        "flagstone",
        "flagstone --db",
        "flagstone --db x",
        "flagstone get --db x -- --db",
        "flagstone -- scan",
        "flagstone --version scan",
        "flagstone --json --help scan",
    ] {
        assert_eq!(ordered(line), line);
    }
}
