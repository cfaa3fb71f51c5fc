//! The `flagstone` command.
#![allow(dead_code)]
mod bench {
    pub mod data;
    pub mod histogram;
    pub mod random;
}
mod failure;
mod progress;
mod text;

fn main() {}
