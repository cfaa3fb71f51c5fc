use super::*;

/// Also those that go through other hands, which know no more than where they begin and how long
/// they are.
#[test]
fn a_passing_chunk_goes_back_as_it_came() {
    for size in [1, 70_000, HUGE_PAGE_SIZE + 1] {
        let Some(chunk) = Chunk::passing(size) else { continue };
        assert_eq!(chunk.size(), size);
        let start = chunk.into_mapping().expect("it is nothing else");
        // SAFETY: the mapping has so many bytes, all zeros at first, and is given to nobody else.
        let ends = unsafe {
            start.add(size - 1).write(9);
            [start.read(), start.add(size - 1).read()]
        };
        assert_eq!(ends[1], 9);
        // SAFETY: it came from `into_mapping`, of this size.
        let chunk = unsafe { Chunk::of_mapping(start, size) };
        assert_eq!((chunk.start(), chunk.size()), (start, size));
    }
}

/// The allocator was asked for it, only for the caller to ask it again: here, for what it has not
/// either.
#[test]
fn what_the_system_does_not_give_is_asked_of_nobody_else() {
    assert!(Chunk::passing(1 << (usize::BITS - 2)).is_none());
}

#[test]
fn chunks_are_aligned_and_keep_what_is_written() {
    let sizes = [1 << 12, HUGE_PAGE_SIZE, HUGE_PAGE_SIZE + 8, 2 * HUGE_PAGE_SIZE];
    let chunks = sizes.map(Chunk::in_small_pages);
    for (chunk, mark) in chunks.iter().zip(1..) {
        let alignment =
            if chunk.size().is_multiple_of(HUGE_PAGE_SIZE) { HUGE_PAGE_SIZE } else { ALIGNMENT };
        assert!(chunk.start().addr().get().is_multiple_of(alignment));
        let (first, last) = (chunk.start(), chunk.size() - 1);
        // SAFETY: both lie within the chunk, which nobody else has; where it is zeroed they may be
        // read.
        unsafe {
            assert!(!chunk.is_zeroed() || (first.read(), first.add(last).read()) == (0, 0));
            first.write(mark);
            first.add(last).write(mark);
        }
    }
    for (chunk, mark) in chunks.iter().zip(1u8..) {
        // SAFETY: the same, and they were written.
        let ends = unsafe { [chunk.start().read(), chunk.start().add(chunk.size() - 1).read()] };
        assert_eq!(ends, [mark; 2]);
    }
}
