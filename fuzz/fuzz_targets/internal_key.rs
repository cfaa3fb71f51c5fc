#![no_main]

flagstone_fuzz::target!("internal_key");
