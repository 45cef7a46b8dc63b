//! Variables that are bound to communicators and windows, from their creation to their end.

use std::collections::BTreeSet;

use gyan_results::{Pvar, RankProfile};

use crate::common::{Mpi, OPENMPI, OPENMPI_SPC, OPENMPI5, Profiled, elements};

const WITH_OBJECTS: [Mpi; 3] = [OPENMPI, OPENMPI5, OPENMPI_SPC];
const UNEXPECTED: &str = "pml_ob1_unexpected_msgq_length";

fn objects(profile: &RankProfile, name: &str) -> BTreeSet<String> {
    let of_name = profile.pvars.iter().filter(|pvar| pvar.name == name);
    of_name.map(|pvar| pvar.object.clone().unwrap()).collect()
}

fn of_object<'a>(profile: &'a RankProfile, name: &str, object: &str) -> &'a Pvar {
    let found = profile
        .pvars
        .iter()
        .find(|pvar| pvar.name == name && pvar.object.as_deref() == Some(object));
    found.unwrap_or_else(|| panic!("rank {}: no {name} of {object}", profile.rank))
}

#[test]
fn variables_of_communicators_and_windows_are_read_as_long_as_these_live() {
    for mpi in WITH_OBJECTS {
        let run = Profiled::run(mpi, 4, &["objects"], &[("OMPI_MCA_pml", "ob1")]);
        assert_eq!(run.outcome.code, 0, "{mpi:?} {}", run.outcome.stderr);
        for profile in run.profiles() {
            let expected = [
                "MPI_COMM_WORLD",
                "solver",
                // MPI_Comm_idup, MPI_Comm_create, MPI_Cart_create, the graph, the merged one; the
                // first number is that of "solver", which got its name later.
                "communicator of 4 ranks #2",
                "communicator of 4 ranks #3",
                "communicator of 4 ranks #4",
                "communicator of 4 ranks #5",
                "communicator of 4 ranks #6",
                "communicator of 2 ranks",
            ];
            let found = objects(&profile, UNEXPECTED);
            assert_eq!(found, expected.map(String::from).into(), "{mpi:?} rank {}", profile.rank);
            let solver = of_object(&profile, UNEXPECTED, "solver");
            assert_eq!(elements(solver.start.as_ref()).len(), 4);
            let unexpected: Vec<f64> =
                elements(solver.end.as_ref()).iter().map(|number| number.as_f64()).collect();
            let three = if profile.rank == 0 { 3.0 } else { 0.0 };
            assert_eq!(unexpected, [0.0, three, 0.0, 0.0], "{mpi:?} rank {}", profile.rank);
            // The windows of its own kind are the only ones that the component can answer for.
            let windows = objects(&profile, "osc_rdma_put_retry_count");
            assert!(windows.len() <= 1, "{mpi:?} {windows:?}");
            assert!(profile.coverage.objects.is_empty());
        }
    }
}

#[test]
fn more_objects_than_the_limit_are_said_to_be_left_out() {
    let settings = [("OMPI_MCA_pml", "ob1"), ("GYAN_OBJECTS", "10")];
    let run = Profiled::run(OPENMPI, 4, &["objects", "30"], &settings);
    assert_eq!(run.outcome.code, 0, "{}", run.outcome.stderr);
    for profile in run.profiles() {
        // "solver" lives, so 9 more of the 30 are followed. 10 that were freed are kept: 6
        // communicators, the window, and 3 of the 9.
        let said = profile.coverage.objects.join("\n");
        assert!(said.contains("21 communicators not followed"), "{said}");
        assert!(said.contains("GYAN_OBJECTS"), "{said}");
        assert!(said.contains("objects that were freed are not kept"), "{said}");
        assert_eq!(objects(&profile, UNEXPECTED).len(), 2 + 6 + 3);
    }
}

#[test]
fn what_a_library_registers_with_the_first_window_is_read() {
    let run = Profiled::run(crate::common::MPICH_PVARS, 4, &["objects"], &[]);
    assert_eq!(run.outcome.code, 0, "{}", run.outcome.stderr);
    for profile in run.profiles() {
        assert!(profile.coverage.exported > 40, "{}", profile.coverage.exported);
        assert_eq!(profile.coverage.sampled, profile.coverage.exported);
    }
}
