//! Blocks of entries: data blocks, and by their walk index and meta blocks.

use flagstone::base::{Comparator, InternalKey, InternalKeyBuf};
use flagstone::sst::block::BlockIter;
use flagstone::sst::{Block, TableProperties};

use super::input::{Input, ok};

/// Moves a cursor over a hostile block in every way: flags, a target, the block.
pub fn block(data: &[u8]) {
    let mut input = Input::new(data);
    let flags = input.u8();
    let target = InternalKeyBuf::for_seek(input.piece(), u64::from(input.u16()));
    let Some(block) = ok(Block::new(input.rest())) else { return };
    ok(TableProperties::decode(&block));
    let comparator =
        if flags & 1 == 0 { Comparator::Bytewise } else { Comparator::ReverseBytewise };
    let global = (flags & 2 != 0).then_some(77);
    let mut iter = BlockIter::new(block, comparator, global);
    seek_everywhere(&mut iter, target.as_key());
    walk(&mut iter, flags);
}

fn seek_everywhere(iter: &mut BlockIter, target: InternalKey<'_>) {
    let moves: [fn(&mut BlockIter, InternalKey<'_>); 3] =
        [BlockIter::seek, BlockIter::seek_for_prev, BlockIter::seek_for_get];
    for movement in moves {
        for step in [BlockIter::next, BlockIter::prev] {
            movement(iter, target);
            for _ in 0..3 {
                if iter.valid() {
                    iter.upcoming(&mut |_, value| value.len() % 3 != 0);
                    look(iter);
                    step(iter);
                }
            }
            ok(iter.status());
        }
    }
}

/// Goes through forwards, seeking each key on the way, and backwards, turning around now and then.
fn walk(iter: &mut BlockIter, flags: u8) {
    let steps = iter.block().data().len() + 1;
    let mut keys = Vec::new();
    iter.seek_to_first();
    for _ in 0..steps {
        if !iter.valid() {
            break;
        }
        look(iter);
        keys.push(iter.key().to_buf());
        iter.next();
    }
    assert!(!iter.valid(), "an entry takes at least a byte");
    iter.seek_to_last();
    let mut turns = 0;
    for step in 0..2 * steps {
        if !iter.valid() {
            break;
        }
        look(iter);
        if flags & 4 != 0 && step % 5 == 3 && turns < steps / 5 {
            turns += 1;
            iter.next();
        } else {
            iter.prev();
        }
    }
    for key in keys.iter().take(32) {
        iter.seek(key.as_key());
        if iter.valid() {
            look(iter);
        }
        iter.seek_for_get(key.as_key());
    }
}

fn look(iter: &BlockIter) {
    let (key, value) = (iter.key(), iter.value());
    assert!(key.user_key().len() < key.as_bytes().len());
    assert_eq!(iter.value_ref().pin().as_ref(), value);
}
