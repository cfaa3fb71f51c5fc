use super::super::{Options, file, known, names};
use super::*;

#[test]
fn what_is_removed_is_no_option_any_more() {
    for removed in REMOVED {
        assert!(names::rows().all(|row| row.name != removed.name), "{removed}");
        assert!(
            known::find(removed.name).is_none() && !known::OWN.contains(&removed.name),
            "{removed}"
        );
    }
}

/// A file of an earlier version opens, and so does a program that sets the option.
#[test]
fn a_removed_option_is_accepted_with_a_note() {
    for removed in REMOVED {
        let text = |value| {
            format!(
                "[DBOptions]\n[CFOptions \"default\"]\n  # flagstone:{}={value}\n",
                removed.name
            )
        };
        let read = file::parse(&text(removed.default)).unwrap();
        assert_eq!(read.warnings(), [""; 0], "{removed}");

        let read = file::parse(&text("12345")).unwrap();
        let note =
            format!("option '{}' has no effect: this version no longer has it", removed.name);
        assert_eq!(read.options.warnings(), std::slice::from_ref(&note));
        let again = file::print(&read.options, &[("default", &read.options.cf)]);
        assert!(!again.contains(removed.name), "{again}");

        let mut options = Options::default();
        let prefixed = format!("cf.{}", removed.name);
        for name in [removed.name, &prefixed] {
            options.set(name, "12345").unwrap();
            assert_eq!(options.warnings(), std::slice::from_ref(&note));
        }
        let mut families = [("other".to_string(), options.cf.clone())];
        options.set_everywhere(&mut families, removed.name, removed.default).unwrap();
        assert_eq!((options.warnings().len(), families[0].1.kept.len()), (0, 0));
        names::check_live(removed.name, false).unwrap();
        assert!(names::check_live(removed.name, true).is_err());
    }
}
