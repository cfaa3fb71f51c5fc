#![no_main]

flagstone_fuzz::target!("update_position");
