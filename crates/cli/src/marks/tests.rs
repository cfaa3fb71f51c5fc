use super::*;

#[test]
fn a_time_is_shown_in_utc() {
    for (seconds, shown) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_399, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (1_368_146_402, "2013-05-10T00:40:02Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
    ] {
        assert_eq!(utc(seconds), shown);
    }
    assert_eq!(shown_time(u64::from(STAMP_ETERNAL)), "for ever");
}

#[test]
fn a_period_ends_after_it_begins() {
    let period = |start, end| Period { start_time: start, end_time: end };
    assert!(period(Some(2), Some(1)).check().is_err());
    assert!(period(Some(1), Some(1)).check().is_ok());
    assert!(period(None, None).is_all() && !period(None, Some(1)).is_all());
}

#[test]
fn marks_stand_behind_the_key() {
    let marks = Marks { timestamp: Some(7), write_time: Some(0), ..Marks::default() };
    assert_eq!(marks.text(), "\t7\t1970-01-01T00:00:00Z");
    assert_eq!(marks.json(), ",\"timestamp\":7,\"write_time_seconds\":0");
    let mut object = serde_json::json!({});
    marks.tell(&mut object);
    assert_eq!(object.to_string(), "{\"timestamp\":7,\"write_time_seconds\":0}");
    assert_eq!(Marks::default().text() + &Marks::default().json(), "");
}
