use clap::Parser;

use super::*;
use crate::bench::flags::tests::parse;
use crate::command_line::CommandLine;

/// They were refused there, but for those that are flags of this program.
#[test]
fn flags_of_every_command_may_come_before_it() {
    let (flags, settings) =
        parse("flagstone --json --set block_size=8k bench -num=3 --write_buffer_size=1048576");
    assert_eq!(flags.num, 3);
    let named: Vec<_> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert!(named.contains(&"write_buffer_size=1048576".to_string()), "{named:?}");
    let other = ["flagstone", "get", "--db", "bench", "-num"].map(OsString::from);
    assert_eq!(translate(other.clone().into_iter()), other);
}

/// Only flags of its own were, and of the others the value was refused as an argument too many.
#[test]
fn a_value_may_be_the_next_argument() {
    let line = "flagstone bench --num 7 --write_buffer_size 1000000 -wal_ttl_seconds 5 --stats_interval -1 --row_cache_size \
         0 --disable_auto_compactions --undefok=other --other 3 --num_multi_db 2 --reads 9";
    let (flags, settings) = parse(line);
    assert_eq!((flags.num, flags.reads), (7, 9));
    let named: Vec<_> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let expected =
        ["write_buffer_size=1000000", "WAL_ttl_seconds=5", "disable_auto_compactions=true"];
    assert_eq!(named, expected);
    assert_eq!(flags.inert, ["stats_interval", "other"]);
    assert_eq!(flags.absent, ["num_multi_db=2"]);
}

/// gflags passes over what follows a switch, and takes it for on: nobody means that.
#[test]
fn a_switch_takes_no_argument() {
    let translated =
        translate("flagstone bench --disable_auto_compactions 0".split(' ').map(OsString::from));
    assert!(CommandLine::try_parse_from(translated).is_err());
}

/// It was refused, with every flag that it was said to be similar to.
#[test]
fn a_switch_is_turned_off_by_no() {
    let line = "flagstone bench --histogram --nohistogram -nouse_existing_db --nodisable_auto_compactions --noreadonly";
    let (flags, settings) = parse(&format!("{line} --no_block_cache"));
    assert!(
        !flags.histogram && !flags.use_existing_db && flags.absent.is_empty(),
        "{:?}",
        flags.absent
    );
    let named: Vec<_> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(named, ["disable_auto_compactions=false", "no_block_cache=true"]);
    for wrong in ["--nonum", "--nonsense", "--no"] {
        let translated = translate(["flagstone", "bench", wrong].map(OsString::from).into_iter());
        assert!(CommandLine::try_parse_from(translated).is_err(), "{wrong}");
    }
}

#[test]
fn a_misspelt_flag_is_refused() {
    let translated = translate("flagstone bench --nun=3".split(' ').map(OsString::from));
    assert!(CommandLine::try_parse_from(translated).is_err());
}
