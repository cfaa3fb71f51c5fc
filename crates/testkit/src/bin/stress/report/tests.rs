use super::*;

/// A shell ended the line at the first semicolon of an option.
#[test]
fn arguments_are_quoted_where_a_shell_would_take_them_apart() {
    for (argument, written) in [
        ("--work", "--work"),
        ("/tmp/a-b_c.d", "/tmp/a-b_c.d"),
        ("write_buffer_size=1M", "write_buffer_size=1M"),
        (
            "block_cache={capacity=1;num_shard_bits=2}",
            "'block_cache={capacity=1;num_shard_bits=2}'",
        ),
        ("/tmp/it's here", r"'/tmp/it'\''s here'"),
        ("", "''"),
    ] {
        assert_eq!(quoted(argument), written);
    }
}
