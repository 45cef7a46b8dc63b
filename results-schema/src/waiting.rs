//! How long calls of collectives took: the same calls on all ranks of a communicator, so that waiting for others can be told
//! from what the call costs when all are there.

use crate::data::{Data, Serialize, apply, datum, derive};

/// Most durations of one function on one communicator that a profile holds.
pub const DURATIONS_AT_MOST: usize = 1024;

/// For whom ranks wait in a collective operation, by how its data depend on each other (MPI 4.1, 6.4 to 6.12).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WaitsFor {
    /// Each for all others: no rank leaves it before all have entered.
    All,
    /// Each for the root, from which the data come.
    Root,
    /// The root for all others, whose data it gets.
    AtRoot,
    /// Each for those with a lower rank.
    Lower,
}

impl WaitsFor {
    /// By the name of a function in C that gyan compares between ranks.
    pub fn in_function(name: &str) -> WaitsFor {
        match name.strip_suffix("_c").unwrap_or(name) {
            "MPI_Bcast" | "MPI_Scatter" | "MPI_Scatterv" | "MPI_Ibcast" | "MPI_Iscatter"
            | "MPI_Iscatterv" => WaitsFor::Root,
            "MPI_Gather" | "MPI_Gatherv" | "MPI_Reduce" | "MPI_Igather" | "MPI_Igatherv"
            | "MPI_Ireduce" => WaitsFor::AtRoot,
            "MPI_Exscan" | "MPI_Scan" | "MPI_Iexscan" | "MPI_Iscan" => WaitsFor::Lower,
            _ => WaitsFor::All,
        }
    }

    /// Whether waiting in such a function is known only by when its calls began. Else the call itself says it: each rank waits in
    /// it for all others.
    pub fn is_known_by_starts(name: &str) -> bool {
        only_starts(name) || WaitsFor::in_function(name) != WaitsFor::All
    }
}

/// Whether a function that gyan compares between ranks only starts an operation: ranks wait in the call that completes its request.
pub fn only_starts(name: &str) -> bool {
    name.starts_with("MPI_I")
}

/// Calls of one collective function on one communicator, and how long some of them took: the same calls on every rank of the
/// communicator.
///
/// The calls are numbered from 0, alike on every rank. In each block of `2^level` calls that begins at a
/// multiple of `2^level`, one was timed; which one depends on nothing else (`docs/developers/internals.md`).
#[derive(Data!, Serialize, Default, Eq)]
pub struct Waiting {
    /// The function's name in C.
    pub function: String,
    /// The name of the communicator in MPI, or of the window, or its size in words.
    pub communicator: String,
    /// A hash of its ranks in `MPI_COMM_WORLD`, in their order: 16 hexadecimal digits.
    pub members: String,
    /// Which of the communicators with these members, from 0, in the order of their first use for such a call;
    /// the last one stands for all further ones.
    pub ordinal: u32,
    /// Its number of ranks.
    pub size: u32,
    /// The exact number of calls.
    pub calls: u64,
    /// One call in `2^level` was timed; 0 for every one.
    pub level: u32,
    /// How long they took, or the calls that completed the operations if these only start them, in ns, two characters each: the
    /// first is the exponent `e`, the second the fraction `f`, as places in `A-Za-z0-9-_`; `f` ns where `e` is 0, else
    /// `(64 + f) * 2^(e - 1)` ns. Exact below 128 ns, and else within 0.8 %. `AA` for a call whose time is not known.
    pub times_ns: String,
    /// When calls began; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<CallStarts>,
}

/// When calls began, on a clock that the ranks of a host share.
#[derive(Data!, Serialize, Default, Eq)]
pub struct CallStarts {
    /// This rank in the communicator.
    pub rank: u32,
    /// A number of the clock.
    pub clock: String,
    /// One call in `2^level` is here, chosen as those that are timed: at least as high as their level.
    pub level: u32,
    /// The roots of these calls, as ranks of the communicator, each with the number of calls in a row that have it. Empty for
    /// functions without a root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<(u32, u32)>,
    /// When they began, in units of 64 ns: for each call 0 if that is not known, else 1 more than the time since the one before
    /// it. Each number has 5 bits in each of its places in `A-Za-z0-9-_`, the lowest first; 32 is added to all but its last.
    pub begun: String,
    /// Of functions that only start an operation, when the calls began that completed it: for each call 0 if that is not known,
    /// else 1 more than the time since this one began. Written like `begun`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub waits: String,
}

