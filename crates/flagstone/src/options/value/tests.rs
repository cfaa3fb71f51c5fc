use super::*;

fn read<T: SettingValue + Default>(text: &str) -> Result<T> {
    let mut value = T::default();
    value.assign(text).map(|()| value)
}

#[test]
fn numbers_take_suffixes() {
    assert_eq!(read::<u64>("64M").unwrap(), 64 << 20);
    assert_eq!(read::<u64>("18446744073709551615").unwrap(), u64::MAX);
    assert_eq!(read::<i32>("-1").unwrap(), -1);
    assert_eq!(read::<u32>("4k").unwrap(), 4096);
    for wrong in ["", "k", "x", "1.5", "-1", "64MB", "5g"] {
        assert!(read::<u32>(wrong).is_err(), "{wrong}");
    }
    // They passed for no numbers.
    for large in [
        "9223372036854775807t",
        "18446744073709551616",
        "-1",
        &"9".repeat(60),
        &format!("{}t", "9".repeat(38)),
    ] {
        let said = read::<u64>(large).unwrap_err().to_string();
        assert!(
            said.contains(&format!(
                "a whole number from 0 to 18446744073709551615, found '{large}'"
            )),
            "{said}"
        );
    }
}

#[test]
fn fractions_print_as_rocksdb_prints_them_and_lose_nothing() {
    assert_eq!(0.25f64.text(), "0.250000");
    assert_eq!(read::<f64>(&(1.0f64 / 3.0).text()).unwrap(), 1.0 / 3.0);
    assert!(read::<f64>("nan").is_err());
}

#[test]
fn lists_are_split_at_colons() {
    assert_eq!(read::<Vec<i32>>("1:2:-3").unwrap(), vec![1, 2, -3]);
    assert_eq!(read::<Vec<i32>>("1:{1}:{2}").unwrap(), vec![1, 1, 2], "as RocksDB 6.14 writes it");
    assert_eq!(read::<Vec<i32>>("").unwrap(), vec![]);
    assert_eq!(vec![1, 2].text(), "1:2");
}
