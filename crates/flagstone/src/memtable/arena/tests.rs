use super::*;

#[test]
fn a_dropped_arena_serves_the_next() {
    let pool = Arc::new(ArenaPool::new(3 * FIRST_CHUNK_SIZE));
    let fill = || {
        let mut arena = Arena::new(FIRST_CHUNK_SIZE, Some(Arc::clone(&pool)));
        let pieces: Vec<_> = (0..64).map(|_| arena.allocate(500).as_ptr().addr()).collect();
        assert!(pieces.iter().all(|at| at.is_multiple_of(ALIGNMENT)));
        (arena, pieces)
    };
    let (arena, first) = fill();
    drop(arena);
    assert_eq!(pool.kept(), 3 * FIRST_CHUNK_SIZE);
    let (arena, second) = fill();
    assert!(second.iter().any(|at| first.contains(at)) && pool.kept() == 0);
    assert_eq!((arena.used(), arena.reserved()), (64 * 504, 8 * FIRST_CHUNK_SIZE));
    pool.set_capacity(2 * FIRST_CHUNK_SIZE);
    drop(arena);
    assert_eq!(pool.kept(), 2 * FIRST_CHUNK_SIZE);
    pool.set_capacity(FIRST_CHUNK_SIZE);
    assert_eq!(pool.kept(), FIRST_CHUNK_SIZE);
    let noted =
        [MemoryKind::Memtables, MemoryKind::RecycledArenas].map(|holder| pool.account.held(holder));
    assert_eq!(noted, [0, FIRST_CHUNK_SIZE]);
}

#[test]
fn large_and_aligned_pieces_do_not_overlap() {
    let mut arena = Arena::new(1 << 16, None);
    let mut pieces: Vec<(usize, usize)> = Vec::new();
    for size in (0..300).chain([5000, 70_000, 1, 64]) {
        let piece =
            if size % 2 == 0 { arena.allocate(size) } else { arena.allocate_aligned(size, 64) };
        assert!(size % 2 == 0 || piece.as_ptr().addr().is_multiple_of(64));
        // SAFETY: the piece has that many bytes.
        unsafe { piece.write_bytes(1, size) };
        pieces.push((piece.as_ptr().addr(), size));
    }
    pieces.sort_unstable();
    assert!(pieces.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
}

#[test]
fn memory_that_none_takes_is_freed_after_a_while() {
    let pool = Arc::new(ArenaPool::new(3 * FIRST_CHUNK_SIZE));
    let use_once = || {
        Arena::new(FIRST_CHUNK_SIZE, Some(pool.clone())).allocate(8);
    };
    use_once();
    assert_eq!((pool.trim_unused(100, 60), pool.kept()), (0, FIRST_CHUNK_SIZE));
    assert_eq!(pool.trim_unused(159, 60), 0, "it was seen in use at 100");
    use_once();
    assert_eq!(pool.trim_unused(161, 60), 0, "it was used again");
    assert_eq!(pool.trim_unused(220, 60), 0);
    assert_eq!((pool.trim_unused(221, 60), pool.kept()), (FIRST_CHUNK_SIZE, 0));
}