impl CallStarts {
    /// Most calls of one function on one communicator of `size` ranks. Those of all ranks are in memory, and in the last
    /// Most calls of one function on one communicator of `size` ranks. Those of all ranks are in memory, and in the last
    /// messages of a reduction inside MPI, before they are compared. Where the call itself says how long a rank waits, they only
    /// have to tell how clocks differ, and about when calls were.
    pub fn at_most(size: u32, function: &str) -> usize {
        const OF_ALL_RANKS: usize = 1 << 17;
        let most = if WaitsFor::is_known_by_starts(function) { 512 } else { 128 };
        (OF_ALL_RANKS / (size as usize).max(1)).next_power_of_two().clamp(8, most)
    }

    /// Encodes times in ns as `begun`. A call that began before the one before it is not known.
    pub fn written(times: impl IntoIterator<Item = Option<u64>>) -> String {
        let (mut text, mut before) = (String::new(), 0);
        for ns in times {
            let unit = ns.map(|ns| ns / NS_PER_UNIT).filter(|unit| *unit >= before);
            write_number(&mut text, unit.map_or(0, |unit| unit - before + 1));
            before = unit.unwrap_or(before);
        }
        text
    }

    /// Decodes the times in `begun`, in ns.
    pub fn times(&self) -> impl Iterator<Item = Option<u64>> {
        let mut before: u64 = 0;
        let all = written_numbers(&self.begun).map(move |number| {
            let since = number.checked_sub(1);
            let time = since.and_then(|since| before.checked_add(since));
            before = time.unwrap_or(before);
            time.and_then(|unit| unit.checked_mul(NS_PER_UNIT))
        });
        all.take(DURATIONS_AT_MOST)
    }

    /// Encodes as `waits` when calls began, in ns, that completed what the calls started that `began` then.
    pub fn written_waits(
        began: impl IntoIterator<Item = Option<u64>>,
        waits: impl IntoIterator<Item = Option<u64>>,
    ) -> String {
        let mut text = String::new();
        for (began, waits) in began.into_iter().zip(waits) {
            // So that the sum is in whole units, and the same for all that one call completes.
            let since =
                |(began, waits): (u64, u64)| (waits / NS_PER_UNIT).checked_sub(began / NS_PER_UNIT);
            write_number(&mut text, began.zip(waits).and_then(since).map_or(0, |since| since + 1));
        }
        text
    }

    /// When each rank began to wait, in ns: in the call itself, unless that only starts the operation.
    pub fn times_of_waits(&self) -> impl Iterator<Item = Option<u64>> {
        let mut waits = (!self.waits.is_empty()).then(|| written_numbers(&self.waits));
        self.times().map(move |began| match &mut waits {
            None => began,
            Some(numbers) => {
                let since = numbers.next()?.checked_sub(1)?.checked_mul(NS_PER_UNIT)?;
                began?.checked_add(since)
            }
        })
    }

    /// The root of each call.
    pub fn root_of_each(&self) -> impl Iterator<Item = u32> {
        let each = |&(calls, root): &(u32, u32)| std::iter::repeat_n(root, calls as usize);
        self.roots.iter().flat_map(each).take(DURATIONS_AT_MOST)
    }
}

/// Appends a number: 5 bits in each of its places, the lowest first; 32 is added to all but its last.
pub(crate) fn write_number(text: &mut String, mut number: u64) {
    while number >= MORE {
        text.push(digit(MORE + number % MORE));
        number /= MORE;
    }
    text.push(digit(number));
}

