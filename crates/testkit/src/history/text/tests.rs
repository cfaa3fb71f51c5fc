use super::*;

#[test]
fn words_of_bytes_read_back() {
    for (plain, text) in [
        (&b""[..], "\\e"),
        (b"k1", "k1"),
        (b"a b", "a\\20b"),
        (b"-", "\\2d"),
        (b";", "\\3b"),
        (b"a{\\}", "a\\7b\\5c}"),
        (b"xxxxxxxxx", "{9*x}"),
        (b"\0\0\0\0\0\0\0\0\xff", "{8*\\00}\\ff"),
    ] {
        assert_eq!(word(plain), text);
        assert_eq!(bytes(text).as_deref(), Ok(plain));
    }
    for wrong in ["{9*x", "{x*9}", "\\x", "{99999999999*x}", "\\g0", "{"] {
        assert!(bytes(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_no_operation_is_refused() {
    for wrong in
        ["", "wait", "write", "write safe first put k v", "crash kept", "check all", "flush"]
    {
        assert!(wrong.parse::<Operation>().is_err(), "{wrong}");
    }
}
