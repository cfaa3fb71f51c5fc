use super::*;

/// Of faults that last, those after which somebody was to ask for writes were those under which the
/// database is closed.
#[test]
fn writes_are_asked_for_after_every_kind_of_fault() {
    const IO: Injection = Injection::Io;
    let plans: [fn(u64) -> Plan; 4] = [
        |at| Plan::Once { at, injection: IO },
        |at| Plan::Twice { at, injection: IO, gap: 1 },
        |at| Plan::Lasting { at, injection: IO },
        |at| Plan::ReadOnly { at },
    ];
    for plan in plans {
        let open: Vec<_> = (0..80).map(plan).filter(|plan| !plan.lasts_to_the_end()).collect();
        let asked = open.iter().filter(|plan| asks_to_go_on(**plan)).count();
        assert_eq!(asked * 2, open.len(), "{:?}", open[0]);
    }
}
