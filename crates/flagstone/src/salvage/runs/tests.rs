use super::*;
use crate::base::FileNumber;
use crate::env::memory::MemoryFileSystem;

/// Each might hold 64 MiB: of a thousand families, 64 GiB.
#[test]
fn what_waits_of_many_families_has_one_bound_and_all_of_it_comes_back() {
    let fs: Arc<dyn FileSystem> = Arc::new(MemoryFileSystem::new());
    let directory = Path::new("/new");
    fs.create_directory(directory).unwrap();
    let numbers = FileNumbers::starting_at(FileNumber(1));
    let mut runs = Runs::new(&fs, directory, &numbers, 20_000);
    let names: Vec<String> = (0..100).map(|nth| format!("family{nth}")).collect();
    for sequence in 1..=20 {
        for name in &names {
            let key = InternalKeyBuf::new(b"key", sequence, ValueType::Value);
            runs.add(name, &Comparator::Bytewise, key.as_key(), &[b'x'; 50]).unwrap();
            let held: usize = runs.gathered.values().map(|gathered| gathered.bytes).sum();
            assert!(held < 20_000 && held == runs.bytes, "{held}, {}", runs.bytes);
        }
    }
    for name in &names {
        let records: u64 = runs.take(name).unwrap().iter().map(|run| run.entries).sum();
        assert_eq!(records, 20, "{name}");
    }
    runs.remove().unwrap();
    assert_eq!(fs.list(directory).unwrap(), [""; 0]);
}
