use super::*;
use crate::history::Operation;
use crate::model::Edit;

/// Fails if a range is deleted after a snapshot was taken, and a value of 10 bytes and more was put
/// before.
fn fails(case: &Case) -> Option<String> {
    let put = |operation: &Operation| match operation {
        Operation::Write { edits, .. } => edits
            .iter()
            .any(|(_, edit)| matches!(edit, Edit::Put { value, .. } if value.len() >= 10)),
        _ => false,
    };
    let delete = |operation: &Operation| match operation {
        Operation::Write { edits, .. } => {
            edits.iter().any(|(_, edit)| matches!(edit, Edit::DeleteRange { .. }))
        }
        _ => false,
    };
    let mut rest = case.operations.iter();
    let found = rest.any(put) && rest.any(|op| *op == Operation::TakeSnapshot) && rest.any(delete);
    let blobs = case.settings.iter().any(|setting| setting.name == "enable_blob_files");
    (found && blobs).then(|| "as described".to_string())
}

#[test]
fn a_case_shrinks_to_what_makes_it_fail() {
    let mut shrunk = 0;
    for case in (0..12).flat_map(|seed| Case::draw(seed, 300, 2)) {
        let Some(said) = fails(&case) else { continue };
        let (short, _) = shrink(&case, said, 60, fails);
        assert!(fails(&short).is_some());
        assert_eq!((short.operations.len(), short.settings.len()), (3, 1), "{short}");
        let Operation::Write { edits, .. } = &short.operations[0] else { panic!("{short}") };
        let [(_, Edit::Put { key, value })] = &edits[..] else { panic!("{short}") };
        assert!(key.len() <= 1 && (10..20).contains(&value.len()), "{short}");
        shrunk += 1;
    }
    assert!(shrunk > 2, "some of the cases fail");
}
