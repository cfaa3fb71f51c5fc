use super::*;

#[test]
fn a_marker_counts_under_its_own_name() {
    let find =
        || counts().into_iter().find(|(name, ..)| *name == "WalRecycled").expect("it is listed");
    let before = find().2;
    Sometimes::WalRecycled.reached();
    let (_, meaning, after) = find();
    assert!(after > before);
    assert_eq!(meaning, "A WAL file was used again for new records.");
}
