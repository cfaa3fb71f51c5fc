use super::*;

fn read(text: &str) -> Result<FileTemperatureAges> {
    let mut ages = FileTemperatureAges::default();
    ages.assign(text).map(|()| ages)
}

#[test]
fn thresholds_read_as_rocksdb_writes_them_and_print() {
    let both = FileTemperatureAges::of(&[(Temperature::WARM, 10), (Temperature::COLD, 30_000)]);
    assert_eq!(both.text(), "{{temperature=kWarm;age=10;}:{temperature=kCold;age=30000;}}");
    assert_eq!(read("{{age=10;temperature=kWarm}:{age=30000;temperature=kCold}}").unwrap(), both);
    assert_eq!(read(&both.text()).unwrap(), both);
    let one = FileTemperatureAges::of(&[(Temperature::COOL, 7)]);
    assert_eq!(one.text(), "{{temperature=kCool;age=7;}}");
    for text in [
        "{{temperature=kCool;age=7;}}",
        "{temperature=kCool;age=7;}",
        "{ {age=7;temperature=kCool} }",
    ] {
        assert_eq!(read(text).unwrap(), one, "{text}");
    }
    for text in ["", "{}"] {
        assert_eq!(read(text).unwrap(), FileTemperatureAges::default(), "{text}");
    }
    for wrong in ["{{age=1", "{{age=1;temperature=kLukewarm}}", "{{years=1}}", "{{age=x}}"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_oldest_threshold_that_is_passed_counts() {
    let ages = FileTemperatureAges::of(&[(Temperature::WARM, 10), (Temperature::COLD, 100)]);
    let at = |age| ages.temperature_at(age);
    assert_eq!([at(9), at(10), at(99)], [None, Some(Temperature::WARM), Some(Temperature::WARM)]);
    assert_eq!(at(100), Some(Temperature::COLD));
    let check = |ages: &FileTemperatureAges| ages.check(CompactionStyle::Fifo, 1);
    assert!(check(&ages).is_ok());
    assert!(check(&FileTemperatureAges::of(&[(Temperature::WARM, 10); 2])).is_err());
}
