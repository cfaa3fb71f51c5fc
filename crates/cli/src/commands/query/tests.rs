use super::*;

/// What scan shows of a key can be typed.
#[test]
fn a_word_stands_for_what_is_shown_so() {
    for bytes in [&b"plain"[..], b"a b\tc\n", b"\\x", "gr\u{fc}n".as_bytes(), b"\xff\x00'\""] {
        let shown = Notation::Plain.show(bytes).replace(' ', "\\x20");
        assert_eq!(unescaped(&shown).as_deref(), Some(bytes), "{shown}");
    }
    for wrong in ["\\", "\\q", "\\x", "\\x1", "\\xg0"] {
        assert_eq!(unescaped(wrong), None, "{wrong}");
    }
}
