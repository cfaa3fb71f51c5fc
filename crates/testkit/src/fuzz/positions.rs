//! How far somebody says that he has followed a database.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use flagstone::db::{Db, UpdatePosition};
use flagstone::env::memory::MemoryFileSystem;

use super::input::ok;
use crate::{settings, steps};

/// A database that keeps its WALs, and what it has handed out.
fn followed() -> &'static (Db, Vec<UpdatePosition>) {
    static FOLLOWED: OnceLock<(Db, Vec<UpdatePosition>)> = OnceLock::new();
    FOLLOWED.get_or_init(|| {
        let mut options = settings::tiny(&steps::world(Arc::new(MemoryFileSystem::new()), 1));
        settings::set(&mut options, &[("WAL_ttl_seconds", "1000000000")]);
        let db = Db::open(Path::new("/db"), &options).expect("a new database");
        for number in 0..12 {
            db.put(format!("k{number:02}"), "value").expect("a write");
            if number % 5 == 4 {
                db.flush_all().expect("a flush");
            }
        }
        let mut updates = db.get_updates_since(1).expect("all of them");
        let mut positions = Vec::new();
        while let Some(update) = updates.next_update().expect("an update") {
            positions.push(update.position);
        }
        (db, positions)
    })
}

/// The positions, as they are stored.
pub fn sound() -> Vec<Vec<u8>> {
    followed().1.iter().map(|position| position.to_bytes().to_vec()).collect()
}

/// Goes on from stored bytes: from no other place than those that were handed out.
pub fn update_position(data: &[u8]) {
    let Some(position) = UpdatePosition::from_bytes(data) else {
        assert_ne!(data.len(), UpdatePosition::SIZE);
        return;
    };
    assert_eq!(position.to_bytes(), data);
    let (db, handed_out) = followed();
    let Some(mut updates) = ok(db.get_updates_after(position)) else {
        assert!(!handed_out.contains(&position), "{position:?} was handed out");
        return;
    };
    assert!(handed_out.contains(&position), "{position:?} was never handed out");
    if let Some(update) = updates.next_update().expect("what follows") {
        assert_eq!(update.sequence, position.next_sequence);
    }
}
