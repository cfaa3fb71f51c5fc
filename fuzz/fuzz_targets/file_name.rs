#![no_main]

flagstone_fuzz::target!("file_name");
