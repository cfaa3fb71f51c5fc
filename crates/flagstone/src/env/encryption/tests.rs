use std::path::PathBuf;

use super::*;
use crate::base::{Code, SubCode};
use crate::env::memory::MemoryFileSystem;
use crate::env::{IoMode, read_file};

/// Adds the key to each byte.
struct Shift {
    key: u8,
    block_size: usize,
}

impl BlockCipher for Shift {
    fn block_size(&self) -> usize {
        self.block_size
    }

    fn encrypt_blocks(&self, blocks: &mut [u8]) {
        blocks.iter_mut().for_each(|byte| *byte = byte.wrapping_mul(3).wrapping_add(self.key));
    }
}

fn shift(key: u8) -> Arc<dyn BlockCipher> {
    Arc::new(Shift { key, block_size: 16 })
}

/// Files in memory, and the same ones encrypted.
struct World {
    raw: MemoryFileSystem,
    env: Env,
}

impl World {
    fn new() -> Self {
        Self::of(MemoryFileSystem::new(), shift(1))
    }

    fn of(raw: MemoryFileSystem, cipher: Arc<dyn BlockCipher>) -> Self {
        raw.create_directory(Path::new("/db")).unwrap();
        let env = Env::memory().with_fs(Arc::new(raw.clone())).encrypted(cipher).unwrap();
        Self { raw, env }
    }

    fn with_key(&self, key: u8) -> Self {
        Self::of(self.raw.clone(), shift(key))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = Path::new("/db").join(name);
        let file = self.env.fs.create_writable(&path, IoMode::Buffered).unwrap();
        file.write_at(0, bytes).unwrap();
        path
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        read_file(&*self.env.fs, path, u64::MAX)
    }

    fn raw(&self, path: &Path) -> Vec<u8> {
        read_file(&self.raw, path, u64::MAX).unwrap()
    }

    fn set_raw(&self, path: &Path, bytes: Vec<u8>) {
        self.raw.put(path, Arc::new(bytes));
    }
}

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|at| b'a' + (at * 7 % 26) as u8).collect()
}

#[test]
fn any_range_reads_as_it_was_written_and_is_not_to_be_seen_on_the_disk() {
    for block_size in [16, 24, 32, 1024] {
        let cipher = Arc::new(Shift { key: 5, block_size });
        let world = World::of(MemoryFileSystem::new(), cipher);
        let path = Path::new("/db/000007.sst");
        let text = text(20_000);
        let file = world.env.fs.create_writable(path, IoMode::Buffered).unwrap();
        let mut offset = 0;
        for length in [1, 15, 16, 17, 4095, 4096, 4097, 7663] {
            file.write_at(offset as u64, &text[offset..offset + length]).unwrap();
            offset += length;
        }
        assert_eq!((offset, file.size().unwrap()), (text.len(), 20_000));
        assert_eq!(world.env.fs.metadata(path).unwrap().size, 20_000);
        let read = world.env.fs.open_random_access(path, IoMode::Buffered).unwrap();
        for (from, length) in [(0, 20_000), (3, 1), (15, 2), (16, 16), (4090, 9000), (19_999, 5)] {
            let mut buffer = vec![0; length];
            let filled = read.read_at(from as u64, &mut buffer).unwrap();
            assert_eq!(buffer[..filled], text[from..(from + length).min(20_000)], "{from}");
        }
        let raw = world.raw(path);
        assert_eq!(raw.len(), 4096 + 20_000);
        assert!(!raw.windows(8).any(|window| text.windows(8).any(|plain| plain == window)));
    }
}

