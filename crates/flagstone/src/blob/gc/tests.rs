use super::*;

/// Files as `number:garbage/total`, settings as numbers; what is eligible and what is forced, as
/// text.
fn decide(age_cutoff: f64, force_threshold: f64, files: &str) -> String {
    let settings = BlobGcSettings { enabled: true, age_cutoff, force_threshold };
    let usage: Vec<_> = files
        .split_whitespace()
        .map(|file| {
            let (number, rest) = file.split_once(':').unwrap();
            let (garbage, total) = rest.split_once('/').unwrap();
            let number = FileNumber(number.parse().unwrap());
            let (garbage_bytes, total_bytes) = (garbage.parse().unwrap(), total.parse().unwrap());
            BlobFileUsage { number, total_bytes, garbage_bytes }
        })
        .collect();
    let eligible: Vec<_> =
        gc_candidates(&settings, &usage).iter().map(|n| n.0.to_string()).collect();
    let forced = forced_gc(&settings, &usage).map_or("none".to_owned(), |n| n.0.to_string());
    format!("eligible [{}] forced {forced}", eligible.join(" "))
}

#[test]
fn the_oldest_quarter_is_eligible() {
    let files = "1:9/100 2:9/100 3:9/100 4:9/100 5:9/100 6:9/100 7:9/100 8:9/100";
    assert_eq!(decide(0.25, 1.0, files), "eligible [1 2] forced none");
    assert_eq!(decide(0.24, 1.0, files), "eligible [1] forced none");
    assert_eq!(decide(0.0, 1.0, files), "eligible [] forced none");
    assert_eq!(decide(1.0, 1.0, files), "eligible [1 2 3 4 5 6 7 8] forced none");
    assert_eq!(decide(0.25, 1.0, "1:1/1 2:1/1 3:1/1"), "eligible [] forced none");
}

#[test]
fn files_without_garbage_are_left_alone_however_old() {
    assert_eq!(decide(1.0, 1.0, "1:0/100 2:4/100 3:5/100"), "eligible [3] forced none");
    assert_eq!(decide(0.5, 0.5, "1:0/100 2:0/100 3:80/100 4:90/100"), "eligible [3] forced 3");
}

#[test]
fn enough_garbage_in_the_eligible_files_forces_the_oldest() {
    assert_eq!(decide(0.5, 0.5, "3:40/100 5:60/100 7:9/99 9:9/99"), "eligible [3 5] forced 3");
    assert_eq!(decide(0.5, 0.5, "3:40/100 5:59/100 7:9/99 9:9/99"), "eligible [3 5] forced none");
    assert_eq!(decide(0.5, 0.5, "3:6/100 5:6/100 7:100/100 9:9/9"), "eligible [3 5] forced none");
    assert_eq!(decide(0.25, 0.1, "3:99/100"), "eligible [] forced none");
}

#[test]
fn nothing_is_eligible_while_it_is_off() {
    let off = BlobGcSettings { age_cutoff: 1.0, force_threshold: 0.0, ..BlobGcSettings::default() };
    let full = BlobFileUsage { number: FileNumber(1), total_bytes: 1, garbage_bytes: 1 };
    assert!(gc_candidates(&off, &[full]).is_empty());
    assert_eq!(forced_gc(&off, &[full]), None);
}
