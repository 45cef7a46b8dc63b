//! What PERUSE leaves out makes no queue longer: `peruse_odd` does all that Open MPI says too little of.

use crate::common::{OPENMPI_SPC, Profiled};
use gyan_results::{Metric, Traffic};

#[test]
fn what_the_library_leaves_out_makes_no_queue_longer() {
    let settings = [("OMPI_MCA_pml", "ob1"), ("GYAN_EVENTS", "peruse")];
    let run = Profiled::run(OPENMPI_SPC, 2, &["peruse_odd", "plain"], &settings);
    assert_eq!(run.outcome.code, 0, "{}", run.outcome.stderr);
    let profile = &run.profiles()[0];
    let of_program = |metric: Metric| {
        let mut rows = profile.messages[0].metrics.iter();
        let row = rows.find(|row| row.metric == metric && row.traffic == Traffic::Program);
        row.map_or((0, 0.0), |row| (row.n, row.max))
    };
    let (_, unexpected) = of_program(Metric::NUnexQLen);
    let (posted, longest) = of_program(Metric::NPostedQLen);
    assert_eq!((posted, of_program(Metric::TInPostedQ).0), (21, 21));
    assert!((longest - 7.0).abs() < 1e-9, "{longest} receives were posted");
    assert!((unexpected - 6.0).abs() < 1e-9, "{unexpected} messages were unexpected");
}