#[test]
fn the_layout_is_that_of_rocksdb() {
    // Block `i` of the file, counted from its prefix on, is combined with the encryption of the
    // counter plus `i`, followed by the nonce without its first eight bytes.
    let world = World::new();
    let path = world.write("000007.sst", &[0; 40]);
    let raw = world.raw(&path);
    let first = u64::from_le_bytes(raw[..8].try_into().unwrap());
    for (index, stored) in raw[4096..].chunks(16).enumerate() {
        let mut block = raw[16..32].to_vec();
        block[..8].copy_from_slice(&first.wrapping_add(256 + index as u64).to_le_bytes());
        shift(1).encrypt_blocks(&mut block);
        assert_eq!(stored, &block[..stored.len()], "block {index}");
    }
}

/// FIGURES was in plain text.
#[test]
fn nothing_is_published_in_plain_text() {
    let directory = tempfile::tempdir().unwrap();
    let env = Env::os().encrypted(shift(1)).unwrap();
    let path = directory.path().join("FIGURES");
    assert!(env.fs.publish(&path).unwrap().is_none());
    assert!(!path.exists());
}

#[test]
fn two_files_have_two_keystreams() {
    let world = World::new();
    let (one, two) = (world.write("1.sst", &text(100)), world.write("2.sst", &text(100)));
    let again = world.raw(&one);
    assert_ne!(again[..32], world.raw(&two)[..32]);
    assert_ne!(again[4096..], world.raw(&two)[4096..]);
    // Nor does a file keep its own when it is made again.
    world.write("1.sst", &text(100));
    assert_ne!(again[4096..], world.raw(&one)[4096..]);
}

#[test]
fn a_wrong_key_is_told_by_every_file() {
    let world = World::new();
    let path = world.write("000007.sst", &text(100));
    let other = world.with_key(2);
    let modes =
        [OpenMode::RandomAccess(IoMode::Buffered), OpenMode::ReopenWritable, OpenMode::Reclaimable];
    for mode in modes {
        let before = world.raw(&path);
        let refused = mode.open(&*other.env.fs, &path).err().expect("a refusal");
        assert_eq!((refused.code(), refused.subcode()), (Code::InvalidArgument, SubCode::WrongKey));
        assert_eq!(refused.path(), Some(&*path));
        assert_eq!(world.raw(&path), before);
    }
    assert_eq!(world.read(&path).unwrap(), text(100));
}

#[test]
fn of_rocksdbs_files_current_tells_a_wrong_key() {
    let world = World::new();
    let path = world.write("CURRENT", b"MANIFEST-000004\n");
    // RocksDB writes no mark.
    let mut raw = world.raw(&path);
    raw[8..12].fill(b'x');
    world.set_raw(&path, raw);
    assert_eq!(world.read(&path).unwrap(), b"MANIFEST-000004\n");
    let refused = world.with_key(2).read(&path).unwrap_err();
    assert_eq!(refused.subcode(), SubCode::WrongKey);
}

#[test]
fn what_is_not_encrypted_is_told() {
    let world = World::new();
    let path = Path::new("/db/CURRENT");
    world.set_raw(path, b"MANIFEST-000004\n".to_vec());
    let refused = world.read(path).unwrap_err();
    assert!(refused.is_corruption() && refused.to_string().contains("not encrypted"), "{refused}");
    world.set_raw(path, text(5000));
    assert_eq!(world.read(path).unwrap_err().subcode(), SubCode::WrongKey);
}

#[test]
fn what_a_crash_leaves_of_a_prefix_has_no_contents() {
    let world = World::new();
    let path = world.write("000008.log", &text(100));
    let raw = world.raw(&path);
    let mut without_mark = raw[..512].to_vec();
    without_mark[..16].fill(0);
    for left in [Vec::new(), raw[..128].to_vec(), vec![0; 4095], without_mark] {
        world.set_raw(&path, left);
        assert_eq!(world.read(&path).unwrap(), b"");
        assert_eq!(world.env.fs.metadata(&path).unwrap().size, 0);
        let file = world.env.fs.reopen_writable(&path).unwrap();
        file.write_at(0, b"anew").unwrap();
        assert_eq!(world.read(&path).unwrap(), b"anew");
    }
}

