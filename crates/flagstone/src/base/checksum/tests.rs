use super::*;

#[test]
fn crc32c_of_the_published_vectors() {
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    assert_eq!(crc32c_append(crc32c(b"1234"), b"56789"), crc32c(b"123456789"));
}

#[test]
fn masking_is_undone() {
    for crc in [0, 1, 0xffff_ffff, 0x1234_5678] {
        assert_eq!(unmask(mask(crc)), crc);
        assert_ne!(mask(crc), crc);
    }
}

#[test]
fn golden_first_record_of_a_wal() {
    // wal.md 2.6: type byte 01, then the batch of Put("foo", "bar").
    let covered = b"\x01\x01\0\0\0\0\0\0\0\x01\0\0\0\x01\x03foo\x03bar";
    assert_eq!(mask(crc32c(covered)).to_le_bytes(), [0xaf, 0xbf, 0xeb, 0x5e]);
}

#[test]
fn golden_block_of_a_table() {
    // sst.md 13: the data block of the worked example and its trailer.
    let block = b"\0\x0a\x03a1\x01\0\0\0\0\0\0\0one\x01\x09\x032\x01\0\0\0\0\0\0\0two\
        \0\x09\0b\0\0\0\0\0\0\0\0\0\x09\x01c\x02\0\0\0\0\0\0\0m\0\0\0\0\x01\0\0\0";
    assert_eq!(block.len(), 0x40);
    assert_eq!(
        block_checksum(ChecksumType::Crc32c, block, 0).to_le_bytes(),
        [0x4d, 0xae, 0x9a, 0x3f]
    );
    // The same block in the format 7 file, which has XXH3 and a context checksum.
    let plain = block_checksum(ChecksumType::Xxh3, block, 0);
    assert_eq!(plain, 0x73de_b36c);
    assert_eq!(plain.wrapping_add(context_modifier(0x7c07_5d8e, 0)), 0xefe6_10fa);
    assert_eq!(0xce3d_6a2b_u32.wrapping_add(context_modifier(0x7c07_5d8e, 0x45)), 0x4a44_c7f6);
}

#[test]
fn a_context_folds_the_offset_to_32_bits() {
    assert_eq!(context_modifier(0, 12345), 0);
    assert_eq!(context_modifier(5, 0x0000_0002_0000_0001), 5 ^ 3);
    assert_eq!(context_modifier(5, 0xffff_ffff_0000_0001), 5);
}

#[test]
fn every_type_sees_every_byte() {
    let block: Vec<u8> = (0..300u32).map(|i| i as u8).collect();
    for byte in 1..=4 {
        let kind = ChecksumType::from_byte(byte).unwrap();
        assert_eq!(kind.to_byte(), byte);
        let good = block_checksum(kind, &block, 4);
        assert_ne!(block_checksum(kind, &block, 5), good);
        for i in 0..block.len() {
            let mut bad = block.clone();
            bad[i] ^= 1;
            assert_ne!(block_checksum(kind, &bad, 4), good);
        }
    }
}

#[test]
fn the_checksum_of_the_whole_follows_from_that_of_its_end() {
    let bytes: Vec<u8> = (0..Suffix::LENGTH_MAX + 100).map(|n| (n * n / 7) as u8).collect();
    for length in [0, 1, 8, 255, 256, 257, 1000, 4096, Suffix::LENGTH_MAX] {
        for beginning in [0, 1, 19, 100] {
            let (first, end) = bytes[..beginning + length].split_at(beginning);
            let whole = Suffix::of(end).behind(crc32c(first));
            assert_eq!(whole, crc32c(&bytes[..beginning + length]), "{beginning} and {length}");
        }
    }
}
