use super::*;

/// Of a missing blob file with a hundred million values as many were listed, in memory.
#[test]
fn what_is_listed_of_lost_values_has_a_bound() {
    let mut report = SalvageReport::default();
    let lost = |key: Vec<u8>| LostValue {
        family: "default".to_string(),
        key,
        file: FileNumber(7),
        error: Error::corruption("lost"),
        has_other_version: false,
    };
    let listed = (0..100).filter(|_| report.lose_value(lost(vec![b'k'; 1 << 20]))).count();
    assert!((60..64).contains(&listed), "{listed}");
    assert!(report.lose_value(lost(b"small".to_vec())), "others have room");
    assert_eq!(report.lost_values.len(), listed + 1);
    assert_eq!(report.lost_values_unlisted, 100 - listed as u64);
}

/// A device that has lost every other block of a large database had as many told, in memory.
#[test]
fn what_is_listed_of_damage_has_a_bound() {
    const PLACES: u64 = 400_000;
    let mut report = SalvageReport::default();
    let mut of_a_family = SalvageReport::default();
    for place in 0..PLACES {
        let error = Error::corruption("a block is damaged").at_offset(place);
        of_a_family.lose(error.clone(), Some((vec![b'k'; 100], vec![b'l'; 100])));
        report.lose(error.clone(), None);
        report.pass_over(error);
    }
    report.lose_all_of(of_a_family);
    assert!((50_000..100_000).contains(&report.losses.len()), "{}", report.losses.len());
    assert_eq!(report.places_lost(), 2 * PLACES);
    assert!(report.harmless.len() < 100_000);
    assert_eq!(report.harmless.len() as u64 + report.harmless_unlisted, PLACES);
    let mut of_a_long_key = SalvageReport::default();
    of_a_long_key.lose(Error::corruption("x"), Some((vec![0; 33 << 20], Vec::new())));
    assert!(!of_a_long_key.is_complete() && of_a_long_key.losses.is_empty());
}

/// Damaged blocks are found first, and where they took all of the room nothing told of a WAL that
/// is missing.
#[test]
fn what_concerns_whole_files_is_listed_first_whatever_room_places_have_left() {
    let mut report = SalvageReport::default();
    report.lose(Error::corruption("a block is damaged"), Some((vec![0; 31 << 20], Vec::new())));
    while report.losses_unlisted == 0 {
        report.lose(Error::corruption("a block is damaged"), None);
    }
    let places = report.losses.len();
    report.lose_whole(Error::corruption("7.log is missing"), None);
    let torn = report.next_whole();
    report.lose_whole(Error::corruption("a record is cut off").at_offset(9), None);
    report.lose_whole(Error::corruption("5 more large values are lost"), None);
    report.say_more(torn, "the log should continue");
    assert_eq!(report.places_lost(), places as u64 + 4);
    let report = report.finish();
    assert_eq!((report.whole_losses, report.losses.len()), (3, places + 3));
    assert_eq!(report.places_lost(), places as u64 + 4);
    let told: Vec<_> = report.losses[..4].iter().map(|loss| loss.error.message()).collect();
    assert_eq!(
        told,
        [
            "7.log is missing",
            "the log should continue: a record is cut off",
            "5 more large values are lost",
            "a block is damaged",
        ]
    );
    assert_eq!(report.losses[1].error.offset(), Some(9));
}
