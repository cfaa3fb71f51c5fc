use super::*;

#[test]
fn the_command_line_is_sound() {
    CommandLine::grammar().debug_assert();
}

/// Some named their exit codes, and most did not.
#[test]
fn every_command_has_an_example_and_names_its_exit_codes() {
    for command in CommandLine::grammar().get_subcommands() {
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(
            after.contains(&format!("flagstone {}", command.get_name())),
            "{}",
            command.get_name()
        );
        assert!(after.contains("Exit code 0: "), "{}", command.get_name());
        assert!(command.get_about().is_some(), "{}", command.get_name());
    }
}
