mod defaults;
mod openings;
mod setters;
mod texts;

use flagstone::options::file::print;

use super::Options;

/// The OPTIONS file that an opening with these options writes.
fn options_file(options: &Options) -> String {
    let engine = options.engine().unwrap();
    print(&engine, &[("default", &engine.cf)])
}
