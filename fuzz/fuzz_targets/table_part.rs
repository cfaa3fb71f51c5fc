#![no_main]

flagstone_fuzz::target!("table_part");
