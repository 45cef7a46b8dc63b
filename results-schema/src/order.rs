//! Sorting, and collecting into sorted collections, for lists that are short or rarely sorted. The standard
//! library's functions compile to several kB per type, and libgyan.so would have dozens of copies.

use std::cmp::Ordering;

/// As [`slice::sort_by`].
pub fn sort_by<T>(list: &mut Vec<T>, compare: impl Fn(&T, &T) -> Ordering) {
    let mut places: Vec<usize> = (0..list.len()).collect();
    sort_places(&mut places, &|one, other| match (list.get(one), list.get(other)) {
        (Some(one), Some(other)) => compare(one, other),
        _ => Ordering::Equal,
    });
    let mut unsorted: Vec<Option<T>> = list.drain(..).map(Some).collect();
    list.extend(places.into_iter().filter_map(|place| unsorted.get_mut(place)?.take()));
}

#[inline(never)]
fn sort_places(places: &mut [usize], compare: &dyn Fn(usize, usize) -> Ordering) {
    places.sort_by(|one, other| compare(*one, *other));
}

/// As [`Iterator::collect`], one by one: of equal keys the last stays.
pub fn collected<C: Default + Extend<T>, T>(items: impl IntoIterator<Item = T>) -> C {
    let mut collection = C::default();
    collection.extend(items);
    collection
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_equal_stays_in_its_order() {
        let mut list = [(3, 'a'), (1, 'b'), (3, 'c'), (2, 'd'), (1, 'e')].map(Box::new).to_vec();
        sort_by(&mut list, |one, other| one.0.cmp(&other.0));
        assert_eq!(list, [(1, 'b'), (1, 'e'), (2, 'd'), (3, 'a'), (3, 'c')].map(Box::new));
        sort_by(&mut Vec::<u8>::new(), Ord::cmp);
    }
}
