//! Values on their way out: large ones piece by piece, as they need not fit into memory.

use flagstone::db::{Value, ValueReader};
use serde_json::json;

use crate::failure::Failure;
use crate::output::Output;
use crate::text::{Notation, Shown};

/// Bytes of a value that are read, or passed on, at once.
pub const PIECE_SIZE: usize = 1 << 20;

/// A value to be passed on.
pub enum Pieces<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// A large one, read as it is passed on.
    Large(Box<ValueReader>),
}

impl Pieces<'_> {
    /// Bytes of the value.
    pub fn size(&self) -> u64 {
        match self {
            Self::Whole(value) => value.len() as u64,
            Self::Large(reader) => reader.size(),
        }
    }

    /// The next piece: `None` behind the last. Where this fails, the value is damaged, and what
    /// came before is of no use.
    pub fn next(&mut self) -> Result<Option<Piece<'_>>, Failure> {
        Ok(match self {
            Self::Whole(value) => {
                // What is made of it, as hexadecimal, takes no more memory than that of a large
                // one.
                let (piece, rest) = value.split_at(value.len().min(PIECE_SIZE));
                *value = rest;
                Some(piece).filter(|piece| !piece.is_empty()).map(Piece::Part)
            }
            Self::Large(reader) => reader.next_piece()?.map(Piece::Read),
        })
    }

    /// Prints the bytes as they are.
    pub fn print(mut self, output: &mut Output) -> Result<(), Failure> {
        while let Some(piece) = self.next()? {
            output.bytes(&piece)?;
        }
        Ok(())
    }

    /// Prints the value within a line, within quotes of JSON if `json`.
    pub fn print_shown(
        mut self,
        output: &mut Output,
        notation: Notation,
        json: bool,
    ) -> Result<(), Failure> {
        let mut print = |text: &str| {
            if json {
                let quoted = json!(text).to_string();
                output.bytes(&quoted.as_bytes()[1..quoted.len() - 1])
            } else {
                output.bytes(text.as_bytes())
            }
        };
        let mut shown = Shown::new(notation);
        while let Some(piece) = self.next()? {
            print(&shown.piece(&piece))?;
        }
        print(&shown.end())
    }
}

/// Prints a key and its value as a line of JSON.
pub fn print_json(
    output: &mut Output,
    key: &str,
    value: Pieces<'_>,
    notation: Notation,
) -> Result<(), Failure> {
    output.bytes(format!("{{\"key\":{},\"value\":\"", json!(key)).as_bytes())?;
    value.print_shown(output, notation, true)?;
    output.line("\"}")
}

/// A piece of a value.
pub enum Piece<'a> {
    /// Of one that is in memory.
    Part(&'a [u8]),
    /// That was read.
    Read(Value),
}

impl std::ops::Deref for Piece<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Part(bytes) => bytes,
            Self::Read(bytes) => bytes,
        }
    }
}
