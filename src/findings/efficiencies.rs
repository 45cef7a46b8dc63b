//! How well the time of the ranks was used: the efficiencies of POP, computed only from a summary.
//!
//! They do not split time in MPI into waiting and moving data, since that needs an ideal network to compare
//! with; and instructions and clock frequency are not counted.

use gyan_results::{Efficiencies, PhaseEfficiencies, Summary};

/// None when too little is known of the time in MPI, or there is a single rank: a balance needs two.
pub(crate) fn efficiencies(summary: &Summary) -> Option<Efficiencies> {
    let (run, useful) = (summary.run_s.as_ref()?, summary.useful_s.as_ref()?);
    // A lower bound of the time in MPI says nothing of what is left.
    let error_s = summary.in_mpi.as_ref()?.time_error_s?;
    let (run_s, most_s) = (run.max.as_f64(), useful.max.as_f64());
    if run.ranks < 2 || run_s <= 0.0 || most_s <= 0.0 {
        return None;
    }
    let phases = summary.phases.iter().filter_map(|phase| {
        let (time, useful) = (&phase.time_s, phase.useful_s.as_ref()?);
        let is_known = time.avg > 0.0 && useful.max.as_f64() > 0.0;
        is_known.then(|| PhaseEfficiencies {
            phase: phase.name.clone(),
            load_balance: part(useful.avg / useful.max.as_f64()),
            parallel: part(useful.avg / time.avg),
        })
    });
    Some(Efficiencies {
        load_balance: part(useful.avg / most_s),
        communication: part(most_s / run_s),
        parallel: part(useful.avg / run_s),
        parallel_error: Some(error_s / (run.ranks as f64 * run_s)).filter(|error| *error > 0.0),
        busiest_rank: useful.max_rank,
        phases: phases.collect(),
    })
}

fn part(part: f64) -> f64 {
    part.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use gyan_results::read_summary;
    use gyan_results::{Number, Statistic, Statistics};

    use super::*;

    fn statistic(values: &[f64]) -> Statistic {
        let mut statistics = Statistics::default();
        for (rank, value) in (0..).zip(values) {
            statistics.add(Number::Double(*value), rank);
        }
        statistics.finish().unwrap()
    }

    /// Of a run whose ranks take these times, of which they work so long.
    fn of_ranks(run: &[f64], useful: &[f64]) -> Option<Efficiencies> {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/results-schema/examples/summary.json");
        let mut summary = read_summary(example.as_ref()).unwrap();
        (summary.run_s, summary.useful_s) = (Some(statistic(run)), Some(statistic(useful)));
        summary.in_mpi.as_mut().unwrap().time_error_s = Some(0.0);
        efficiencies(&summary)
    }

    #[test]
    fn they_are_those_of_pop() {
        // In thousandths.
        let known = |run: &[f64], useful: &[f64]| {
            let of = of_ranks(run, useful).unwrap();
            [of.load_balance, of.communication, of.parallel].map(|of| format!("{:.0}", 1000.0 * of))
        };
        // One of four ranks works all the time, the others half of it.
        assert_eq!(known(&[10.0; 4], &[5.0, 5.0, 10.0, 5.0]), ["625", "1000", "625"]);
        // All of them work half of it.
        assert_eq!(known(&[10.0; 4], &[5.0; 4]), ["1000", "500", "500"]);
        // One ends early, and waits for the other after MPI_Finalize.
        assert_eq!(known(&[1.0, 3.0], &[1.0, 3.0]), ["667", "1000", "667"]);
        assert!(of_ranks(&[10.0], &[5.0]).is_none());
    }
}
