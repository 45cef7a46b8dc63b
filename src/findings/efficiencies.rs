//! How well the time of the ranks was used: the efficiencies of POP, computed only from a summary.
//!
//! They do not split time in MPI into waiting and moving data, since that needs an ideal network to compare
//! with; and instructions and clock frequency are not counted.

use gyan_results::{Efficiencies, PhaseEfficiencies, Statistic, Summary};

/// Load balance, communication efficiency and parallel efficiency of ranks that take `time`, of which `in_mpi`
/// is in MPI. Only with more than one rank: a balance needs two.
fn of(time: &Statistic, in_mpi: &Statistic) -> Option<[f64; 3]> {
    let run_s = time.avg;
    let mean_s = time.avg - in_mpi.avg;
    // The rank with the least time in MPI has the most work, provided that all take the same time.
    let most_s = time.avg - in_mpi.min.as_f64();
    let is_known = time.ranks > 1 && in_mpi.ranks == time.ranks && run_s > 0.0 && most_s > 0.0;
    let part = |part: f64| part.clamp(0.0, 1.0);
    is_known.then(|| {
        let (balance, communication) = (part(mean_s / most_s), part(most_s / run_s));
        [balance, communication, balance * communication]
    })
}

/// None when no calls were timed, or there is a single rank.
pub(crate) fn efficiencies(summary: &Summary) -> Option<Efficiencies> {
    let (time, in_mpi) = (summary.elapsed_s.as_ref()?, summary.in_mpi.as_ref()?);
    let [load_balance, communication, parallel] = of(time, &in_mpi.time_s)?;
    let total_s = time.sum.as_f64();
    let phases = summary.phases.iter().filter_map(|phase| {
        let [load_balance, communication, parallel] = of(&phase.time_s, phase.in_mpi_s.as_ref()?)?;
        let phase = phase.name.clone();
        Some(PhaseEfficiencies { phase, load_balance, communication, parallel })
    });
    Some(Efficiencies {
        load_balance,
        communication,
        parallel,
        parallel_error: in_mpi
            .time_error_s
            .map(|error| error / total_s)
            .filter(|error| *error > 0.0),
        busiest_rank: in_mpi.time_s.min_rank,
        phases: phases.collect(),
    })
}

#[cfg(test)]
mod tests {
    use gyan_results::{Number, Statistics};

    use super::*;

    fn statistic(values: &[f64]) -> Statistic {
        let mut statistics = Statistics::default();
        for (rank, value) in (0..).zip(values) {
            statistics.add(Number::Double(*value), rank);
        }
        statistics.finish().unwrap()
    }

    #[test]
    fn they_are_those_of_pop() {
        // One of four ranks works all the time, the others half of it.
        let [balance, communication, parallel] =
            of(&statistic(&[10.0; 4]), &statistic(&[5.0, 5.0, 0.0, 5.0])).unwrap();
        assert!((balance - 0.625).abs() < 1e-9 && (communication - 1.0).abs() < 1e-9);
        assert!((parallel - 0.625).abs() < 1e-9);
        // All of them work half of it.
        let [balance, communication, _] =
            of(&statistic(&[10.0; 4]), &statistic(&[5.0; 4])).unwrap();
        assert!((balance - 1.0).abs() < 1e-9 && (communication - 0.5).abs() < 1e-9);
        assert!(of(&statistic(&[10.0]), &statistic(&[5.0])).is_none());
    }
}
