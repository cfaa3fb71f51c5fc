use super::super::task::tests::task;
use super::*;

fn value(contender: Contender, exercise: Exercise, name: &str) -> Option<String> {
    let tuning = contender.tuning(&task(contender, exercise), 2);
    tuning.options.into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

#[test]
fn all_have_the_same_memory_and_tree() {
    for exercise in [Exercise::Space, Exercise::Steady] {
        for contender in Contender::value_variants() {
            for name in ["write_buffer_size", "max_bytes_for_level_base", "max_background_jobs"] {
                assert_eq!(
                    value(*contender, exercise, name),
                    value(Contender::Flagstone, exercise, name)
                );
            }
        }
    }
}

#[test]
fn only_blob_files_are_collected() {
    let of = |contender| value(contender, Exercise::Space, "enable_blob_files");
    assert_eq!(of(Contender::RocksdbUniversal), None);
    assert!(of(Contender::RocksdbBlob).is_some() && of(Contender::Flagstone).is_some());
    assert_eq!(value(Contender::Flagstone, Exercise::Steady, "enable_blob_files"), None);
}
