//! OPTIONS files and option strings.

use flagstone::options::file::{parse, print};
use flagstone::options::names::rows;
use flagstone::options::{LoadedOptions, Options};

use super::input::ok;

fn print_loaded(loaded: &LoadedOptions) -> String {
    let families: Vec<_> =
        loaded.families.iter().map(|(name, family)| (name.as_str(), family)).collect();
    print(&loaded.options, &families)
}

/// Parses an OPTIONS file; what is printed of it must parse to the same.
pub fn options_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(loaded) = ok(parse(text)) else { return };
    loaded.warnings();
    ok(loaded.options.validate());
    for (_, family) in &loaded.families {
        ok(family.validate());
        ok(family.sanitized().validate());
    }
    let printed = print_loaded(&loaded);
    let again = parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(print_loaded(&again), printed);
}

/// Sets options from a string `name=value;...`; what they then say must be taken again and mean the
/// same.
pub fn option_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut options = Options::default();
    if ok(options.set_all(text)).is_none() {
        return;
    }
    options.warnings();
    ok(options.validate());
    ok(options.validate_for_writing());
    let mut other = Options::default();
    for row in rows() {
        let value = options.get(row.name).expect("every row has a text");
        other.set(row.name, &value).unwrap_or_else(|error| panic!("{}={value}: {error}", row.name));
    }
    for row in rows() {
        assert_eq!(other.get(row.name), options.get(row.name), "{}", row.name);
    }
}
