#![no_main]

flagstone_fuzz::target!("option_text");
