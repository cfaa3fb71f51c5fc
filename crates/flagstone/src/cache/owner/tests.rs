use super::*;

#[test]
fn no_two_have_a_number_in_common() {
    let owners = [0, 1, (1 << OWNER_BITS) - 1].map(CacheOwner::new);
    let mut files = Vec::new();
    for owner in &owners {
        let own = [
            owner.next_file(),
            owner.next_file(),
            owner.named_file(0).unwrap(),
            owner.named_file(1).unwrap(),
            owner.named_file((1 << FILE_BITS) - 1).unwrap(),
        ];
        assert_eq!(owner.named_file(1 << FILE_BITS), None);
        for file in own {
            let owns = |owner: &CacheOwner| owner.has(CacheKey { file, offset: u64::MAX });
            assert_eq!(owners.iter().filter(|owner| owns(owner)).count(), 1);
            assert!(owns(owner));
        }
        files.extend(own);
    }
    files.sort_unstable();
    files.dedup();
    assert_eq!(files.len(), 15);
}
