//! What stands in a codec's place in a build without it. Nothing of it is ever used:
//! [`CompressionType::check_built_in`](super::CompressionType::check_built_in) has refused before.

#![allow(dead_code, reason = "each codec has a part of it")]

/// The names of `lz4`.
pub mod lz4 {
    use crate::base::shared_piece::Unwritten;

    pub enum Effort {
        Fast { acceleration: i32 },
        High { level: i32 },
    }

    pub enum Encoder {}

    impl Encoder {
        pub fn new(_: Effort, _: &[u8]) -> Option<Self> {
            None
        }

        pub fn compress(&mut self, _: &[u8], _: &mut Vec<u8>) -> Option<()> {
            match *self {}
        }
    }

    pub fn decompress(_: &[u8], _: usize, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    pub fn decompress_into(_: &[u8], _: Unwritten<'_>, _: &[u8]) -> Option<()> {
        None
    }
}

/// The names of `zstd` and `zlib`.
pub mod with_dictionary {
    use super::super::{CompressionOptions, DecompressionDictionary};
    use crate::base::{Error, Result};

    pub enum Encoder {}

    impl Encoder {
        pub fn new(_: &CompressionOptions, _: &[u8]) -> Result<Self> {
            Err(Error::not_supported("the codec was left out of this build"))
        }

        pub fn compress(&mut self, _: &[u8], _: &mut Vec<u8>) -> Option<()> {
            match *self {}
        }
    }

    #[derive(Default)]
    pub struct Decoder;

    impl Decoder {
        pub fn decompress(
            &mut self,
            _: &[u8],
            _: usize,
            _: Option<&DecompressionDictionary>,
        ) -> Option<Vec<u8>> {
            None
        }

        pub fn decompress_into(
            &mut self,
            _: &[u8],
            _: &mut [u8],
            _: Option<&DecompressionDictionary>,
        ) -> Option<usize> {
            None
        }
    }

    pub enum Digested {}

    impl Digested {
        pub fn new(_: &[u8]) -> Option<Self> {
            None
        }
    }

    pub fn train(_: &[u8], _: &[usize], _: usize) -> Vec<u8> {
        Vec::new()
    }
}

/// The names of `snappy`.
pub mod snappy {
    pub struct Encoder;

    impl Encoder {
        pub fn new() -> Self {
            Self
        }

        pub fn compress(&mut self, _: &[u8], _: &mut Vec<u8>) -> Option<()> {
            None
        }
    }

    #[derive(Default)]
    pub struct Decoder;

    impl Decoder {
        pub fn decompress_into(&mut self, _: &[u8], _: &mut [u8]) -> Option<usize> {
            None
        }
    }

    pub fn raw_size(_: &[u8]) -> Option<usize> {
        None
    }
}

/// The names of `bzip2`.
pub mod bzip2 {
    pub fn compress(_: &[u8], _: &mut Vec<u8>) -> Option<()> {
        None
    }

    pub fn decompress(_: &[u8], _: usize) -> Option<Vec<u8>> {
        None
    }
}
