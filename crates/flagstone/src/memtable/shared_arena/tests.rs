use std::sync::Arc;

use super::super::arena::{ALIGNMENT, FIRST_CHUNK_SIZE};
use super::*;
use crate::base::chunk::HUGE_PAGE_SIZE;
use crate::memtable::ArenaPool;

/// Fills pieces with a mark and returns where they are, with their sizes.
fn fill(arena: &SharedArena<u8>, mark: u8, sizes: &[usize]) -> Vec<(usize, usize)> {
    sizes
        .iter()
        .map(|&size| {
            let at = arena.writer().allocate(size);
            // SAFETY: the piece has that many bytes.
            unsafe { at.write_bytes(mark, size) };
            (at.as_ptr().addr(), size)
        })
        .collect()
}

#[test]
fn pieces_of_several_writers_do_not_overlap() {
    const PIECES: usize = if cfg!(miri) { 60 } else { 3000 };
    let arena = SharedArena::new(Arena::new(1 << 16, None));
    let mut pieces: Vec<(usize, usize)> = std::thread::scope(|scope| {
        let fill_in_thread = |thread: usize| {
            let arena = &arena;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread as u64);
                let sizes: Vec<_> = (0..PIECES)
                    .map(
                        |n| if n % 50 == 0 { random.usize(..20_000) } else { random.usize(1..300) },
                    )
                    .collect();
                fill(arena, thread as u8, &sizes)
            })
        };
        let threads: Vec<_> = (0..3).map(fill_in_thread).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(pieces.iter().all(|(at, _)| at.is_multiple_of(ALIGNMENT)));
    pieces.sort_unstable();
    assert!(pieces.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
    let asked: usize = pieces.iter().map(|(_, size)| size).sum();
    assert!(arena.used() >= asked && arena.reserved() >= arena.used());
}

/// One writer at a time loses nothing where a stock ends, and has at most one stock in reserve.
#[test]
fn one_writer_alone_wastes_nothing() {
    let arena = SharedArena::<u8>::new(Arena::new(1 << 20, None));
    let sizes = [200; 20_000];
    fill(&arena, 1, &sizes);
    let asked = 200 * sizes.len();
    let stock = asked / PARTS;
    let lanes = size_of::<[Lane<u8>; LANES]>() + align_of::<Lane<u8>>();
    // Chunks end within a piece.
    let ends = 200 * 12;
    assert!((asked..asked + stock + lanes + ends).contains(&arena.used()), "{}", arena.used());
}

/// All lanes together have at most a quarter of what is used in stock: a small memtable that many
/// threads write to stays small.
#[test]
#[cfg_attr(miri, ignore = "stocks are larger there, so that few insertions refill them")]
fn stocks_are_small_beside_what_is_used() {
    let arena = SharedArena::<u8>::new(Arena::new(1 << 20, None));
    let mut asked = 0;
    for _ in 0..2000 {
        // Each has a lane of its own, as long as there are some.
        let mut writers: Vec<_> = (0..2 * LANES).map(|_| arena.writer()).collect();
        for writer in &mut writers {
            writer.allocate(64);
            asked += 64;
        }
        let lanes = size_of::<[Lane<u8>; LANES]>() + align_of::<Lane<u8>>();
        let most = asked + asked / 3 + lanes;
        assert!(arena.used() <= most, "{} of {asked}", arena.used());
    }
}

#[test]
fn a_lane_keeps_what_its_holder_leaves() {
    let pool = Arc::new(ArenaPool::new(0));
    let arena = SharedArena::<u8>::new(Arena::new(1 << 20, Some(pool)));
    assert!(arena.writer().kept().is_none(), "a small arena has no lanes");
    fill(&arena, 1, &[1000; 200]);
    *arena.writer().kept().unwrap() = 2;
    let (mut first, mut second) = (arena.writer(), arena.writer());
    assert_eq!([first.kept(), second.kept()], [Some(&mut 2), Some(&mut 0)], "another lane");
    drop((first, second));
    assert_eq!(arena.writer().kept(), Some(&mut 2));
    let entry = Addition { sequence: 7, entries: 1, deletes: 0, data_size: 10 };
    arena.writer().count(&entry);
    let other = arena.writer();
    arena.writer().count(&Addition { sequence: 8, ..entry });
    drop(other);
    assert_eq!(arena.counts().map(Counts::entries).sum::<u64>(), 2);
    assert_eq!(arena.counts().map(Counts::first_sequence).min(), Some(7));
    assert_eq!(arena.counts().map(Counts::largest_sequence).max(), Some(8));
}

/// Pieces of their own chunks made refills larger than the next chunk.
#[test]
fn large_pieces_make_no_refill_larger() {
    let arena = SharedArena::new(Arena::new(8 << 20, None));
    let pieces = fill(&arena, 1, &[&[1 << 20; 9][..], &[20_000; 9]].concat());
    let asked: usize = pieces.iter().map(|(_, size)| size).sum();
    assert!(arena.used() >= asked && arena.reserved() >= arena.used());
}

/// A story of one arena of huge pages, of which each piece has an eighth of a chunk.
#[test]
fn the_chunk_that_comes_next_is_made_ahead() {
    const CHUNK: usize = HUGE_PAGE_SIZE;
    let pool = Arc::new(ArenaPool::new(10 * CHUNK));
    let arena = SharedArena::<u8>::new(Arena::new(CHUNK, Some(pool.clone())));
    let take_eighths = |count| fill(&arena, 1, &vec![CHUNK / 8; count]);
    // The first chunks are smaller.
    while arena.reserved() < 3 * CHUNK - FIRST_CHUNK_SIZE {
        fill(&arena, 1, &[1 << 10]);
        arena.fetch_ahead(usize::MAX);
    }
    let reserved = arena.reserved();
    take_eighths(5);
    assert_eq!(arena.reserved(), reserved, "what was made is used when half a chunk is full");
    arena.fetch_ahead(usize::MAX);
    assert_eq!(arena.reserved(), reserved, "half of that is not handed out yet");

    take_eighths(3);
    arena.fetch_ahead(reserved);
    assert_eq!(arena.reserved(), reserved, "the memtable is to have no more");
    arena.fetch_ahead(reserved + 1);
    arena.fetch_ahead(usize::MAX);
    assert_eq!(arena.reserved(), reserved + CHUNK, "it is made once");

    take_eighths(8);
    assert_eq!(arena.reserved(), reserved + CHUNK);
    take_eighths(8);
    assert_eq!(arena.reserved(), reserved + 2 * CHUNK, "nobody made the next one in time");
    arena.fetch_ahead(usize::MAX);
    assert_eq!(arena.reserved(), reserved + 3 * CHUNK, "that is for the one after it");
    drop(arena);
    assert_eq!(pool.kept(), 5 * CHUNK, "all are kept for other memtables");
}
