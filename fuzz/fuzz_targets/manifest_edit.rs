#![no_main]

flagstone_fuzz::target!("manifest_edit");
