#![no_main]

flagstone_fuzz::target!("unique_id");
