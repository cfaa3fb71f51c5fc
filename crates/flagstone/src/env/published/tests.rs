#![expect(
    clippy::disallowed_methods,
    reason = "the tests look at the file as any other program would"
)]

use super::*;

#[test]
fn a_published_file_has_the_last_contents_and_goes_with_its_owner() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("FIGURES");
    fs::write(&path, "left behind by a process, and longer").expect("a file");
    let published = OsPublishedFile::create(&path).expect("a new file");
    let read = || fs::read_to_string(&path).expect("it is there");
    assert_eq!(read(), "");
    for contents in ["first", "the second", "3"] {
        published.publish(contents.as_bytes()).expect("it is written");
        assert_eq!(read(), contents);
    }
    drop(published);
    assert!(!path.exists());
    let nowhere = OsPublishedFile::create(&directory.path().join("none/FIGURES"));
    assert!(nowhere.is_err_and(|error| error.is_not_found()));
}

#[test]
fn a_file_that_took_its_place_is_left_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("FIGURES");
    let published = OsPublishedFile::create(&path).expect("a new file");
    fs::rename(&path, directory.path().join("moved")).expect("it is moved away");
    fs::write(&path, "another").expect("another takes its place");
    drop(published);
    assert_eq!(fs::read_to_string(&path).expect("it is left"), "another");
}

#[test]
fn this_process_has_started_and_others_have_not() {
    let started = process_start(std::process::id()).expect("this process runs");
    assert!(started > 0);
    assert_eq!(process_start(std::process::id()), Some(started));
    assert!(process_start(1).is_none_or(|first| first <= started));
    assert_eq!(process_start(u32::MAX), None);
    let mut child = std::process::Command::new("true").spawn().expect("a child");
    let pid = child.id();
    child.wait().expect("it ends");
    assert_eq!(process_start(pid), None);
}
