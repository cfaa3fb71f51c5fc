use super::*;

#[test]
fn who_follows_hears_of_large_changes() {
    let account = Arc::new(MemoryAccount::default());
    account.add(MemoryKind::Memtables, 500);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let followed = heard.clone();
    account.follow(100, move |total| followed.lock().push(total));
    assert_eq!(*heard.lock(), [500]);
    let table = account.hold(MemoryKind::Tables, 99);
    assert_eq!((account.held(MemoryKind::Tables), account.pieces(MemoryKind::Tables)), (99, 1));
    assert_eq!(*heard.lock(), [500], "less than a step");
    let another = account.hold(MemoryKind::Tables, 1);
    drop((table, another));
    account.subtract(MemoryKind::Memtables, 500);
    assert_eq!(*heard.lock(), [500, 600, 500, 0]);
    account.tell_again();
    account.follow_every(10);
    drop(account.hold(MemoryKind::Tables, 10));
    assert_eq!(*heard.lock(), [500, 600, 500, 0, 0, 10, 0]);
    assert_eq!((account.total(), account.pieces(MemoryKind::Tables), account.most()), (0, 0, 600));
}

/// Went wrong: what changed while the follower was told of an earlier change was never told. A
/// cache kept a size for memory that others had taken meanwhile.
#[test]
fn what_changes_while_the_follower_is_told_is_told_next() {
    let account = Arc::new(MemoryAccount::default());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (followed, told) = (Arc::downgrade(&account), heard.clone());
    account.follow(100, move |total| {
        told.lock().push(total);
        if total == 500 {
            followed.upgrade().expect("it tells").add(MemoryKind::Values, 300);
        }
    });
    account.add(MemoryKind::Memtables, 500);
    assert_eq!(*heard.lock(), [500, 800]);
}

/// The cache of a budget was to leave room for nearly all memory there is, and let go of what it
/// held; or the sum overflowed.
#[test]
fn what_is_taken_before_it_is_given_is_nothing() {
    let account = MemoryAccount::default();
    account.subtract(MemoryKind::RecycledArenas, 10);
    assert_eq!(account.held(MemoryKind::RecycledArenas), 0);
    account.add(MemoryKind::RecycledArenas, 15);
    assert_eq!(
        (account.held(MemoryKind::RecycledArenas), account.total(), account.most()),
        (5, 5, 5)
    );
}

#[test]
fn the_allocator_is_asked_for_what_is_worth_it() {
    let account = Arc::new(MemoryAccount::default());
    assert!(!account.freed(usize::MAX), "nobody wants to know");
    account.release_every(100);
    assert_eq!(
        [60, 39, 1, 99, 200].map(|bytes| account.freed(bytes)),
        [false, false, true, false, true]
    );
    drop(account.hold(MemoryKind::Jobs, 70));
    drop(account.hold(MemoryKind::Cursors, 70));
    assert!(!account.freed(29) && account.freed(1), "jobs count, at their end");
}
