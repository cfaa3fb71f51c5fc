use super::*;

/// It was the first one whose name is a part of what the message names, or of any other word of it.
#[test]
fn the_setting_that_the_message_names_is_wrong_usage() {
    let blamed = |settings: &str, message: &str| {
        let settings = settings.split(' ').filter_map(|setting| setting.split_once('='));
        let settings =
            settings.map(|(name, value)| (name.to_string(), value.to_string())).collect();
        match of_setting(
            &Common { settings, ..Common::default() },
            Error::invalid_argument(message).into(),
        ) {
            Failure::Usage(said) => said.split_once(": ").map(|(setting, _)| setting.to_string()),
            _ => None,
        }
    };
    let levels = "num_levels is 3, and there are tables in level 6";
    let partitions = "metadata_block_size and block_size are 7";
    for (settings, message, setting) in [
        ("num_levels=3", levels, Some("--set num_levels=3")),
        ("num_levels=4 ttl=5 num_levels=3", levels, Some("--set num_levels=3")),
        ("ttl=5 WAL_ttl_seconds=7", "WAL_ttl_seconds: no", Some("--set WAL_ttl_seconds=7")),
        ("table.block_size=7 ttl=5", partitions, Some("--set table.block_size=7")),
        ("ttl=5 block=1", "the environment has a bottommost_ttl, and 2ttl in blocks", None),
    ] {
        assert_eq!(blamed(settings, message).as_deref(), setting, "{message}");
    }
}
