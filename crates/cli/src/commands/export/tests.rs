use super::*;

#[test]
fn only_keys_within_the_directory_become_files() {
    for good in ["a", "a/b.jpg", "..a", "a..b/c", " ", "a\\b"] {
        assert_eq!(safe_path(good.as_bytes()), Ok(PathBuf::from(good)), "{good}");
    }
    for bad in
        ["", "/", "/etc/passwd", "..", "a/../b", "a/..", "../a", "a//b", "a/", ".", "a/./b", "a\0b"]
    {
        assert!(safe_path(bad.as_bytes()).is_err(), "{bad}");
    }
    assert!(safe_path(b"\xff\xfe/x").is_ok());
}
