use super::*;

#[test]
fn a_budget_is_none_or_a_number_or_of_what_there_is() {
    let parse = |text: &str| {
        let mut budget = MemoryBudget::default();
        budget.assign(text).map(|()| budget)
    };
    assert_eq!(parse("0").unwrap(), MemoryBudget::None);
    assert_eq!(parse("2g").unwrap().bytes(), 2 << 30);
    assert!(parse("auto").unwrap().bytes() <= memory_limit().unwrap_or(0) / 2);
    for text in ["0", "auto", "12345"] {
        assert_eq!(parse(text).unwrap().text(), text);
    }
    assert!(parse("half").unwrap_err().to_string().contains("whole number"));
    let error = parse("1m").unwrap().check().unwrap_err().to_string();
    assert!(error.contains("at least 8388608"), "{error}");
    for enough in ["0", "8m", "auto"] {
        parse(enough).unwrap().check().unwrap();
    }
}
