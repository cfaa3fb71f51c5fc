#![no_main]

flagstone_fuzz::target!("trace");
