#![no_main]

flagstone_fuzz::target!("range_tombstones");