/// The numbers in a text that [`write_number`] has written.
pub(crate) fn written_numbers(text: &str) -> impl Iterator<Item = u64> {
    let (mut number, mut shift): (u64, u32) = (0, 0);
    text.bytes().filter_map(place).filter_map(move |place| {
        number |= (place % MORE).checked_shl(shift).unwrap_or(0);
        if place >= MORE {
            shift = shift.saturating_add(BITS);
            return None;
        }
        shift = 0;
        Some(std::mem::take(&mut number))
    })
}

/// The unit of times in a profile.
pub(crate) const NS_PER_UNIT: u64 = 64;
const BITS: u32 = 5;
const MORE: u64 = 1 << BITS;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Larger ones are several hundred years.
const EXPONENT_AT_MOST: u32 = 56;

impl Waiting {
    /// Encodes durations in ns as `times_ns`; none for one that is not known.
    pub fn written(durations: impl IntoIterator<Item = Option<u64>>) -> String {
        let digits = durations.into_iter().flat_map(|ns| {
            let [exponent, fraction] = ns.map_or([0, 0], |ns| split(ns.max(1)));
            [digit(exponent), digit(fraction)]
        });
        digits.collect()
    }

    /// Decodes the durations in ns in `times_ns`.
    pub fn durations(&self) -> impl Iterator<Item = Option<u64>> {
        let pairs = self.times_ns.as_bytes().chunks_exact(2).take(DURATIONS_AT_MOST);
        pairs.map(|pair| {
            let [exponent, fraction] = *pair.first_chunk()?;
            let (exponent, fraction) = (u32::try_from(place(exponent)?).ok()?, place(fraction)?);
            match exponent.checked_sub(1) {
                None => Some(fraction).filter(|ns| *ns > 0),
                Some(shift) => Some((64 + fraction) << shift.min(EXPONENT_AT_MOST)),
            }
        })
    }

    /// The number of the call that is timed in block `block` at `level`. It is the timed one of either half of
    /// the block.
    pub fn timed_call(level: u32, block: u64) -> u64 {
        (1..=level).rev().fold(block, |block, level| 2 * block + later_half(level, block))
    }

    /// Keeps, of the calls timed at `level`, those that the next level times.
    pub fn thin<T: Clone>(timed: &mut Vec<T>, level: u32) {
        let half = |block: usize| {
            let later = usize::from(later_half(level + 1, block as u64) == 1);
            timed.get(2 * block + later).cloned()
        };
        *timed = (0..timed.len()).map_while(half).collect();
    }
}

/// 0 if the first half of block `block` contains the timed call, 1 if the second does: pseudo-random, so that
/// the timed calls have no period that a program could share (splitmix64).
fn later_half(level: u32, block: u64) -> u64 {
    let mut bits = block.wrapping_mul(64).wrapping_add(level.into());
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits >> 63) & 1
}

/// The nearest number that can be encoded: exponent and fraction.
fn split(ns: u64) -> [u64; 2] {
    if ns < 64 {
        return [0, ns];
    }
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(7);
    let half = (1_u64 << shift) >> 1;
    let (shift, parts) = match ns.saturating_add(half) >> shift {
        128 => (shift + 1, 64),
        parts => (shift, parts),
    };
    if shift > EXPONENT_AT_MOST {
        return [u64::from(EXPONENT_AT_MOST) + 1, 63];
    }
    [u64::from(shift) + 1, parts - 64]
}

fn digit(place: u64) -> char {
    let place = usize::try_from(place).unwrap_or(0);
    DIGITS.get(place).copied().unwrap_or(b'_').into()
}

fn place(digit: u8) -> Option<u64> {
    u64::try_from(DIGITS.iter().position(|known| *known == digit)?).ok()
}

