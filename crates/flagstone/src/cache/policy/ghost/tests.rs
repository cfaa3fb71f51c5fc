use std::collections::VecDeque;

use super::*;

/// Both kinds against a plain queue.
fn does_what_a_queue_does(mut ghosts: impl Ghosts) {
    let mut random = fastrand::Rng::with_seed(3);
    let mut queue = VecDeque::new();
    ghosts.set_capacity(500);
    for _ in 0..50_000 {
        let id = random.u64(..1000);
        let expected = queue.iter().any(|(queued, _)| *queued == Some(id));
        assert_eq!(ghosts.take(id), expected);
        // What is taken leaves a gap that nothing fills.
        queue
            .iter_mut()
            .filter(|(queued, _)| *queued == Some(id))
            .for_each(|(queued, _)| *queued = None);
        let charge = random.u64(1..4);
        ghosts.push(id, charge);
        queue.push_back((Some(id), charge));
        while queue.iter().map(|(_, charge)| charge).sum::<u64>() > 500 {
            queue.pop_front();
        }
    }
}

#[test]
fn both_kinds_do_what_a_queue_does() {
    does_what_a_queue_does(NumberedGhosts::default());
    does_what_a_queue_does(HashedGhosts::default());
}

#[test]
fn the_table_does_not_grow_with_what_has_left() {
    let mut ghosts = HashedGhosts::default();
    ghosts.set_capacity(500);
    (0..100_000).for_each(|id| ghosts.push(id, 1));
    assert!(ghosts.places.len() <= 2048, "{} places", ghosts.places.len());
    // Nor has it room for what the queue had room for once.
    let before = ghosts.memory();
    ghosts.set_capacity(300);
    assert_eq!(ghosts.memory(), before);
    ghosts.set_capacity(10);
    assert_eq!(ghosts.memory(), 0);
    assert!((99_990..100_000).all(|id| ghosts.take(id)) && !ghosts.take(99_989));
}
