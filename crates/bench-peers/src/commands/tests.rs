use super::*;
use clap::CommandFactory;

#[test]
fn the_command_line_is_consistent() {
    Arguments::command().debug_assert();
}

#[test]
fn settings_name_their_engine() {
    let parsed = parse_setting("rocksdb-blob:a=b=c").unwrap();
    assert_eq!(parsed, (EngineName::RocksdbBlob, "a".to_string(), "b=c".to_string()));
    assert!(parse_setting("a=b").is_err());
    assert!(parse_setting("mysql:a=b").is_err());
}
