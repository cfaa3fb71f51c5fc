use super::*;

fn dump_line(family: &str, key: &[u8], value: &[u8]) -> String {
    format!("{}{}\n", dump_line_start(family, key), hex(value))
}

#[test]
fn what_is_shown_in_pieces_is_what_is_shown_whole() {
    let mut random = fastrand::Rng::with_seed(3);
    let parts = ["a", "\u{301}", "\u{e4}", "\u{20ac}", "\u{1f600}", "\\", "\n"].map(str::as_bytes);
    let broken: [&[u8]; 5] = [b"\xff", b"\xe2\x82", b"\xf0\x9f", b"\x80", b"\xc3"];
    for _ in 0..2000 {
        let all: Vec<u8> = (0..random.usize(0..12))
            .flat_map(|_| {
                if random.u8(0..4) > 0 {
                    parts[random.usize(0..7)]
                } else {
                    broken[random.usize(0..5)]
                }
            })
            .copied()
            .collect();
        for notation in [Notation::Plain, Notation::Hex] {
            let (mut shown, mut text, mut rest) = (Shown::new(notation), String::new(), &all[..]);
            while !rest.is_empty() {
                let (piece, next) = rest.split_at(random.usize(1..=rest.len()));
                text += &shown.piece(piece);
                rest = next;
            }
            text += &shown.end();
            assert_eq!(text, notation.show(&all), "{}", all.escape_ascii());
        }
    }
}

#[test]
fn hexadecimal_of_any_length_is_that_of_each_byte() {
    let bytes: Vec<u8> = (0..=255).chain([0x0f, 0xf0, 0x9a]).collect();
    for length in (0..9).chain([bytes.len()]) {
        let expected: String = bytes[..length].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex(&bytes[..length]), expected);
    }
    assert_eq!(from_hex(&hex(&bytes)), Some(bytes));
}

#[test]
fn hexadecimal_is_read_in_pieces_as_it_is_whole() {
    for text in ["0x61626364", "61626364", "0x6", "616", "61g2", "6x61", "0x"] {
        for cut in 2..text.len().max(3) {
            let (first, second) = text.split_at(cut.min(text.len()));
            let (mut pieces, mut bytes) = (HexPieces::default(), Vec::new());
            let read = pieces
                .read(first.as_bytes(), &mut bytes)
                .and_then(|()| pieces.read(second.as_bytes(), &mut bytes))
                .filter(|()| pieces.is_whole());
            assert_eq!(read.map(|()| bytes), from_hex(text), "{text} cut at {cut}");
        }
    }
}

#[test]
fn hexadecimal_is_undone() {
    assert_eq!(hex(b"\x00\xffa"), "00ff61");
    assert_eq!(from_hex("0x00FF61").unwrap(), b"\x00\xffa");
    assert_eq!(from_hex("").unwrap(), b"");
    for wrong in ["0", "0g", "123", "0x1", "+1"] {
        assert_eq!(from_hex(wrong), None, "{wrong}");
    }
}

/// Values that were JSON came with a backslash before each quote.
#[test]
fn what_is_printable_is_shown_as_it_is() {
    let json = br#"{"name":"O'Neill"}"#;
    assert_eq!(Notation::Plain.show(json).as_bytes(), json);
    assert_eq!(Notation::Plain.show(b"a\\b\t\x00\xff"), r"a\\b\t\x00\xff");
    assert_eq!(Notation::Hex.show(b"\\\""), "5c22");
}

/// Names of files in most languages could not be read.
#[test]
fn letters_are_shown_in_every_language() {
    let shown = |text: &[u8]| Notation::Plain.show(text);
    assert_eq!(shown("B\u{e4}ume/\u{6728}.jpg".as_bytes()), "B\u{e4}ume/\u{6728}.jpg");
    // The right-to-left override, and the beginning of a character.
    assert_eq!(shown("\u{202e}a".as_bytes()), r"\xe2\x80\xaea");
    assert_eq!(shown(b"a\xc3"), r"a\xc3");
    assert_eq!(shown("\u{85}\r".as_bytes()), r"\xc2\x85\r");
}

