use super::*;
use crate::env::memory::MemoryFileSystem;
use crate::wal::BLOCK_SIZE;

fn write(fs: &MemoryFileSystem, records: &[Vec<u8>]) -> Vec<u8> {
    fs.create_directory(Path::new("/db")).unwrap();
    let mut writer =
        Writer::new(fs.create_writable(Path::new("/db/M"), IoMode::Buffered).unwrap()).unwrap();
    for record in records {
        writer.add(record).unwrap();
    }
    writer.sync().unwrap();
    crate::env::read_file(fs, Path::new("/db/M"), u64::MAX).unwrap()
}

fn read(fs: &MemoryFileSystem) -> Result<Vec<Vec<u8>>> {
    let mut reader = Reader::open(fs, Path::new("/db/M"))?;
    let mut records = Vec::new();
    while let Some((_, record)) = reader.next()? {
        records.push(record.to_vec());
    }
    Ok(records)
}

#[test]
fn the_minimal_manifest_of_the_specification() {
    let bytes = write(&MemoryFileSystem::new(), &[vec![2, 0, 3, 2, 4, 0]]);
    assert_eq!(bytes, [0xc4, 0xc1, 0x9f, 0x5b, 6, 0, 1, 2, 0, 3, 2, 4, 0]);
}

#[test]
fn records_of_all_sizes_come_back() {
    let fs = MemoryFileSystem::new();
    // The second sizes leave 7, 6 and 0 bytes in the first block.
    for second in [BLOCK_SIZE - 24, BLOCK_SIZE - 23, BLOCK_SIZE - 17, 100_000, 0] {
        let records = [vec![1; 3], vec![2; second], vec![3; 5], vec![]];
        write(&fs, &records);
        assert_eq!(read(&fs).unwrap(), records, "{second}");
    }
}

/// It took as many gigabytes as the file had megabytes.
#[test]
fn what_a_compressed_manifest_may_become_is_limited() {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/db")).unwrap();
    for (size, is_read) in [(1 << 20, true), (65 << 20, false)] {
        let options =
            WriterOptions { compression: wal::WalCompression::Zstd, ..WriterOptions::default() };
        let file = fs.create_writable(Path::new("/db/M"), IoMode::Buffered).unwrap();
        let mut writer = wal::Writer::new(file, NO_NUMBER, options).unwrap();
        writer.add_record(&vec![7; size]).unwrap();
        writer.file().sync().unwrap();
        let outcome = read(&fs);
        assert_eq!(outcome.is_ok_and(|records| records[0].len() == size), is_read, "{size}");
    }
}

#[test]
fn a_torn_last_record_is_ignored() {
    // After a power loss the file had its new size, but not all of its new bytes: the database did
    // not open.
    let fs = MemoryFileSystem::new();
    let records: Vec<_> = (1..5).map(|i| vec![i as u8; i * 57]).collect();
    let bytes = write(&fs, &records);
    let file = fs.reopen_writable(Path::new("/db/M")).unwrap();
    let last = bytes.len() - 4 * 57 - 7;
    for sector in [8, 16, 512] {
        for start in (0..bytes.len()).step_by(sector) {
            let lost = start.max(last)..(start + sector).min(bytes.len());
            if lost.is_empty() {
                continue;
            }
            file.write_at(lost.start as u64, &vec![0; lost.len()]).unwrap();
            assert_eq!(read(&fs).unwrap(), records[..3], "{lost:?}");
            file.write_at(0, &bytes).unwrap();
        }
    }
    // Bytes that another record follows were synced before that was written.
    let before = last - 3 * 57 - 7;
    file.write_at(before as u64 + 8, &[0; 64]).unwrap();
    assert!(read(&fs).unwrap_err().is_corruption());
    file.write_at(0, &bytes).unwrap();
    // Nothing is missing here.
    file.write_at(last as u64 + 30, &[0x55]).unwrap();
    assert!(read(&fs).unwrap_err().is_corruption());
}

/// All but the last edit of a large group are one write, of which a power loss may leave any parts.
#[test]
fn what_is_left_of_a_torn_group_is_no_damage() {
    let fs = MemoryFileSystem::new();
    let edit = |remaining: u32| {
        let edit = VersionEdit {
            atomic_group_remaining: Some(remaining),
            family_added: Some("a name ".repeat(20)),
            ..VersionEdit::default()
        };
        super::super::commit::encoded(&edit)
    };
    let before = [vec![1; 300], vec![2; 31]];
    let group: Vec<_> = (0..6).rev().map(edit).collect();
    let written = [&before[..], &group[..5]].concat();
    let bytes = write(&fs, &written);
    let begin = 300 + 31 + 2 * 7;
    let file = fs.reopen_writable(Path::new("/db/M")).unwrap();
    for sector in [8, 64, 512] {
        for start in (0..bytes.len()).step_by(sector) {
            for end in [start + sector, start + 3 * sector, bytes.len()] {
                let lost = start.max(begin)..end.min(bytes.len());
                if lost.is_empty() {
                    continue;
                }
                file.write_at(lost.start as u64, &vec![0; lost.len()]).unwrap();
                let found = read(&fs).unwrap_or_else(|error| panic!("{lost:?}: {error}"));
                assert!(found.len() >= 2 && found[..] == written[..found.len()], "{lost:?}");
                file.write_at(0, &bytes).unwrap();
            }
        }
    }
    // A group that is there to its end was synced before that was written.
    let whole = write(&fs, &[&before[..], &group[..]].concat());
    file.write_at(begin as u64 + 8, &[0; 16]).unwrap();
    assert!(read(&fs).unwrap_err().is_corruption());
    file.write_at(0, &whole).unwrap();
    assert_eq!(read(&fs).unwrap().len(), 8);
}

