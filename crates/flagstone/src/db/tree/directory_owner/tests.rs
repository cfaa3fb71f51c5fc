use super::*;

#[test]
fn an_owner_is_read_as_it_was_written() {
    let place = |path: &[u8], id| Place { path: OsStr::from_bytes(path).into(), id };
    let whole = Owner {
        database: place(b"/a \n path/\xff", Some((7, 12))),
        identity: Some("4b6f".to_string()),
        directory: place(b"/fast", Some((3, 4))),
    };
    let bare =
        Owner { database: place(b"/db", None), identity: None, directory: place(b"/fast", None) };
    let cases = [
        (whole, &b"/a \n path/\xff\x007:12\x004b6f\0/fast\x003:4\0"[..]),
        (bare, b"/db\0-\0\0/fast\0-\0"),
    ];
    for (owner, bytes) in cases {
        assert_eq!(owner.encoded(), bytes);
        for cut in 0..bytes.len() {
            assert_eq!(Owner::decoded(&bytes[..cut]), None, "{cut}");
        }
        assert_eq!(Owner::decoded(bytes), Some(owner));
    }
    let strange: [&[u8]; 5] = [
        b"\0-\0\0/fast\0-\0",
        b"db\0-\0\0/fast\0-\0",
        b"/db\x007\0\0/fast\0-\0",
        b"/db\x00x:1\0\0/fast\0-\0",
        b"/db\0-\0\xff\0/fast\0-\0",
    ];
    for bytes in strange {
        assert_eq!(Owner::decoded(bytes), None, "{bytes:?}");
    }
}
