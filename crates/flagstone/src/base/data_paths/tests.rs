use super::*;

#[test]
fn a_path_id_beyond_the_last_means_the_last() {
    let two = DataPaths::new(Path::new("/db"), &[("/fast".into(), 10), ("/slow".into(), 0)]);
    assert_eq!(two.directory(0).as_ref(), Path::new("/fast"));
    assert_eq!(two.directory(3).as_ref(), Path::new("/slow"));
    assert_eq!(two.blob(FileNumber(7)), Path::new("/fast/000007.blob"));
    assert_eq!(DataPaths::new(Path::new("/db"), &[]).directory(3).as_ref(), Path::new("/db"));
}
