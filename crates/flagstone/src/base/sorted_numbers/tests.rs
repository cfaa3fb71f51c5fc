use super::*;

/// Numbers as they come: few or many, alike or not, multiples or not, at both ends of what there
/// is.
fn drawn(random: &mut fastrand::Rng, len: u64) -> Vec<u64> {
    let shift = random.u32(..60);
    let most = match random.u8(..5) {
        0 => 40,
        1 => u64::from(NARROW_MAX),
        2 => 1 << 31,
        _ => u64::MAX,
    };
    let base = if random.bool() { u64::MAX.saturating_sub(most << shift) } else { random.u64(..) };
    // Most of them in a small part of what they span, or all over it.
    let dense = if random.bool() { most } else { 1 + most / 10_000 };
    let number = |random: &mut fastrand::Rng| {
        let most = if random.u8(..100) == 0 { most } else { dense };
        base.saturating_add(random.u64(..=most) << shift)
    };
    let mut numbers: Vec<u64> = (0..len).map(|_| number(random)).collect();
    if random.u8(..4) == 0 {
        numbers.extend([0, u64::MAX, u64::MAX]);
    }
    numbers.sort_unstable();
    numbers
}

#[test]
fn ranks_are_those_of_a_binary_search() {
    let (mut narrow, mut wide, mut guided, mut unguided) = (0, 0, 0, 0);
    let lens =
        (0..130).chain([511, 512, 513]).cycle().take(500).chain([4096, 5000, 7777].repeat(40));
    for (round, len) in lens.enumerate() {
        let mut random = fastrand::Rng::with_seed(round as u64);
        let numbers = drawn(&mut random, len);
        let sorted = SortedNumbers::new(&numbers);
        match &sorted.form {
            Form::Narrow { guide, layers, .. } => {
                narrow += 1;
                for at in (0..numbers.len()).filter(|_| !guide.parts.is_empty()) {
                    *if guide.line(layers.get(at)).is_some() {
                        &mut guided
                    } else {
                        &mut unguided
                    } += 1;
                }
            }
            Form::Wide(_) => wide += 1,
        }
        let others = (0..50).map(|_| random.u64(..)).chain([0, 1, u64::MAX]).collect::<Vec<_>>();
        let near = numbers.iter().step_by(1 + numbers.len() / 100);
        let near = near.flat_map(|&one| [one.saturating_sub(1), one, one.saturating_add(1)]);
        for number in near.chain(others) {
            let smaller = numbers.partition_point(|&one| one < number);
            let place = sorted.seek(number);
            assert_eq!(sorted.rank_at(place), smaller, "{number} among {} numbers", numbers.len());
            let behind = sorted.rank_behind(place, smaller);
            let next = numbers.get(smaller).copied().unwrap_or(number);
            let allowed = [number, next].map(|most| numbers.partition_point(|&one| one <= most));
            assert!(
                behind == allowed[0] || number != next && behind == allowed[1],
                "{number} among {numbers:?}"
            );
        }
    }
    assert!(narrow > 100 && wide > 100, "{narrow} narrow, {wide} wide");
    assert!(guided > 10_000 && unguided > 10_000, "{guided} guided, {unguided} not");
}