/// A bit of a record's type or length, or zeros instead of its header, and it was taken for the
/// last, be there as many behind it as there are: an older state was opened without a word.
#[test]
fn damage_is_no_end_where_records_follow() {
    let fs = MemoryFileSystem::new();
    // In one block, and in the last of three.
    for first in [40, 2 * BLOCK_SIZE] {
        let records: Vec<_> =
            [first, 300, 5, 0, 70, 280, 9].iter().map(|&size| vec![7; size]).collect();
        let bytes = write(&fs, &records);
        let file = fs.reopen_writable(Path::new("/db/M")).unwrap();
        let last = bytes.len() - 9 - 7;
        let begin = last - (300 + 5 + 70 + 280) - 5 * 7;
        let flips = (begin..last).flat_map(|at| (0..8).map(move |bit| (at, Some(bit))));
        let holes = (begin..last).map(|at| (at, None));
        for (at, flipped) in flips.chain(holes) {
            let damage = match flipped {
                Some(bit) => vec![bytes[at] ^ 1 << bit],
                None => vec![0; 7.min(last - at)],
            };
            file.write_at(at as u64, &damage).unwrap();
            if damage[..] != bytes[at..at + damage.len()] {
                let found = read(&fs).expect_err(&format!("{at} of {}: {damage:?}", bytes.len()));
                assert!(found.is_corruption() && found.offset().is_some(), "{found}");
            }
            file.write_at(at as u64, &bytes[at..at + damage.len()]).unwrap();
        }
        assert_eq!(read(&fs).unwrap(), records);
    }
}

/// Where eight zeros are in an edit, as in the number of a key that a compaction has taken to the
/// bottom, a bit that had changed anywhere in the last one passed for what a power loss leaves: an
/// older state was opened without a word.
#[test]
fn a_wrong_bit_in_the_last_record_is_no_hole() {
    let fs = MemoryFileSystem::new();
    for before in 40..48 {
        let last = [&[0x55; 20][..], &[0; 20], &[0xaa; 20]].concat();
        let bytes = write(&fs, &[vec![7; before], last]);
        let file = fs.reopen_writable(Path::new("/db/M")).unwrap();
        for (at, bit) in (before + 7..bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            file.write_at(at as u64, &[bytes[at] ^ 1 << bit]).unwrap();
            let found = read(&fs).expect_err(&format!("{at} of {}, bit {bit}", bytes.len()));
            assert!(found.is_corruption() && found.offset().is_some(), "{found}");
            file.write_at(at as u64, &[bytes[at]]).unwrap();
        }
    }
}

/// It passed for a record that a power loss had cut off, and an older state was opened.
#[test]
fn what_begins_like_no_record_is_damage_and_not_an_end() {
    let fs = MemoryFileSystem::new();
    let bytes = write(&fs, &[vec![1; 300], vec![2; 310]]);
    let file = fs.reopen_writable(Path::new("/db/M")).unwrap();
    // Its length goes past the end of the file.
    file.write_at(307, &vec![0x55; bytes.len() - 307]).unwrap();
    let found = read(&fs).unwrap_err();
    assert!(found.is_corruption() && found.offset() == Some(307), "{found}");
    // The type is the first byte of a piece that is not there.
    file.write_at(312, &[0; 8]).unwrap();
    assert_eq!(read(&fs).unwrap().len(), 1);
}

/// Another process reads while the writer appends: what was cut off is whole when it is looked at
/// again.
#[test]
fn what_has_grown_since_it_was_read_was_the_end() {
    let fs = MemoryFileSystem::new();
    write(&fs, &[vec![1; 300], vec![2; 31], vec![3; 5]]);
    let file = fs.open_random_access(Path::new("/db/M"), IoMode::Buffered).unwrap();
    for kind in [DamageKind::TruncatedHeader, DamageKind::TruncatedBody] {
        let damage = |offset| Damage { kind: kind.clone(), offset, dropped: 9 };
        assert!(is_torn_end(&*file, &damage(307)).unwrap());
        assert!(
            !is_torn_end(&*file, &damage(308)).unwrap(),
            "of what is damaged there, nothing becomes whole"
        );
    }
}

#[test]
fn a_cut_record_is_ignored_and_a_changed_one_is_not() {
    let fs = MemoryFileSystem::new();
    let records: Vec<_> = (0..40).map(|i| vec![i as u8; i * 57]).collect();
    let bytes = write(&fs, &records);
    let file = fs.reopen_writable(Path::new("/db/M")).unwrap();
    for at in (0..bytes.len()).step_by(101) {
        file.write_at(at as u64, &[bytes[at] ^ 0x20]).unwrap();
        if let Ok(read) = read(&fs) {
            assert!(read.len() < records.len() && read[..] == records[..read.len()], "{at}");
        }
        file.write_at(at as u64, &[bytes[at]]).unwrap();
    }
    // The first record's type becomes that of a recycled file's record.
    file.write_at(6, &[5]).unwrap();
    assert!(read(&fs).unwrap_err().is_corruption());
    file.write_at(6, &[bytes[6]]).unwrap();
    for size in (0..bytes.len()).rev().step_by(103) {
        file.truncate(size as u64).unwrap();
        let read = read(&fs).unwrap();
        assert!(read.len() < records.len() && read[..] == records[..read.len()], "{size}");
    }
}
