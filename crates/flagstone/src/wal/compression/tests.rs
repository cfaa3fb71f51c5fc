use super::*;

#[test]
fn records_round_trip_in_parts() {
    let (mut compressor, mut decompressor) =
        (Compressor::new().unwrap(), Decompressor::new().unwrap());
    let mut output = Vec::new();
    for size in [0, 1, 77, 100_000, 3 * STEP] {
        let record: Vec<u8> = (0..size).map(|i| (i / 7) as u8).collect();
        let (front, back) = record.split_at(size / 3);
        let frame = compressor.compress(&[front, back]).unwrap().to_vec();
        assert!(decompressor.decompress(&frame, &mut output, size));
        assert_eq!(output, record);
        assert!(!decompressor.decompress(&frame[..frame.len() - 1], &mut output, size), "{size}");
        assert!(
            !decompressor.decompress(&[&frame[..], b"x"].concat(), &mut output, size),
            "{size}"
        );
    }
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let frame = Compressor::new().unwrap().compress(&[&vec![0; 64 << 20]]).unwrap().to_vec();
    let mut output = Vec::new();
    assert!(!Decompressor::new().unwrap().decompress(&frame, &mut output, 1 << 20));
    assert!(output.capacity() < 4 << 20);
}