/// One function over ranks: how much of its time is waiting for the ranks that came last.
///
/// When a call in which all wait for all was timed on all ranks of a communicator, the shortest time is about what it takes
/// once all have come (transfer); the extra time of the others is waiting. In other functions a rank waits until those have
/// begun the call that it needs data of (see [`WaitsFor`]). The time of all calls is divided in the proportion found for the
/// timed calls.
///
/// Of functions that only start an operation, the time is that in the calls that complete it, and the timed ones stand for the others by
/// their number. Of several operations that one call completes, that for which the rank waits longest has its time.
#[derive(Data!, Serialize, Default)]
pub struct WaitingSummary {
    /// The function's name in C.
    pub function: String,
    /// The calls on communicators that are compared, on all ranks together.
    pub calls: u64,
    /// The calls that are not compared: on communicators that a rank or the summary had no room for, or that
    /// have only one rank.
    pub calls_not_compared: u64,
    /// Seconds in `calls`, on all ranks together: waiting and transfer.
    pub time_s: f64,
    /// Seconds of that in which ranks waited for others; a lower bound if ranks are missing.
    pub waiting_s: f64,
    /// The standard error of `waiting_s`; 0 when all calls were timed, none when the timed calls cannot tell
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_error_s: Option<f64>,
    /// Whether ranks are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ranks_missing: bool,
    /// The ranks for which others waited longest.
    pub last: Vec<LastRank>,
    /// By communicator, the longest waiting first.
    pub communicators: Vec<CommunicatorWaiting>,
}

/// The same for one communicator.
#[apply(datum!)]
#[derive(Default)]
pub struct CommunicatorWaiting {
    /// Its name according to its lowest rank.
    pub communicator: String,
    /// As in the profiles.
    pub members: String,
    /// As in the profiles.
    pub ordinal: u32,
    /// Its number of ranks.
    pub size: u32,
    /// Its ranks in `MPI_COMM_WORLD` that are included, as `0-3,8`.
    pub ranks: String,
    /// The calls, on all ranks together.
    pub calls: u64,
    /// How many calls were timed on every rank.
    pub compared: u64,
    /// As for the function.
    pub time_s: f64,
    /// As for the function.
    pub waiting_s: f64,
    /// As for the function.
    pub waiting_error_s: Option<f64>,
    /// The ranks for which others waited longest.
    pub last: Vec<LastRank>,
    /// How the waiting of its ranks differs; none unless each of them timed the same calls.
    pub of_ranks: Option<WaitingOfRanks>,
}

/// How long the ranks of a communicator waited, each for all others. The average corresponds to `waiting_s`.
#[derive(Data!, Serialize, Copy, Default)]
pub struct WaitingOfRanks {
    /// Seconds that the rank with the least waiting waited.
    pub min_s: f64,
    /// The lowest rank in `MPI_COMM_WORLD` that has the minimum.
    pub min_rank: u32,
    /// Seconds that a rank waited on average.
    pub avg_s: f64,
    /// Seconds that the rank with the most waiting waited.
    pub max_s: f64,
    /// The lowest rank in `MPI_COMM_WORLD` that has the maximum.
    pub max_rank: u32,
}

/// A rank that came last in calls.
#[derive(Data!, Serialize, Default)]
pub struct LastRank {
    /// The rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// The share of the calls in which it came last, among those that were timed on every rank.
    pub calls_share: f64,
    /// The share of the waiting in those calls.
    pub waiting_share: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(times_ns: String) -> Vec<Option<u64>> {
        Waiting { times_ns, ..Waiting::default() }.durations().collect()
    }

    #[test]
    fn durations_are_exact_below_128_ns_and_within_one_in_128_above() {
        for ns in 1..128 {
            assert_eq!(read(Waiting::written([Some(ns)])), [Some(ns)]);
        }
        let mut ns = 128_u64;
        while ns < u64::MAX / 512 {
            let there = read(Waiting::written([Some(ns)]))[0].unwrap();
            assert!(there.abs_diff(ns) <= ns / 128, "{ns} {there}");
            ns += 1 + ns / 77;
        }
        let written = Waiting::written([None, Some(0), Some(u64::MAX), Some(1_000_000)]);
        assert_eq!(written, "AAAB5_O6");
        assert_eq!(read(written), [None, Some(1), Some(127 << 56), Some(999_424)]);
    }

    #[test]
    fn what_is_no_duration_is_not_known() {
        assert_eq!(read("A!AB\u{e4}A".into())[..3], [None, Some(1), None]);
        assert_eq!(read("__".into()), [Some(127 << 56)]);
        assert_eq!(read("AB".repeat(3000)).len(), DURATIONS_AT_MOST);
        assert_eq!(read("A".into()), []);
    }

