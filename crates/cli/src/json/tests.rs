use super::*;

/// The examples of RFC 4648.
#[test]
fn base64_is_the_usual_one() {
    for (bytes, text) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ] {
        assert_eq!(base64(bytes.as_bytes()), text);
    }
    assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
}

#[test]
fn text_is_carried_as_it_is_and_the_rest_is_marked() {
    let mut object = json!({});
    tell(&mut object, "key", b"a\\b\n\0", Notation::Plain);
    tell(&mut object, "value", b"\xff", Notation::Plain);
    tell(&mut object, "other", b"\xff", Notation::Hex);
    tell_path(&mut object, "file", None);
    let expected =
        json!({ "key": "a\\b\n\0", "value_base64": "/w==", "other": "ff", "file": null });
    assert_eq!(object, expected);
    assert_eq!(value(b"\xff"), json!({ "base64": "/w==" }));
}
