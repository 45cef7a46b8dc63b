//! A set of ranks or processors as ranges: a job with all of its ranks has one.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Ranges in order, with gaps between them; the first and last number of each.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Ranges(Vec<(u32, u32)>);

impl Ranges {
    pub(crate) fn of(number: u32) -> Ranges {
        Ranges(vec![(number, number)])
    }

    pub(crate) fn between(first: u32, last: u32) -> Ranges {
        Ranges(vec![(first, last)])
    }

    pub(crate) fn set(&mut self, number: u32) {
        self.0.clear();
        self.0.push((number, number));
    }

    /// The first number and the last of each range.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().copied()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many numbers are in it.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|(first, last)| u64::from(last - first) + 1).sum()
    }

    /// Whether a number is in it.
    pub fn contains(&self, number: u32) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= number);
        after.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|(_, last)| number <= *last)
    }

    /// Each number, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// The lowest number that both contain.
    pub(crate) fn common(&self, other: &Ranges) -> Option<u32> {
        let (mut own, mut others) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some((first, last)), Some((other_first, other_last))) =
            (own.peek(), others.peek())
        {
            let lowest = *first.max(other_first);
            if lowest <= *last.min(other_last) {
                return Some(lowest);
            }
            if last < other_last {
                own.next()
            } else {
                others.next()
            };
        }
        None
    }

    /// Adds the numbers of another set.
    pub fn extend(&mut self, other: &Ranges) {
        let is_after =
            self.0.last().zip(other.0.first()).is_none_or(|(own, other)| own.1 < other.0);
        self.0.extend_from_slice(&other.0);
        if !is_after {
            self.0.sort_unstable();
        }
        self.0.dedup_by(|next, range| {
            let is_one = next.0 <= range.1.saturating_add(1);
            if is_one {
                range.1 = range.1.max(next.1);
            }
            is_one
        });
    }

    /// The numbers that are not in another set.
    #[must_use]
    pub fn without(&self, other: &Ranges) -> Ranges {
        let mut left = Vec::new();
        for &(first, last) in &self.0 {
            // The next number to handle; none after the largest possible one.
            let mut from = Some(first);
            let others = other.0.iter().filter(|other| other.0 <= last && first <= other.1);
            for &(other_first, other_last) in others {
                if let Some(from) = from.filter(|from| *from < other_first) {
                    left.push((from, other_first - 1));
                }
                from = other_last.checked_add(1);
            }
            left.extend(from.filter(|from| *from <= last).map(|from| (from, last)));
        }
        Ranges(left)
    }
}

impl FromIterator<u32> for Ranges {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Ranges {
        let mut ranges = Ranges::default();
        for number in numbers {
            ranges.extend(&Ranges::of(number));
        }
        ranges
    }
}

/// Parses the form that the kernel uses, too: `0-3,8`. Anything that is not a range is skipped.
impl FromStr for Ranges {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Ranges, Infallible> {
        let mut ranges = Ranges::default();
        for range in text.trim().split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            if let (Ok(first), Ok(last)) = (first.parse(), last.parse())
                && first <= last
            {
                ranges.extend(&Ranges(vec![(first, last)]));
            }
        }
        Ok(ranges)
    }
}

/// As `0-3,8`.
impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { "," } else { "" })?;
            if first == last { write!(f, "{first}")? } else { write!(f, "{first}-{last}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ranks_that_follow_each_other_are_one_range_in_whichever_order_they_come() {
        for order in [[0, 1, 2, 3, 4, 7], [7, 4, 3, 2, 1, 0], [2, 0, 4, 7, 1, 3]] {
            let mut set = Ranges::default();
            let mut expected = BTreeSet::new();
            for rank in order {
                assert_eq!(set.common(&Ranges::of(rank)), None);
                set.extend(&Ranges::of(rank));
                expected.insert(rank);
                assert!(set.iter().eq(expected.iter().copied()), "{set:?}");
                assert!((0..9).all(|rank| set.contains(rank) == expected.contains(&rank)));
                assert_eq!(set.len(), expected.len() as u64);
            }
            assert_eq!(set.0, [(0, 4), (7, 7)]);
            assert_eq!(set.to_string(), "0-4,7");
            let other = Ranges(vec![(5, 6), (7, 9)]);
            assert_eq!((set.common(&other), other.common(&set)), (Some(7), Some(7)));
        }
    }

    #[test]
    fn the_largest_number_has_none_after_it() {
        let mut set = Ranges::of(u32::MAX);
        set.extend(&Ranges::of(0));
        assert_eq!(set.0, [(0, 0), (u32::MAX, u32::MAX)]);
    }

    #[test]
    fn text_is_read_as_it_is_written_and_what_is_no_range_is_passed_over() {
        for (text, expected) in [
            ("0-3,8", "0-3,8"),
            ("8,0-3\n", "0-3,8"),
            ("2-5,4-9,1", "1-9"),
            ("", ""),
            ("5-3,x,-1,7", "7"),
            ("0-4294967295", "0-4294967295"),
        ] {
            let ranges: Ranges = text.parse().unwrap();
            assert_eq!(ranges.to_string(), expected, "{text}");
        }
        assert_eq!([3, 1, 2, 7, 3].into_iter().collect::<Ranges>().to_string(), "1-3,7");
    }

    #[test]
    fn what_is_left_of_a_set_without_another_is_what_is_in_the_first_only() {
        for one in ["0-9", "3,5-8", "", "0-4294967295", "4294967295"] {
            for other in ["0-9", "2-3,6", "", "0,9-20", "5-4294967295", "4294967295"] {
                let [one, other]: [Ranges; 2] = [one, other].map(|text| text.parse().unwrap());
                let left = one.without(&other);
                for number in (0..25).chain([u32::MAX - 1, u32::MAX]) {
                    let expected = one.contains(number) && !other.contains(number);
                    assert_eq!(
                        left.contains(number),
                        expected,
                        "{number} in {one} without {other}"
                    );
                }
            }
        }
    }
}
