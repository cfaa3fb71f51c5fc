use super::*;

#[test]
fn golden_unique_id() {
    let UniqueId(id) = UniqueId::new(
        "fee32865-4035-4ae2-8dd6-3f4cdf8990cf",
        "QMRXYD2YEAMS18Z2TS60",
        FileNumber(9),
    );
    assert_eq!(id[..8], 11_104_950_883_070_747_096_u64.to_le_bytes());
    assert_eq!(id[8..], 12_328_419_976_745_822_981_u64.to_le_bytes());
}

#[test]
fn a_new_session_reads_back_as_the_bits_it_was_made_of() {
    // 41 bits of the upper half fit into eight digits.
    let (upper, lower) = (0x7f_1234_5678, 0xdead_beef_0123_4567);
    let session = session_identity(upper, lower);
    assert_eq!(session.len(), 20);
    assert!(session.bytes().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase()));
    assert_eq!(parse_session(&session), Some((upper, lower)));
}

#[test]
fn a_malformed_session_still_gives_an_id() {
    for session in ["", "short", "has spaces in it, clearly", "0123456789AB"] {
        assert_eq!(parse_session(session), None);
        let id = |number| UniqueId::new("db", session, FileNumber(number));
        assert_ne!(id(1), id(2));
    }
}
