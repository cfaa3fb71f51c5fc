//! Pieces, spans and chunks, each by itself and from several threads.

use super::*;

/// By one comparison: Miri keeps a book of each byte that a thread reads alone.
fn is_filled(piece: &[u8], byte: u8) -> bool {
    *piece == vec![byte; piece.len()]
}

#[test]
fn a_class_has_little_more_room_than_is_asked_for() {
    let step = if cfg!(miri) { 97 } else { 1 };
    for size in (PIECE_MIN..=PIECE_MAX).step_by(step) {
        let room = size_of_class(class_of(size));
        assert!((size..=size + size / STEPS + 1).contains(&room), "{room} for {size}");
    }
    assert_eq!((class_of(PIECE_MIN), size_of_class(0)), (0, PIECE_MIN));
}

/// Pieces of all sizes come and go; each keeps what was written to it, and to no other.
#[test]
fn pieces_do_not_overlap() {
    const STEPS: u32 = if cfg!(miri) { 60 } else { 20_000 };
    let mut random = fastrand::Rng::with_seed(7);
    let mut pieces: Vec<(Piece, u8)> = Vec::new();
    let size = |random: &mut fastrand::Rng| match random.u8(..8) {
        0 => random.usize(..30_000),
        1 => random.usize(PIECE_MIN - 2..PIECE_MIN + 2),
        2 => random.usize(PIECE_MAX - 2..PIECE_MAX + 2),
        _ => random.usize(4000..4200),
    };
    for step in 0..STEPS {
        let mark = step as u8;
        // Many at first, then fewer and fewer.
        if random.u32(..STEPS) > step / 2 + STEPS / 4 {
            let mut piece = Piece::new(size(&mut random));
            piece.fill(mark);
            assert!(piece.capacity() >= piece.len());
            pieces.push((piece, mark));
        } else if !pieces.is_empty() {
            let (mut piece, mark) = pieces.swap_remove(random.usize(..pieces.len()));
            assert!(is_filled(&piece, mark));
            let len = size(&mut random);
            let before = piece.len();
            let resized = piece.resize(len);
            assert_eq!(piece.len(), if resized { len } else { before });
        }
    }
    for (piece, mark) in pieces {
        assert!(is_filled(&piece, mark));
    }
}

#[test]
fn pieces_go_from_thread_to_thread() {
    let pieces: Vec<Piece> = std::thread::scope(|scope| {
        let made = (0..4u8).map(|mark| {
            scope.spawn(move || {
                let mut piece = Piece::new(4096);
                piece.fill(mark);
                piece
            })
        });
        let made: Vec<_> = made.collect();
        made.into_iter().map(|thread| thread.join().expect("it only writes")).collect()
    });
    std::thread::scope(|scope| {
        for (piece, mark) in pieces.into_iter().zip(0..) {
            scope.spawn(move || assert!(is_filled(&piece, mark)));
        }
    });
}

/// All want spans of the same class at once, and give them back.
#[test]
fn many_threads_take_and_give() {
    const ROUNDS: u8 = if cfg!(miri) { 1 } else { 100 };
    const PIECES: usize = if cfg!(miri) { 2 } else { 20 };
    std::thread::scope(|scope| {
        for mark in 0..4u8 {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let mut pieces: Vec<_> = (0..PIECES).map(|_| Piece::new(29_000)).collect();
                    pieces.iter_mut().for_each(|piece| piece.fill(mark ^ round));
                    assert!(pieces.iter().all(|piece| is_filled(piece, mark ^ round)));
                }
            });
        }
    });
}

/// Also the span that stayed as the last with room while all others were full. No other test uses
/// this class.
#[test]
fn what_is_free_goes_back() {
    const SIZE: usize = 31_000;
    let class = &CLASS[class_of(SIZE)];
    const PIECES: usize = 100;
    let pieces: Vec<Piece> = (0..PIECES).map(|_| Piece::new(SIZE)).collect();
    let each = size_of_class(class_of(SIZE));
    let in_small = SMALL_SPANS * (SMALL_SPAN_SIZE / each);
    let others = (PIECES - in_small).div_ceil(SPAN_SIZE / each);
    assert_eq!(class.lock().spans.len(), SMALL_SPANS + others);
    drop(pieces);
    assert_eq!(class.lock().spans.len(), 0);
}

/// Each had 256 KiB: a few blocks of different sizes, as a compaction reads them at a time, took a
/// huge page or two. No other test uses these classes.
#[test]
fn a_few_pieces_of_many_sizes_take_little_memory() {
    for piece in [31_300, 31_600, 31_900, 32_100, 32_400].map(Piece::new) {
        let class = CLASS[usize::from(piece.class)].lock();
        let taken: usize = class.spans.values().map(|span| span.size).sum();
        assert_eq!(taken, SMALL_SPAN_SIZE, "for {}", piece.size());
    }
}

#[test]
fn a_vector_becomes_a_piece() {
    let piece: Piece = vec![1, 2, 3].into();
    assert_eq!((&piece[..], piece.capacity()), (&[1, 2, 3][..], 3));
    assert!(Piece::from(Vec::new()).is_empty());
}
