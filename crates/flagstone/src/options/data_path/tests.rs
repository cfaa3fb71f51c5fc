use super::*;

fn read(text: &str) -> Result<DataPathList> {
    let mut paths = DataPathList::default();
    paths.assign(text).map(|()| paths)
}

#[test]
fn paths_read_and_print() {
    let two = DataPathList::of(&[("/fast", 10 << 30), ("/slow", 0)]);
    assert_eq!(two.text(), "{path=/fast;target_size=10737418240;}:{path=/slow;target_size=0;}");
    assert_eq!(read("{path=/fast;target_size=10g}:/slow").unwrap(), two);
    assert_eq!(read("/a:/b").unwrap(), DataPathList::of(&[("/a", 0), ("/b", 0)]));
    assert_eq!(read("").unwrap(), DataPathList::default());
    let odd = DataPathList::of(&[("/a:b;{c}#\\", 1), ("/d", 2)]);
    assert_eq!(read(&odd.text()).unwrap(), odd, "{}", odd.text());
    for wrong in ["{path=/a", "{path=/a;size=3}", "{path=/a;target_size=x}"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

/// The OPTIONS file had them without, and the database that was opened by it was another one.
#[test]
fn paths_keep_their_blanks_or_are_refused() {
    for path in [" /a", "/a ", "/a\t"] {
        let error = DataPathList::of(&[(path, 0)]).check("db_paths").unwrap_err().to_string();
        assert!(error.contains("db_paths '") && error.contains("rename"), "{error}");
        let mut options = crate::options::Options::default();
        options.db.wal_dir = path.to_string();
        assert!(options.validate().unwrap_err().to_string().contains("wal_dir"));
    }
    DataPathList::of(&[("/a b", 0)]).check("db_paths").unwrap();
}

#[test]
fn four_paths_are_enough() {
    assert!(DataPathList::of(&[("/a", 0); 4]).check("db_paths").is_ok());
    assert!(DataPathList::of(&[("/a", 0); 5]).check("db_paths").is_err());
    assert!(DataPathList::of(&[("", 0)]).check("db_paths").is_err());
}
