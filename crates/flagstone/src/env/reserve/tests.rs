use super::*;

/// A signal was taken for a broken device, and no write was acknowledged any more.
#[test]
fn signals_only_interrupt() {
    const LENGTH: u64 = 2 * RESERVED_AT_ONCE + 5;
    let (mut calls, mut done) = (0, Vec::new());
    let outcome = reserve(LENGTH, |start, length| {
        calls += 1;
        if calls % 2 == 1 {
            return Err(Errno::INTR);
        }
        done.push((start, length));
        Ok(())
    });
    let piece = RESERVED_AT_ONCE;
    assert_eq!((outcome, done), (Ok(()), vec![(0, piece), (piece, piece), (2 * piece, 5)]));
    assert_eq!(reserve(LENGTH, |_, _| Err(Errno::NOSPC)), Err(Errno::NOSPC));
}
