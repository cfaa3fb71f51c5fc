//! What a view tells of its entities.
#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use flagstone::{ReadOptions, View, WideColumns};

/// A name and a value for each column, as `born=1815 name=Ada`.
pub fn text(columns: &WideColumns) -> String {
    let shown = columns.iter().map(|(name, value)| {
        let value =
            if value.len() > 20 { format!("{} bytes", value.len()) } else { text_of(value) };
        format!("{}={value}", text_of(name))
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What each way of reading tells of all keys: `key: columns`, one a line.
pub fn contents(view: &View) -> String {
    let mut cursor = view.cursor(&ReadOptions::default()).unwrap();
    let mut lines = Vec::new();
    cursor.seek_to_first();
    while cursor.valid() {
        let columns = cursor.columns().unwrap();
        assert_eq!(cursor.value().unwrap(), columns.get("").unwrap_or_default());
        lines.push((cursor.key().to_vec(), columns));
        cursor.next();
    }
    cursor.status().unwrap();
    let mut back = Vec::new();
    cursor.seek_to_last();
    while cursor.valid() {
        back.push((cursor.key().to_vec(), cursor.columns().unwrap()));
        assert_eq!(cursor.value().unwrap(), back.last().unwrap().1.get("").unwrap_or_default());
        cursor.prev();
    }
    back.reverse();
    assert_eq!(lines, back, "forward and back");
    let keys: Vec<&[u8]> = lines.iter().map(|(key, _)| key.as_slice()).collect();
    let together = view.get_many_entities(&keys).unwrap();
    let values = view.get_many(&keys).unwrap();
    for (at, (key, columns)) in lines.iter().enumerate() {
        assert_eq!(view.get_entity(key).unwrap().as_ref(), Some(columns), "get_entity");
        assert_eq!(together[at].as_ref(), Some(columns), "get_many_entities");
        let default = columns.get("").unwrap_or_default();
        assert_eq!(view.get(key).unwrap().unwrap(), default, "get");
        assert_eq!(values[at].as_ref().unwrap(), default, "get_many");
    }
    let lines = lines.iter().map(|(key, columns)| format!("{}: {}", text_of(key), text(columns)));
    lines.collect::<Vec<_>>().join("\n")
}