/// As macOS writes them, of letters and accents, they could not either.
#[test]
fn accents_are_shown_on_their_letters() {
    let shown = |text: &str| Notation::Plain.show(text.as_bytes());
    for name in ["Ba\u{308}ume", "a\u{301}\u{323}", "\u{915}\u{93f}", "\u{2764}\u{fe0f}"] {
        assert_eq!(shown(name), name);
    }
    // Not on a tab before the value, on a digit that stands for a byte, or on a direction.
    assert_eq!(shown("\u{301}a"), r"\xcc\x81a");
    assert_eq!(shown("\u{1}\u{301}"), r"\x01\xcc\x81");
    assert_eq!(shown("a\u{202e}\u{301}"), r"a\xe2\x80\xae\xcc\x81");
    assert_eq!(Notation::Plain.show(b"a\xff\xcc\x81"), r"a\xff\xcc\x81");
    // What joins others is not seen.
    assert_eq!(shown("a\u{200d}"), r"a\xe2\x80\x8d");
}

#[test]
fn dump_lines_are_undone() {
    for (family, key, value) in [
        ("default", &b"k"[..], &b"v"[..]),
        ("two words", b"", b""),
        ("x", b"\0", b""),
        ("x", b"", b" "),
    ] {
        let line = dump_line(family, key, value);
        let parsed = DumpLine::parse(line.trim_end_matches('\n')).unwrap();
        assert_eq!(parsed, DumpLine::Entry(family, key.to_vec(), value.to_vec()));
        let start = DumpStart::parse(line.trim_end_matches('\n')).unwrap();
        assert_eq!(start, DumpStart { family, key: key.to_vec(), value: &hex(value) });
    }
    for family in ["default", "two words", "a comparator=b", " "] {
        let line = order_line(family, "c");
        assert_eq!(
            DumpLine::parse(line.trim_end_matches('\n')),
            Some(DumpLine::Order(family, "c"))
        );
    }
    assert_eq!(
        DumpLine::parse("a comparator=b 61 "),
        Some(DumpLine::Entry("a comparator=b", b"a".into(), vec![]))
    );
    for line in ["default 61", " 61 62", " comparator=c"] {
        assert_eq!(DumpLine::parse(line), None);
    }
    assert_eq!(DumpStart::parse(" 61 62"), None);
    assert_eq!(DumpLine::parse("default 6x 61"), None);
}

/// Any line is an entry, an order or an error; what it says is printed so that it says the same.
#[test]
fn hostile_dump_lines_are_read() {
    let mut random = fastrand::Rng::with_seed(1);
    for seed in [
        "default 61 62",
        "two words  00ff",
        "\u{e4} 61 ",
        "x comparator=c d 0x61",
        " comparator= 6",
    ] {
        for _ in 0..1000 {
            let mut bytes = seed.as_bytes().to_vec();
            testkit::fuzz::mutate(&mut random, &mut bytes);
            assert!(!Notation::Plain.show(&bytes).contains(char::is_control), "{bytes:?}");
            let Ok(line) = std::str::from_utf8(&bytes) else { continue };
            let parsed = DumpLine::parse(line);
            let printed = match &parsed {
                Some(DumpLine::Entry(family, key, value)) => dump_line(family, key, value),
                Some(DumpLine::Entity(family, key, entity)) => {
                    format!("{}{}\n", dump_line_start(family, key), dump_entity(entity))
                }
                Some(DumpLine::Order(family, comparator)) => order_line(family, comparator),
                None => continue,
            };
            assert_eq!(DumpLine::parse(&printed[..printed.len() - 1]), parsed, "{line:?}");
        }
    }
}

#[test]
fn byte_counts_are_readable() {
    assert_eq!(bytes(999), "999 B");
    assert_eq!(bytes(1536), "1.5 KiB");
    assert_eq!(bytes(u64::MAX), "16384.0 PiB");
}
