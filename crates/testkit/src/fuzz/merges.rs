//! Merge operators, which take operands as they are found.

use flagstone::base::merge::merge_operator_from_option_text;

use super::input::Input;

const OPERATORS: [&str; 6] =
    ["stringappend", "stringappendtest", "uint64add", "max", "put", "bytesxor"];
const OPERANDS_MAX: usize = 8;

/// Merges operands by an operator that is built in: whoever groups them, and however, gets the
/// same.
pub fn merge(data: &[u8]) {
    let mut input = Input::new(data);
    let text = input.choose(&OPERATORS);
    let operator =
        merge_operator_from_option_text(text).expect("it is built in").expect("it is an operator");
    let existing = input.u8().is_multiple_of(2).then(|| input.piece());
    let mut operands = vec![input.piece()];
    while !input.is_empty() && operands.len() < OPERANDS_MAX {
        operands.push(input.piece());
    }
    let merge = |existing: Option<&[u8]>, operands: &[&[u8]]| {
        operator.full_merge(b"key", existing, operands).expect("it refuses nothing")
    };
    let whole = merge(existing, &operands);
    for split in 1..operands.len() {
        let (older, newer) = operands.split_at(split);
        assert_eq!(merge(Some(&merge(existing, older)), newer), whole, "{text}: {split} first");
        if let Some(older) = operator.partial_merge(b"key", older) {
            assert_eq!(
                merge(existing, &[&[&older[..]], newer].concat()),
                whole,
                "{text}: {split} together"
            );
        }
        if let Some(newer) = operator.partial_merge(b"key", newer) {
            let grouped = [older, &[&newer[..]]].concat();
            assert_eq!(merge(existing, &grouped), whole, "{text}: all but {split} together");
        }
    }
}
