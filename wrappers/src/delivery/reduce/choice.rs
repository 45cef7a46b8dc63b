//! Which ranks write their profiles besides the summary?

use gyan_results::{Quantity, Statistic, Summary};
use wildmatch::WildMatch;

use super::tree::KEPT;

/// Rank 0, the ranks with the smallest and the largest value of what is `wanted`, and the one in the
/// `middle` of the times in MPI; at most as many as a message can name.
pub(super) fn ranks(summary: &Summary, wanted: &[String], middle: Option<u32>) -> Vec<u32> {
    let mut ranks = vec![0];
    for name in wanted {
        match name.as_str() {
            "time" => {
                ranks.extend(summary.in_mpi.iter().flat_map(|in_mpi| extremes(&in_mpi.time_s)));
                ranks.extend(middle);
            }
            "umq" => ranks.extend(longest_queue(summary)),
            name => {
                let name = WildMatch::new(name);
                let rows = summary.pvars.iter().filter(|row| name.matches(&row.name));
                ranks.extend(rows.flat_map(|row| extremes(&row.statistic)));
            }
        }
    }
    // The first named come first.
    let mut chosen: Vec<u32> = Vec::new();
    for rank in ranks {
        if !chosen.contains(&rank) && chosen.len() < KEPT {
            chosen.push(rank);
        }
    }
    chosen.sort_unstable();
    chosen
}

fn extremes(statistic: &Statistic) -> [u32; 2] {
    [statistic.max_rank, statistic.min_rank]
}

/// The rank whose queue of unexpected messages was longest, according to the best source.
fn longest_queue(summary: &Summary) -> Option<u32> {
    let rows = summary.queues();
    let row =
        rows.iter().find(|row| row.quantity == Quantity::UnexpectedLength && row.max.is_some());
    let longest = row?.max?;
    (longest.value > 0.0).then_some(longest.rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Summary {
        let text = include_str!("../../../../results-schema/examples/summary.json");
        serde_json::from_str(text).unwrap()
    }

    fn wanted(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn extreme_ranks_and_the_one_in_the_middle_are_chosen_once() {
        let mut summary = example();
        let time_s = &mut summary.in_mpi.as_mut().unwrap().time_s;
        (time_s.min_rank, time_s.max_rank) = (5, 9);
        assert_eq!(ranks(&summary, &wanted(&["time"]), Some(3)), [0, 3, 5, 9]);
        assert_eq!(ranks(&summary, &wanted(&["time"]), Some(9)), [0, 5, 9]);
        assert_eq!(ranks(&summary, &[], Some(9)), [0]);
        let row = &mut summary.pvars[0];
        (row.statistic.min_rank, row.statistic.max_rank) = (70, 80);
        let name = row.name.clone();
        assert_eq!(ranks(&summary, &wanted(&[&name]), None)[..], [0, 70, 80]);
    }

    #[test]
    fn no_more_are_chosen_than_can_be_named() {
        let mut summary = example();
        let row = summary.pvars[0].clone();
        summary.pvars = (0..200).map(|_| row.clone()).collect();
        for (at, row) in (1..).zip(&mut summary.pvars) {
            (row.statistic.min_rank, row.statistic.max_rank) = (at, at);
        }
        assert_eq!(ranks(&summary, &wanted(&["*"]), None).len(), KEPT);
    }
}
