use super::*;

#[test]
fn keys_are_paths_below_the_root() {
    assert_eq!(key_of(Path::new("/a/b"), Path::new("/a/b/c/d.jpg")), b"c/d.jpg");
    assert_eq!(key_of(Path::new("x"), Path::new("x/y")), b"y");
    assert_eq!(key_of(Path::new("/a/file"), Path::new("/a/file")), b"file");
}
