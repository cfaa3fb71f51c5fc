use super::*;

#[test]
fn golden_hashes_of_every_length_class() {
    let input: Vec<u8> = (0..2048u32).map(|i| (131 * i + 7) as u8).collect();
    for (n, expected) in [
        (0, 0x5342_c301_0fe1_dd04),
        (1, 0xb71d_295c_7865_c7e9),
        (3, 0x8b93_d653_06b4_7960),
        (4, 0x640d_fa78_d960_2caa),
        (8, 0xe02b_b026_0ca2_f426),
        (9, 0x82e2_7d91_ecbd_e0e3),
        (16, 0x808d_c7f6_a08e_1828),
        (17, 0x6216_c07c_87bf_e5d1),
        (64, 0xec97_64f4_fa25_86fd),
        (128, 0xb885_f0d2_6898_35e1),
        (129, 0xfe14_6eb2_e99b_1a68),
        (240, 0xddce_7abb_d046_abf1),
        (241, 0xb1e5_3475_de84_b071),
        (256, 0xd4e2_1b1a_d9fa_d6c0),
        (1024, 0x144a_a676_708d_a11c),
        (1025, 0x6210_58c4_914d_5089),
        (2048, 0xefa5_7a01_3282_3302),
    ] {
        assert_eq!(hash64(&input[..n]), expected, "length {n}");
    }
}

#[test]
fn golden_hashes_of_text() {
    assert_eq!(hash64(b"foo"), 0x2540_784d_970d_de34);
    assert_eq!(hash64(b"hello world"), 0xe5f7_b821_56a0_7a14);
    assert_eq!(hash64(b"a"), 0x88d8_68bf_6076_81c7);
}

#[test]
fn the_old_hash_of_every_tail() {
    // LevelDB's published values; its tails are unsigned, which is the same while no byte there is
    // 0x80 or more.
    assert_eq!(hash32(&[], 0xbc9f_1d34), 0xbc9f_1d34);
    assert_eq!(hash32(&[0x62], 0xbc9f_1d34), 0xef13_45c4);
    assert_eq!(hash32(&[0xe1, 0x80, 0xb9, 0x32], 0xbc9f_1d34), 0xed21_633a);
    let mut seen = std::collections::HashSet::new();
    for n in 0..9 {
        assert!(seen.insert(hash32(&b"\xff\xfe\x01\x80\xff\x7f\x80\xff"[..n], 397)));
    }
}
