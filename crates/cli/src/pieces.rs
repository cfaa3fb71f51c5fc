//! Values on their way out: large ones piece by piece, as they need not fit into memory.

use flagstone::db::{Value, ValueReader};
use serde_json::json;

use crate::failure::Failure;
use crate::json::Form;
use crate::marks::Marks;
use crate::output::Output;
use crate::text::{Notation, Shown, unfinished};

/// Bytes of a value that are read, or passed on, at once.
pub const PIECE_SIZE: usize = 1 << 20;

/// A value to be passed on.
pub enum Pieces<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// One that is read as it is passed on, if it is large.
    Reader(Box<ValueReader>),
}

impl Pieces<'_> {
    /// Bytes of the value.
    pub fn size(&self) -> u64 {
        match self {
            Self::Whole(value) => value.len() as u64,
            Self::Reader(reader) => reader.size(),
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
            Self::Reader(reader) => reader.next_piece()?.map(Piece::Read),
        })
    }

    /// Prints the bytes as they are.
    pub fn print(mut self, output: &mut Output) -> Result<(), Failure> {
        while let Some(piece) = self.next()? {
            output.bytes(&piece)?;
        }
        Ok(())
    }

    /// Prints the value within a line.
    pub fn print_shown(mut self, output: &mut Output, notation: Notation) -> Result<(), Failure> {
        let mut shown = Shown::new(notation);
        while let Some(piece) = self.next()? {
            output.bytes(shown.piece(&piece).as_bytes())?;
        }
        output.bytes(shown.end().as_bytes())
    }

    /// How the value stands in JSON. A large one is read to its end for it, unless its first piece
    /// is not UTF-8.
    pub fn form(mut self, notation: Notation) -> Result<Form, Failure> {
        if notation == Notation::Hex {
            return Ok(Form::Hex);
        }
        let mut begun = Vec::new();
        while let Some(piece) = self.next()? {
            begun.extend_from_slice(&piece);
            let whole = begun.len() - unfinished(&begun);
            if str::from_utf8(&begun[..whole]).is_err() {
                return Ok(Form::Base64);
            }
            begun.drain(..whole);
        }
        Ok(if begun.is_empty() { Form::Text } else { Form::Base64 })
    }

    /// Prints the value within quotes of JSON.
    fn print_quoted(mut self, output: &mut Output, form: Form) -> Result<(), Failure> {
        let mut begun = Vec::new();
        let mut print = |bytes: &[u8]| {
            let quoted = json!(form.text(bytes)).to_string();
            output.bytes(&quoted.as_bytes()[1..quoted.len() - 1])
        };
        while let Some(piece) = self.next()? {
            begun.extend_from_slice(&piece);
            // Up to here it is printed as all of it would be.
            let whole = match form {
                Form::Text => begun.len() - unfinished(&begun),
                Form::Base64 => begun.len() / 3 * 3,
                Form::Hex => begun.len(),
            };
            print(&begun[..whole])?;
            begun.drain(..whole);
        }
        print(&begun)
    }
}

/// Prints a key, with its marks, and its value, which has this form, as a line of JSON.
pub fn print_json(
    output: &mut Output,
    (key, marks): (&[u8], &Marks),
    notation: Notation,
    value: Pieces<'_>,
    form: Form,
) -> Result<(), Failure> {
    let of_key = Form::of(key, notation);
    let (name, key) = (json!(of_key.name("key")), json!(of_key.text(key)));
    let (marks, value_name) = (marks.json(), json!(form.name("value")));
    output.bytes(format!("{{{name}:{key}{marks},{value_name}:\"").as_bytes())?;
    value.print_quoted(output, form)?;
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
