//! One hostile block in an otherwise sound table, its handle and checksum right: index, filter,
//! partition, range tombstones, properties, dictionary, prefix index.

use std::sync::OnceLock;

use flagstone::base::coding::Decoder;
use flagstone::sst::block::BlockBuilder;
use flagstone::sst::{BlockHandle, Footer, Table, TableReadSettings};

use super::input::{Input, file_of};
use super::seeds::small_tables;
use super::tables::use_table;

/// A sound table, taken apart.
pub struct Parts {
    /// Everything before the metaindex.
    body: Vec<u8>,
    footer: Footer,
    /// The blocks that the metaindex names, and the index under the empty name.
    pub blocks: Vec<(String, BlockHandle)>,
}

impl Parts {
    fn of(bytes: &[u8]) -> Self {
        let table = Table::open(file_of(bytes), bytes.len() as u64, TableReadSettings::default());
        let table = table.expect("a sound table");
        let footer = *table.footer();
        let blocks = table.meta_blocks().iter().filter(|(_, handle)| *handle != footer.metaindex);
        let mut blocks: Vec<_> = blocks.cloned().collect();
        blocks.extend(footer.index.map(|index| (String::new(), index)));
        Self { body: bytes[..footer.metaindex.offset as usize].to_vec(), footer, blocks }
    }

    /// The bytes of a block as they are stored.
    pub fn content(&self, at: usize) -> &[u8] {
        let handle = self.blocks[at].1;
        self.body
            .get(handle.offset as usize..(handle.offset + handle.size) as usize)
            .unwrap_or_default()
    }

    /// The table with other bytes for the block at `at`, stored as of that compression.
    fn with(&self, at: usize, content: &[u8], compression: u8) -> Vec<u8> {
        let mut out = self.body.clone();
        let mut blocks = self.blocks.clone();
        blocks[at].1 = self.append(&mut out, content, compression);
        let mut footer = self.footer;
        let mut metaindex = BlockBuilder::new(1, None);
        for (name, handle) in &blocks {
            if name.is_empty() {
                footer.index = Some(*handle);
                continue;
            }
            let mut stored = Vec::new();
            handle.encode(&mut stored);
            metaindex.add(name.as_bytes(), &stored);
        }
        let content = metaindex.finish().to_vec();
        footer.metaindex = self.append(&mut out, &content, 0);
        let offset = out.len() as u64;
        footer.encode(offset, &mut out);
        out
    }

    fn append(&self, out: &mut Vec<u8>, content: &[u8], compression: u8) -> BlockHandle {
        let handle = BlockHandle { offset: out.len() as u64, size: content.len() as u64 };
        out.extend_from_slice(content);
        out.push(compression);
        out.extend(self.footer.checksum_of(content, compression, handle.offset).to_le_bytes());
        handle
    }
}

/// Every small table, taken apart.
pub fn all_parts() -> &'static [Parts] {
    static PARTS: OnceLock<Vec<Parts>> = OnceLock::new();
    PARTS.get_or_init(|| small_tables().iter().map(|bytes| Parts::of(bytes)).collect())
}

/// Which table, which of its blocks, how to read, how compressed, a key, the block.
pub fn table_part(data: &[u8]) {
    let mut input = Input::new(data);
    let parts = all_parts();
    let parts = &parts[usize::from(input.u8()) % parts.len()];
    let at = usize::from(input.u8()) % parts.blocks.len();
    let (how, compression) = (input.u8(), input.u8());
    let key = input.piece();
    let bytes = parts.with(at, input.rest(), compression);
    use_table(&bytes, how & !4, key);
    let mut handle = Decoder::new(key);
    BlockHandle::decode(&mut handle);
}
