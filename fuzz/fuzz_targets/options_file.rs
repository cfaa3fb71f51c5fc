#![no_main]

flagstone_fuzz::target!("options_file");
