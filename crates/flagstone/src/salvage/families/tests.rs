use super::super::history::RecordedFamily;
use super::*;

/// Each name was looked for among all others: a WAL of a megabyte, with an operation for each of
/// its families, took hours. What is counted in place of that says the same as a look at all.
#[test]
fn many_families_that_only_wals_know_have_the_names_of_their_places_if_all_others_do() {
    const COUNT: u32 = 8000;
    let names: Vec<_> = (0..=COUNT).map(|id| format!("family {id}")).collect();
    let own = |name| (name, ColumnFamilyOptions::default());
    let mut given = vec![own(DEFAULT_COLUMN_FAMILY_NAME)];
    given.extend(names.iter().skip(1).map(|name| own(name.as_str())));
    for (given, known, is_in_order) in [
        (&given[..], &names[9], true),
        (&given[..], &names[8], false),
        (&given[..0], &names[9], false),
    ] {
        let mut history = History::default();
        history.families.insert(
            ColumnFamilyId(9),
            RecordedFamily { name: known.clone(), ..Default::default() },
        );
        let given = Given { families: given, are_newest: true };
        let mut families = Families::new(history, None, &Options::default(), given).unwrap();
        families.expect_in_logs((1..=COUNT).map(ColumnFamilyId).collect());
        families.name_those_in_logs();
        assert_eq!(families.by_name.len(), COUNT as usize);
        for (id, name) in (1..=COUNT).zip(&names[1..]).filter(|(id, _)| *id != 9) {
            let found = &families.names[&ColumnFamilyId(id)];
            assert_eq!(found == name, is_in_order, "{id} is {found}");
        }
    }
}
