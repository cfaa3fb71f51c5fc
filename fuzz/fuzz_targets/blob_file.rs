#![no_main]

flagstone_fuzz::target!("blob_file");
