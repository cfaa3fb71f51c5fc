use flagstone::base::Code;

use super::*;

#[test]
fn settings_read_back_and_every_draw_is_taken() {
    for seed in 0..300 {
        let settings = draw(&mut fastrand::Rng::with_seed(seed), &["default", "first"]);
        for setting in &settings {
            assert_eq!(setting.to_string().parse(), Ok(setting.clone()));
        }
        Chosen::new(&Env::memory(), &settings).expect("a drawn set is taken");
    }
}

/// Went wrong: an option came into the engine, and no history ever drew it.
#[test]
fn every_option_is_drawn_or_left_out_for_a_reason() {
    // Drawn as `table_factory`.
    const TOGETHER: [&str; 2] = ["index_type", "partition_filters"];
    const ABOUT_OPENING: [&str; 3] =
        ["create_if_missing", "create_missing_column_families", "error_if_exists"];
    let is_planned = |name: &str| {
        let refused = |value| Options::default().set(name, value).err();
        let values = ["true", "false", "0", "1", "100"];
        values.into_iter().filter_map(refused).any(|error| error.code() == Code::NotSupported)
    };
    let is_drawn = |name: &str| {
        CHOICES
            .iter()
            .any(|choice| choice.name.strip_prefix("table.").unwrap_or(choice.name) == name)
    };
    // Histories that prepare transactions have the first in any case. The second is on where
    // `allow_ingest_behind` is. The third is a directory of the machine, and the fourth for keys
    // with timestamps, which histories do not have.
    const ELSEWHERE: [&str; 4] =
        ["allow_2pc", "cf_allow_ingest_behind", "db_log_dir", "persist_user_defined_timestamps"];
    let left_out = [&TOGETHER[..], &ABOUT_OPENING, &ELSEWHERE].concat();
    let rows = flagstone::options::names::rows().map(|row| row.name);
    let missing: Vec<_> = rows
        .filter(|name| !left_out.contains(name) && !is_drawn(name) && !is_planned(name))
        .collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn every_choice_is_taken_by_itself_or_with_what_it_needs() {
    let env = Env::memory();
    for choice in CHOICES {
        for value in choice.values {
            let setting =
                |name: &str, value: &str| format!("{name}={value}").parse().expect("a setting");
            let alone: Setting = setting(choice.name, value);
            let extractor = setting("prefix_extractor", "fixed:2");
            let taken = Chosen::new(&env, std::slice::from_ref(&alone))
                .or_else(|_| Chosen::new(&env, &[extractor, alone]));
            if let Err(error) = taken {
                panic!("{}={value}: {error}", choice.name);
            }
        }
    }
}
