use super::*;

#[test]
fn times_and_bytes() {
    assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
    assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
    assert_eq!(time("2h"), Ok(Duration::from_secs(7200)));
    assert!(time("ten").is_err() && time("5 weeks").is_err() && time("5d").is_err());
    assert_eq!(bytes("64MB"), Ok(64 << 20));
    assert_eq!(bytes("8K"), Ok(8192));
    assert!(bytes("much").is_err());
}