    #[test]
    fn the_calls_that_are_timed_are_one_of_each_part_and_of_those_of_the_level_below() {
        for level in 0..12 {
            let calls = |level| (0..300_u64).map(move |block| Waiting::timed_call(level, block));
            for (block, call) in calls(level).enumerate() {
                assert_eq!(call >> level, block as u64);
            }
            if level > 0 {
                let below: Vec<u64> = calls(level - 1).collect();
                assert!(calls(level).take(150).all(|call| below.contains(&call)));
            }
        }
        assert!((0..100).all(|call| Waiting::timed_call(0, call) == call));
    }

    #[test]
    fn thinning_keeps_the_calls_of_the_next_level() {
        for calls in [0, 1, 2, 5, 1000] {
            let mut timed: Vec<u64> = (0..calls).collect();
            for level in 0..8 {
                Waiting::thin(&mut timed, level);
                let of_next = (0..).map(|block| Waiting::timed_call(level + 1, block));
                let expected: Vec<u64> = of_next.take_while(|call| *call < calls).collect();
                assert_eq!(timed, expected);
            }
        }
    }

    #[test]
    fn calls_with_a_period_are_not_always_timed_at_the_same_place_of_it() {
        let timed = (0..512).map(|block| Waiting::timed_call(5, block) % 4);
        let mut places = [0; 4];
        for place in timed {
            places[usize::try_from(place).unwrap()] += 1;
        }
        assert!(places.iter().all(|times| (64..=192).contains(times)), "{places:?}");
    }

    #[test]
    fn starts_are_read_as_they_were_written_to_a_unit() {
        let base = 987_654_321_012_345;
        let all = [None, Some(base), Some(base + 63), None, Some(base + 1_000_000_000), Some(5)];
        let starts = CallStarts { begun: CallStarts::written(all), ..CallStarts::default() };
        let read: Vec<_> = starts.times().collect();
        let unit = |ns: u64| Some(ns / 64 * 64);
        let late = unit(base + 1_000_000_000);
        // The last one would have begun before the others.
        assert_eq!(read, [None, unit(base), unit(base + 63), None, late, None]);
        // A loop of 10 ms takes four places a call.
        let regular = CallStarts::written((0..128).map(|call| Some(base + call * 10_000_000)));
        assert!(regular.len() <= 4 * 127 + 11, "{}", regular.len());
        for damaged in ["", "_", "____________________", "!A", "A_A"] {
            let starts = CallStarts { begun: damaged.into(), ..CallStarts::default() };
            assert!(starts.times().count() <= damaged.len());
        }
        let roots = CallStarts { roots: vec![(2, 7), (1, 0)], ..CallStarts::default() };
        assert_eq!(roots.root_of_each().collect::<Vec<_>>(), [7, 7, 0]);
        let at_most = |size| CallStarts::at_most(size, "MPI_Bcast");
        assert_eq!([2, 10_000, 100_000].map(at_most), [512, 16, 8]);
        let at_most = |function| CallStarts::at_most(2, function);
        assert_eq!(["MPI_Barrier", "MPI_Ibarrier_c"].map(at_most), [128, 512]);
    }

    #[test]
    fn when_ranks_wait_is_read_in_the_units_of_when_they_began() {
        let base = 987_654_321_012_345;
        // The second one is completed first; the last one not at all.
        let begun = [Some(base), Some(base + 100), None, Some(base + 500)];
        let waits = [Some(base + 9_000_000), Some(base + 777), Some(base + 1), None];
        let starts = CallStarts {
            begun: CallStarts::written(begun),
            waits: CallStarts::written_waits(begun, waits),
            ..CallStarts::default()
        };
        let unit = |ns: u64| Some(ns / 64 * 64);
        let read: Vec<_> = starts.times_of_waits().collect();
        assert_eq!(read, [unit(base + 9_000_000), unit(base + 777), None, None]);
        let blocking = CallStarts { waits: String::new(), ..starts };
        assert!(blocking.times_of_waits().eq(blocking.times()));
    }
}
