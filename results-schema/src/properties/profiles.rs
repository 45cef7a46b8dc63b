//! Whole profiles: the example profile with random changes, so that new fields are tested too.

#[path = "../../../fuzz/bodies/rank_profile.rs"]
mod fuzzed;
#[path = "../../../fuzz/bodies/live_file.rs"]
mod fuzzed_live;

use std::fs;
use std::ops::Range;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    RankProfile, RankReader, Reduction, ReductionInOrder, Summary, parse_rank, parse_summary,
    write_summary,
};

const EXAMPLE: &str = include_str!("../../examples/rank.json");

/// A place in the example, and the values that can be there in a profile.
#[derive(Clone, Debug)]
struct NumberPlace {
    pointer: String,
    values: Vec<Value>,
}

/// Numbers of an ordinary size.
fn ordinary() -> Vec<Value> {
    vec![json!(0), json!(1), json!(7), json!(-3), json!(1_000_003), json!(0.1), json!(2.5e-7)]
}

/// The extremes that can be written.
fn extreme() -> Vec<Value> {
    let mut values = ordinary();
    values.extend([json!(u32::MAX), json!(i32::MAX), json!(i64::MIN), json!(u64::MAX)]);
    values.extend([json!(f64::MAX), json!(f64::MIN), json!(5e-324), json!(1.0), json!(-0.0)]);
    values.extend([json!("NaN"), json!("Infinity"), json!("-Infinity")]);
    values
}

fn example() -> Value {
    serde_json::from_str(EXAMPLE).unwrap()
}

/// The places in the example that can be changed so that it stays a profile: `numbers` where they fit, other
/// names, lists with an element dropped or doubled, nothing where that is allowed.
fn places(numbers: &[Value]) -> Vec<NumberPlace> {
    let example = example();
    let mut places = Vec::new();
    look_at(&example, String::new(), numbers, &mut places);
    for place in &mut places {
        place.values.retain(|value| {
            let mut changed = example.clone();
            *changed.pointer_mut(&place.pointer).unwrap() = value.clone();
            serde_json::from_value::<RankProfile>(changed).is_ok()
        });
    }
    let fixed = ["/rank", "/size", "/schema", "/job/id"];
    places.retain(|place| !place.values.is_empty() && !fixed.contains(&&*place.pointer));
    assert!(places.len() > 100, "the example has become small");
    places
}

fn look_at(value: &Value, pointer: String, numbers: &[Value], places: &mut Vec<NumberPlace>) {
    let mut values = vec![Value::Null];
    match value {
        Value::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                look_at(element, format!("{pointer}/{at}"), numbers, places);
            }
            values.push(json!([]));
            if let [first, rest @ ..] = elements.as_slice() {
                let twice = [elements.as_slice(), std::slice::from_ref(first)].concat();
                values.extend([json!(rest), json!(twice)]);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                look_at(value, format!("{pointer}/{key}"), numbers, places);
            }
        }
        Value::String(text) => {
            values.extend(["", "other", "evil\u{1b}[2J\u{9b}\n"].map(Value::from));
            values.push(json!(text.to_uppercase()));
            values.extend_from_slice(numbers);
        }
        Value::Number(_) => values.extend_from_slice(numbers),
        Value::Bool(flag) => values.push(json!(!flag)),
        Value::Null => values.push(json!("something")),
    }
    places.push(NumberPlace { pointer, values });
}

/// The changes to the profile of one rank: the pointer and the new value of each.
type Changes = Vec<(String, Value)>;

/// The changes to the profiles of one job, for each rank.
fn changes(numbers: &[Value]) -> impl Strategy<Value = Vec<(usize, Changes)>> + use<> {
    changes_of(numbers, 1..5)
}

fn changes_of(
    numbers: &[Value],
    ranks: Range<usize>,
) -> impl Strategy<Value = Vec<(usize, Changes)>> + use<> {
    let change = proptest::sample::select(places(numbers))
        .prop_flat_map(|place| (Just(place.pointer), proptest::sample::select(place.values)));
    let changes = proptest::collection::vec(change, 0..40);
    proptest::collection::vec(changes, ranks).prop_map(|ranks| (0..).zip(ranks).collect())
}

/// The example with these changes, as one of ten ranks, which are dealt to three hosts in turn.
fn profile(rank: usize, changes: &Changes) -> RankProfile {
    profile_of(rank, 10, changes)
}

fn profile_of(rank: usize, size: usize, changes: &Changes) -> RankProfile {
    let mut profile = example();
    profile["rank"] = json!(rank);
    profile["size"] = json!(size);
    profile["host"] = json!(format!("n{}", rank % 3));
    for (pointer, value) in changes {
        // An earlier change may have removed the place.
        if let Some(there) = profile.pointer_mut(pointer) {
            *there = value.clone();
        }
    }
    serde_json::from_value(profile).unwrap()
}

fn reduced(ranks: &[(usize, Changes)]) -> Reduction {
    let profiles: Vec<_> = ranks.iter().map(|(rank, changes)| profile(*rank, changes)).collect();
    reduction(&profiles)
}

