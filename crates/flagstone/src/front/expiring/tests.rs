use super::*;
use crate::base::Code;

/// Less than a second was for ever in one place, and at once in another.
#[test]
fn a_time_to_live_is_rounded_up_to_seconds() {
    let seconds = |nanos| whole_seconds(Duration::from_nanos(nanos)).map_err(|e| e.code());
    assert_eq!(seconds(0), Err(Code::InvalidArgument));
    assert_eq!(seconds(1), Ok(Some(1)));
    assert_eq!(seconds(999_999_999), Ok(Some(1)));
    assert_eq!(seconds(1_000_000_000), Ok(Some(1)));
    assert_eq!(seconds(1_000_000_001), Ok(Some(2)));
    assert_eq!(whole_seconds(Duration::MAX).unwrap(), None);
    let long = Duration::MAX - Duration::from_secs(1);
    assert_eq!(whole_seconds(long).unwrap(), Some(u64::MAX));
    assert_eq!((recorded(0), recorded(7)), (Duration::MAX, Duration::from_secs(7)));
}
