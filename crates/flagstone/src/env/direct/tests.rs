use super::*;

#[test]
fn bytes_stay_aligned_however_many_there_are() {
    let capacities = [0, 1, 4095, 4096, 4097, 100_000, MAPPED_AT_LEAST - 1, MAPPED_AT_LEAST + 1];
    let ways: [fn(usize) -> AlignedBuffer; 2] =
        [AlignedBuffer::with_capacity, AlignedBuffer::of_its_own];
    for (capacity, way) in
        capacities.into_iter().flat_map(|capacity| ways.map(|way| (capacity, way)))
    {
        let mut buffer = way(capacity);
        let data: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
        let rest = buffer.fill_from(&data);
        assert_eq!(buffer.len() + rest.len(), data.len());
        assert_eq!(buffer.len(), buffer.capacity());
        assert!(is_aligned(0, buffer.as_slice()), "{capacity}");
        assert!(buffer.capacity() >= capacity && buffer.as_slice() == &data[..buffer.len()]);
        buffer.drop_front(1000);
        buffer.pad();
        assert_eq!(buffer.as_slice()[..10], data[1000..1010]);
        assert_eq!(buffer.as_slice()[buffer.len() - 1000..], [0; 1000]);
    }
}

#[test]
fn what_it_is_extended_by_is_zeros_whatever_it_held() {
    let ways: [fn(usize) -> AlignedBuffer; 2] =
        [AlignedBuffer::with_capacity, AlignedBuffer::of_its_own];
    for way in ways {
        let mut buffer = way(MAPPED_AT_LEAST);
        assert!(buffer.fill_from(&[9; 5000]).is_empty());
        buffer.resize(1000);
        buffer.resize(MAPPED_AT_LEAST);
        assert_eq!(buffer.as_slice()[..1000], [9; 1000]);
        assert!(buffer.as_slice()[1000..].iter().all(|&byte| byte == 0));
        buffer.as_mut_slice().fill(9);
        buffer.resize(0);
        buffer.resize(MAPPED_AT_LEAST);
        assert!(buffer.as_slice().iter().all(|&byte| byte == 0));
    }
}
