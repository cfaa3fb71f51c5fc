//! Bytes as hexadecimal digits.

/// The bytes that hexadecimal digits say; `None` if others are among them, or one is missing.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some((digit(pair[0])? << 4) | digit(*pair.get(1)?)?)).collect()
}