/// Such a file was emptied when it was written to.
#[test]
fn what_may_not_be_encrypted_is_not_cut_off() {
    let world = World::new();
    let path = world.write("000008.log", &text(100));
    let mut plain = text(1000);
    plain[..16].fill(b'x');
    plain[32..48].fill(0);
    world.set_raw(&path, plain.clone());
    assert_eq!(world.read(&path).unwrap(), b"");
    let refused = world.env.fs.reopen_writable(&path).err().expect("a refusal");
    assert!(refused.is_corruption(), "{refused}");
    assert_eq!(refused.path(), Some(&*path));
    assert_eq!(world.raw(&path), plain);
}

#[test]
fn a_damaged_prefix_gives_other_bytes_and_no_panic() {
    let world = World::new();
    let path = world.write("000007.sst", &text(100));
    let raw = world.raw(&path);
    // The counter and the nonce change what is read; mark and sum are not needed for that.
    for (at, is_needed) in [(0, true), (7, true), (8, false), (12, false), (24, true), (40, false)]
    {
        let mut damaged = raw.clone();
        damaged[at] ^= 0x10;
        world.set_raw(&path, damaged);
        assert_eq!(world.read(&path).unwrap() != text(100), is_needed, "byte {at}");
    }
}

#[test]
fn a_file_that_is_read_while_it_is_made_shows_what_comes() {
    let world = World::new();
    let path = Path::new("/db/000008.log");
    world.raw.create_writable(path, IoMode::Buffered).unwrap();
    let read = world.env.fs.open_random_access(path, IoMode::Buffered).unwrap();
    let mut buffer = [0; 10];
    assert_eq!((read.read_at(0, &mut buffer).unwrap(), read.size().unwrap()), (0, 0));
    let written = world.env.fs.reopen_writable(path).unwrap();
    written.write_at(0, b"later").unwrap();
    assert_eq!(read.read_at(0, &mut buffer).unwrap(), 5);
    assert_eq!(buffer[..5], *b"later");
}

#[test]
fn holes_of_blob_files_read_as_zeros() {
    let world = World::of(MemoryFileSystem::with_block_size(512), shift(1));
    let path = world.write("000009.blob", &text(8000));
    let file = world.env.fs.open_reclaimable(&path).unwrap();
    assert!(file.punch_hole(1000..3100).unwrap());
    assert!(file.punch_hole(4001..4030).unwrap(), "there is no whole unit in it");
    let mut expected = text(8000);
    expected[1008..3088].fill(0);
    assert_eq!(world.read(&path).unwrap(), expected);
    let read = world.env.fs.open_random_access(&path, IoMode::Buffered).unwrap();
    for (from, length) in [(1004, 8), (1007, 1), (1008, 1), (2000, 100), (3087, 2), (3088, 1)] {
        let mut buffer = vec![7; length];
        assert_eq!(read.read_at(from as u64, &mut buffer).unwrap(), length);
        assert_eq!(buffer, expected[from..from + length], "{from}");
    }
}

#[test]
fn the_end_of_a_file_is_no_hole() {
    let world = World::new();
    let path = world.write("000008.log", &[0; 42]);
    // What is on the disk is the keystream; combined with itself it is zeros.
    let stream = world.raw(&path)[4096..].to_vec();
    let file = world.env.fs.reopen_writable(&path).unwrap();
    file.write_at(32, &stream[32..]).unwrap();
    assert_eq!(world.raw(&path)[4096 + 32..], [0; 10]);
    assert_eq!(world.read(&path).unwrap()[32..], stream[32..], "the file ends within the unit");
}