fn reduction(profiles: &[RankProfile]) -> Reduction {
    let mut reduction = Reduction::default();
    for profile in profiles {
        reduction.add(&crate::rank_file_name(profile.rank), profile);
    }
    reduction
}

/// The plain binary tree, with a reduction for each rank; `level` is that of its root.
fn tree(profiles: &[RankProfile], level: u32) -> Reduction {
    if let [_] | [] = profiles {
        return reduction(profiles);
    }
    let below = level - 1;
    let is_left = |profile: &RankProfile| profile.rank >> below & 1 == 0;
    let (left, right) = profiles.split_at(profiles.partition_point(is_left));
    let mut left = tree(left, below);
    left.merge(tree(right, below));
    left
}

fn text(summary: &Summary) -> String {
    String::from_utf8(written(summary)).unwrap()
}

fn written(summary: &Summary) -> Vec<u8> {
    let mut out = Vec::new();
    write_summary(&mut out, summary).unwrap();
    out
}

/// Equal except for the rounding of doubles, and the order of states, which depends on such a double.
fn are_alike(at: &str, one: &Value, other: &Value, scale: f64) -> Result<(), TestCaseError> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys = |fields: &serde_json::Map<_, _>| fields.keys().cloned().collect::<Vec<_>>();
            prop_assert_eq!(keys(one), keys(other), "{}", at);
            let of = |key| one.get(key).and_then(Value::as_f64).unwrap_or_default().abs();
            let scale = of("min").max(of("max")).max(of("sum"));
            for (key, value) in one {
                are_alike(&format!("{at}/{key}"), value, &other[key], scale)?;
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            prop_assert_eq!(one.len(), other.len(), "{}", at);
            let sorted = |list: &[Value]| {
                let mut list = list.to_vec();
                if at.ends_with("/states") {
                    list.sort_by_key(|state| state["state"].to_string());
                }
                list
            };
            for (place, (one, other)) in sorted(one).iter().zip(&sorted(other)).enumerate() {
                are_alike(&format!("{at}/{place}"), one, other, scale)?;
            }
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() && other.is_f64() => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            // The deviation of equal numbers is the root of a rounding error.
            let part = if at.ends_with("/stddev") { 1e-6 } else { 1e-12 };
            let scale = scale.max(one.abs());
            prop_assert!((one - other).abs() <= scale * part, "{at}: {one} is not {other}");
        }
        _ => prop_assert_eq!(one, other, "{}", at),
    }
    Ok(())
}

/// Each case takes whole profiles apart.
fn few() -> ProptestConfig {
    ProptestConfig::with_cases(32)
}

