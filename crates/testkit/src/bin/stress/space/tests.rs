use super::*;

#[test]
fn keys_sort_as_their_indexes_and_every_key_has_one_owner_and_class() {
    let space = Space { threads: 3, per_thread: 37 };
    for index in 0..space.keys() {
        assert!(space.key(index) < space.key(index + 1));
        assert_eq!(space.index(&space.key(index)), Some(index));
        let (owner, class) = (space.owner(index), space.class(index));
        assert!(space.of_class(owner, class).contains(&index), "{index}");
    }
    assert_eq!(space.index(&space.key(space.keys())), None);
    assert_eq!(space.index(b"005x"), None);
}
