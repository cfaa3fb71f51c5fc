#![no_main]

flagstone_fuzz::target!("compaction_result");