#[test]
fn what_was_never_written_reads_as_zeros() {
    let world = World::new();
    let path = world.write("MANIFEST-000004", &text(100));
    let mut raw = world.raw(&path);
    raw[4096 + 32..4096 + 64].fill(0);
    raw.resize(4096 + 140, 0);
    world.set_raw(&path, raw);
    let found = world.read(&path).unwrap();
    assert_eq!(found[..32], text(100)[..32]);
    assert_eq!(found[32..64], [0; 32]);
    assert_eq!(found[64..96], text(100)[64..96]);
    assert_eq!(found[112..128], [0; 16]);
}

#[test]
fn direct_files_are_written_in_whole_aligned_blocks() {
    let world = World::new();
    let path = Path::new("/db/000007.sst");
    let file = world.env.fs.create_writable(path, IoMode::Direct).unwrap();
    let mut buffer = super::super::AlignedBuffer::with_capacity(8192);
    buffer.fill_from(&text(8192));
    let buffer = file.write_owned(0, buffer).unwrap();
    assert!(buffer.is_empty());
    assert_eq!(world.read(path).unwrap(), text(8192));
}

#[test]
fn logs_are_not_written_over() {
    let world = World::new();
    let path = world.write("000008.log", b"old");
    assert!(!FileSystem::may_write_over(&*world.env.fs));
    let refused = world.env.fs.reopen_log(&path).err().expect("a refusal");
    assert_eq!(refused.code(), Code::NotSupported);
    let log = world.env.fs.create_log(&path).unwrap();
    assert!(!log.is_mappable() && log.map(0, 4096).unwrap().is_none());
}

#[test]
fn blocks_of_an_unsuitable_size_are_refused() {
    for block_size in [0, 8, 15, 1025] {
        let cipher = Arc::new(Shift { key: 1, block_size });
        let refused = Env::memory().encrypted(cipher).map(drop).expect_err("a refusal");
        assert_eq!(refused.code(), Code::InvalidArgument, "{block_size}");
    }
}

/// A file system whose writes fail.
struct Full(MemoryFileSystem);

struct FullFile(AnyFile);

impl crate::env::FileAround for FullFile {
    fn inner(&self) -> &AnyFile {
        &self.0
    }

    fn write_at(&self, _offset: u64, _data: &[u8]) -> Result<()> {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        Err(Error::io("write", self.0.path(), full))
    }
}

impl FileSystemAround for Full {
    fn inner(&self) -> &dyn FileSystem {
        &self.0
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        Ok(AnyFile::around(FullFile(mode.open(&self.0, path)?)))
    }
}

#[test]
fn a_file_without_room_for_its_prefix_is_not_left_behind() {
    let raw = MemoryFileSystem::new();
    raw.create_directory(Path::new("/db")).unwrap();
    let env = Env::memory().with_fs(Arc::new(Full(raw.clone()))).encrypted(shift(1)).unwrap();
    let refused = env.fs.create_log(Path::new("/db/000008.log")).err().expect("a full disk");
    assert_eq!(refused.subcode(), SubCode::NoSpace);
    assert!(raw.list(Path::new("/db")).unwrap().is_empty());
}

#[cfg(feature = "encryption")]
#[test]
fn aes_is_that_of_the_standard() {
    // FIPS 197, appendix C: each key's bytes count up from 0.
    let plain: Vec<u8> = (0..16).map(|number: u8| number * 0x11).collect();
    let cases = [
        (16, "69c4e0d86a7b0430d8cdb78070b4c55a"),
        (24, "dda97ca4864cdfe06eaf70a0ec0d7191"),
        (32, "8ea2b7ca516745bfeafc49904b496089"),
    ];
    for (length, expected) in cases {
        let key: Vec<u8> = (0..length).collect();
        let cipher = AesCipher::new(&key).unwrap();
        let mut blocks = [&plain[..], &plain[..]].concat();
        cipher.encrypt_blocks(&mut blocks);
        let hex: String = blocks.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected.repeat(2));
    }
    for length in [0, 15, 33] {
        let refused = AesCipher::new(&vec![0; length]).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{length}");
    }
}
