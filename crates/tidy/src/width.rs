//! How wide lines are.
//!
//! Code and prose have at most [`MAX_LINE_LENGTH`] characters. Two kinds of lines may be as wide as
//! [`MAX_WIDE_LINE_LENGTH`], since they cannot be wrapped without loss:
//! - a line with a string literal, or with a part of one that goes over several lines;
//! - in a comment, a line of a grammar or table: fenced as `text`, or beginning with `|`.

/// The longest line of code or prose.
pub const MAX_LINE_LENGTH: usize = 100;
/// The longest line of a string, grammar or table.
pub const MAX_WIDE_LINE_LENGTH: usize = 130;

/// What the end of a line stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Code,
    /// A string literal; `hashes` is `None` if backslashes escape in it.
    Text {
        hashes: Option<usize>,
    },
}

/// Lines that are too long, as (line, the most characters that it may have).
pub fn long_lines(lines: &[&str]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut inside = Inside::Code;
    let (mut is_fenced, mut is_grammar) = (false, false);
    for (index, line) in lines.iter().enumerate() {
        let comment = comment(line).filter(|_| inside == Inside::Code);
        let may_be_wide = match comment {
            Some(words) => {
                if words.starts_with("```") {
                    is_fenced = !is_fenced;
                    is_grammar = is_fenced && words == "```text";
                }
                is_grammar || words.starts_with('|')
            }
            None => {
                (is_fenced, is_grammar) = (false, false);
                passes_text(line, &mut inside)
            }
        };
        let most = if may_be_wide { MAX_WIDE_LINE_LENGTH } else { MAX_LINE_LENGTH };
        if line.chars().count() > most {
            found.push((index + 1, most));
        }
    }
    found
}

/// What a line says that is a comment.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start().strip_prefix("//")?;
    Some(line.trim_start_matches(['/', '!']).trim_start())
}

/// Whether a line of code has a part of a string literal; `inside` goes on to the line's end.
fn passes_text(line: &str, inside: &mut Inside) -> bool {
    let bytes = line.as_bytes();
    let mut has_text = *inside != Inside::Code;
    let mut at = 0;
    while at < bytes.len() {
        match *inside {
            Inside::Code if bytes[at..].starts_with(b"//") => break,
            // A lifetime is no character, and has no quotation mark.
            Inside::Code if bytes[at..].starts_with(b"'\"'") => at += 3,
            Inside::Code if bytes[at..].starts_with(b"'\\\"'") => at += 4,
            Inside::Code if bytes[at] == b'"' => {
                let before = line[..at].trim_end_matches('#');
                let is_raw = before.ends_with('r');
                *inside = Inside::Text { hashes: is_raw.then_some(at - before.len()) };
                has_text = true;
                at += 1;
            }
            Inside::Code => at += 1,
            Inside::Text { hashes: None } if bytes[at] == b'\\' => at += 2,
            Inside::Text { hashes } if bytes[at] == b'"' => {
                let wanted = hashes.unwrap_or(0);
                let follow = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
                if follow >= wanted {
                    *inside = Inside::Code;
                }
                at += 1;
            }
            Inside::Text { .. } => at += 1,
        }
    }
    has_text
}