proptest! {
    #![proptest_config(few())]

    #[test]
    fn neither_order_nor_grouping_of_profiles_matters(
        (ranks, shuffled, cut) in changes(&ordinary()).prop_flat_map(|ranks| {
            let cut = 0..=ranks.len();
            (Just(ranks.clone()), Just(ranks).prop_shuffle(), cut)
        }),
    ) {
        let whole = reduced(&ranks).finish().unwrap();
        let (first, second) = shuffled.split_at(cut);
        let mut parts = reduced(first);
        parts.merge(reduced(second));
        let json = |summary: &Summary| serde_json::to_value(summary).unwrap();
        are_alike("", &json(&whole), &json(&parts.finish().unwrap()), 0.0)?;
    }

    /// Bit by bit.
    #[test]
    fn what_is_sent_is_merged_like_what_is_there(
        ranks in prop_oneof![changes(&ordinary()), changes(&extreme())],
        cut in 0_usize..5,
    ) {
        let (first, second) = ranks.split_at(cut.min(ranks.len()));
        let (mut here, mut receiver) = (reduced(first), reduced(first));
        here.merge(reduced(second));
        receiver.merge(postcard::from_bytes(&sent(&reduced(second))).unwrap());
        prop_assert_eq!(sent(&here), sent(&receiver));
        let [here, receiver] = [here, receiver].map(|one| written(&one.finish().unwrap()));
        prop_assert_eq!(String::from_utf8(here).unwrap(), String::from_utf8(receiver).unwrap());
    }

    #[test]
    fn what_is_sent_and_damaged_is_no_reduction_or_another(
        ranks in changes(&extreme()),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = sent(&reduced(&ranks));
        let cut = cut.index(bytes.len());
        prop_assert!(postcard::from_bytes::<Reduction>(&bytes[..cut]).is_err());
        let at = at.index(bytes.len());
        bytes[at] = byte;
        // Whatever the input is, it ends, and the result can be finished.
        if let Ok(other) = postcard::from_bytes(&bytes) {
            let mut own = reduced(&ranks);
            own.merge(other);
            let _ = own.finish();
        }
    }

    /// To the last bit: a reduction inside MPI over the same tree is the same.
    #[test]
    fn profiles_in_a_row_are_reduced_as_by_a_binary_tree_over_the_ranks(
        ranks in changes_of(&extreme(), 1..40),
        missing in proptest::collection::vec(any::<proptest::sample::Index>(), 0..4),
    ) {
        let mut profiles: Vec<_> =
            ranks.iter().map(|(rank, changes)| profile_of(*rank, ranks.len(), changes)).collect();
        for missing in missing {
            if profiles.len() > 1 {
                profiles.remove(missing.index(profiles.len()));
            }
        }
        let mut in_order = ReductionInOrder::default();
        for profile in &profiles {
            in_order.add(&crate::rank_file_name(profile.rank), profile);
        }
        let in_order = in_order.finish().finish().unwrap();
        let tree = tree(&profiles, 6).finish().unwrap();
        prop_assert_eq!(text(&in_order), text(&tree));
    }

    /// Also when the previous profile had other rows, or there was none.
    #[test]
    fn a_profile_that_is_read_into_the_place_of_another_is_the_same(
        ranks in changes_of(&extreme(), 1..10),
        damages in proptest::collection::vec(
            (any::<proptest::sample::Index>(), any::<u8>(), 0..6_u8), 10,
        ),
    ) {
        let mut reader = RankReader::default();
        for ((rank, changes), (at, byte, how)) in ranks.iter().zip(damages) {
            let mut bytes = serde_json::to_vec(&profile(*rank, changes)).unwrap();
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.truncate(at),
                2 => bytes.insert(at, byte),
                _ => {}
            }
            let in_place = reader.parse(&bytes).map(|profile| serde_json::to_string(profile).unwrap());
            let anew = parse_rank(&bytes).map(|profile| serde_json::to_string(&profile).unwrap());
            let words = |error: crate::ReadError| error.to_string();
            prop_assert_eq!(in_place.map_err(words), anew.map_err(words));
        }
    }

    #[test]
    fn a_profile_that_is_written_and_read_is_the_same(ranks in changes(&extreme())) {
        for (rank, changes) in ranks {
            let text = serde_json::to_vec(&profile(rank, &changes)).unwrap();
            // NaN is not equal to itself, its text is.
            let again = serde_json::to_vec(&parse_rank(&text).unwrap()).unwrap();
            prop_assert_eq!(String::from_utf8(text).unwrap(), String::from_utf8(again).unwrap());
        }
    }

    #[test]
    fn whatever_profiles_hold_their_summary_can_be_read(ranks in changes(&extreme())) {
        let text = written(&reduced(&ranks).finish().unwrap());
        let again = written(&parse_summary(&text).unwrap());
        prop_assert_eq!(String::from_utf8(text).unwrap(), String::from_utf8(again).unwrap());
    }
}

/// A reduction in the form in which it is sent to another rank.
fn sent(reduction: &Reduction) -> Vec<u8> {
    postcard::to_allocvec(reduction).unwrap()
}

proptest! {
    #[test]
    fn a_double_that_is_written_and_read_is_the_same(bits in any::<u64>()) {
        let double = crate::Number::Double(f64::from_bits(bits));
        let text = serde_json::to_string(&double).unwrap();
        let again: crate::Number = serde_json::from_str(&text).unwrap();
        if double.is_finite() {
            prop_assert_eq!(again.as_f64().to_bits(), bits);
        } else {
            prop_assert_eq!(serde_json::to_string(&again).unwrap(), text);
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused_with_one_line(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        fuzzed::rank_profile(&bytes);
    }

    #[test]
    fn a_live_file_is_refused_or_read_as_it_was_written(
        bytes in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        fuzzed_live::live_file(&bytes);
    }

    #[test]
    fn damaged_profiles_are_read_or_refused_with_one_line(
        damages in proptest::collection::vec(
            (any::<proptest::sample::Index>(), any::<u8>(), 0..4_u8), 1..4,
        ),
    ) {
        let mut bytes = EXAMPLE.as_bytes().to_vec();
        for (at, byte, how) in damages {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.truncate(at),
                2 => bytes.insert(at, byte),
                _ => _ = bytes.remove(at),
            }
        }
        fuzzed::rank_profile(&bytes);
    }

    #[test]
    fn values_of_another_kind_are_read_or_refused_with_one_line(
        place in any::<proptest::sample::Index>(),
        value in proptest::sample::select(extreme()),
        text in ".{0,300}",
        in_words in any::<bool>(),
    ) {
        let mut profile = example();
        let mut all = Vec::new();
        look_at(&profile, String::new(), &[], &mut all);
        let value = if in_words { Value::from(text) } else { value };
        *profile.pointer_mut(&place.get(&all).pointer).unwrap() = value;
        fuzzed::rank_profile(profile.to_string().as_bytes());
    }
}

#[test]
fn the_inputs_of_the_fuzzer_are_read_or_refused_with_one_line() {
    for (target, body) in
        [("rank_profile", fuzzed::rank_profile as fn(&[u8])), ("live_file", fuzzed_live::live_file)]
    {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
        let inputs: Vec<_> = fs::read_dir(corpus).unwrap().collect();
        assert!(!inputs.is_empty());
        for input in inputs {
            body(&fs::read(input.unwrap().path()).unwrap());
        }
    }
}
