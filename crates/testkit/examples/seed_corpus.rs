//! Writes the inputs that the fuzz targets start from: `cargo run -p testkit --example seed_corpus
//! -- fuzz/corpus`.

use std::path::Path;

use flagstone::base::Result;
use flagstone::env::os::OsFileSystem;
use flagstone::env::{FileSystem, IoMode};
use testkit::fuzz::{TARGETS, seeds};

fn main() -> Result<()> {
    let root = std::env::args_os().nth(1).expect("usage: seed_corpus DIRECTORY");
    for (name, _) in TARGETS {
        let directory = Path::new(&root).join(name);
        OsFileSystem.create_directory(&directory)?;
        for (number, seed) in seeds(name).iter().enumerate() {
            OsFileSystem
                .create_writable(&directory.join(format!("seed-{number:03}")), IoMode::Buffered)?
                .write_at(0, seed)?;
        }
    }
    Ok(())
}
