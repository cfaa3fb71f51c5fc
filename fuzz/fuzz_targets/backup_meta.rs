#![no_main]

flagstone_fuzz::target!("backup_meta");
