use super::*;

#[test]
fn a_panic_tells_what_and_where() {
    assert_eq!(catch(|| 3), Ok(3));
    let said = catch(|| panic!("no {}", "luck")).unwrap_err();
    assert!(said.contains("no luck") && said.contains("caught/tests.rs"), "{said}");
    let outer = catch(|| catch(|| panic!("inner")).is_err()).unwrap();
    assert!(outer, "the inner one is caught by the inner call");
}
