//! Variables that are bound to communicators and windows, from their creation to their end.

use std::collections::BTreeSet;

use gyan_results::{Pvar, RankProfile};

use crate::common::{Mpi, OPENMPI, OPENMPI_SPC, OPENMPI5, Profiled, elements};

const WITH_OBJECTS: [Mpi; 3] = [OPENMPI, OPENMPI5, OPENMPI_SPC];
const NO_LIMIT: (&str, &str) = ("GYAN_BUDGET", "none");
const OB1: (&str, &str) = ("OMPI_MCA_pml", "ob1");
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
        let run = Profiled::run(mpi, 4, &["objects"], &[OB1, NO_LIMIT]).succeeded();
        for profile in run.profiles() {
            let expected = [
                "MPI_COMM_WORLD",
                "solver",
                // MPI_Comm_idup, MPI_Comm_create, MPI_Cart_create, the graph, the merged one; the first number
                // belongs to "solver", which got its name later.
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
    let settings = [OB1, NO_LIMIT, ("GYAN_OBJECTS", "10")];
    let run = Profiled::run(OPENMPI, 4, &["objects", "30"], &settings).succeeded();
    for profile in run.profiles() {
        // "solver" lives, so 9 more of the 30 are followed. 10 that were freed are kept.
        let [not_followed, others @ ..] = &profile.coverage.objects[..] else {
            panic!("rank {}: nothing is left out", profile.rank)
        };
        assert_eq!(
            (not_followed.what.as_str(), not_followed.number),
            ("communicator of 1 rank", 21)
        );
        assert!(not_followed.reason.contains("GYAN_OBJECTS"), "{}", not_followed.reason);
        assert!(others.iter().all(|of| of.reason.contains("not kept")), "{others:?}");
        let left_out: u64 = others.iter().map(|of| of.number).sum();
        assert!((5..=6).contains(&left_out), "{others:?}");
        assert!(objects(&profile, UNEXPECTED).len() <= 2 + 10);
    }
}

/// The numbers of the communicators of `churn` that are in the profile, and how many are not: because of the
/// budget, and because only some are kept.
fn kept_and_left_out(profile: &RankProfile) -> (BTreeSet<u32>, u64, u64) {
    let step = |name: &String| Some(name.strip_prefix("step ")?.parse().unwrap());
    let kept = objects(profile, UNEXPECTED).iter().filter_map(step).collect();
    let comms = profile.coverage.objects.iter().filter(|of| of.what == "communicator of 1 rank");
    let number = |why| comms.clone().filter(|of| of.reason.contains(why)).map(|of| of.number).sum();
    (kept, number("GYAN_BUDGET"), number("not kept"))
}

#[test]
fn objects_that_come_and_go_are_in_the_profile_or_counted_as_left_out() {
    const STEPS: u32 = 400;
    for mpi in WITH_OBJECTS {
        // What a budget does is the same with each.
        let budgets = if mpi == OPENMPI { 3 } else { 1 };
        for budget in ["none", "0.5%", "0.000001%"].into_iter().take(budgets) {
            let settings = [OB1, ("GYAN_BUDGET", budget)];
            let profiled =
                Profiled::run(mpi, 2, &["churn", &STEPS.to_string()], &settings).succeeded();
            for profile in profiled.profiles() {
                let what = format!("{mpi:?} {budget}: {:?}", profile.coverage.objects);
                for name in ["MPI_Comm_dup", "MPI_Comm_free", "MPI_Win_create", "MPI_Win_free"] {
                    let call = profile.calls.iter().find(|call| call.name == name).unwrap();
                    assert_eq!(call.count, u64::from(STEPS), "{name} {what}");
                }
                let (kept, unread, not_kept) = kept_and_left_out(&profile);
                assert_eq!(kept.len() as u64 + unread + not_kept, u64::from(STEPS), "{what}");
                match budget {
                    "none" => {
                        assert_eq!(unread, 0, "{what}");
                        assert!(kept.len() <= 64, "{what}");
                        // If all had the same chance, each half has about equally many.
                        let late = kept.iter().filter(|step| **step >= STEPS / 2).count();
                        assert!(late > kept.len() / 5, "{late} of {kept:?}");
                    }
                    "0.5%" => assert!(!kept.is_empty(), "{what}"),
                    _ => assert_eq!(unread, u64::from(STEPS) - 1, "{what}"),
                }
            }
            if budget == "0.000001%" {
                let report = crate::common::report(&profiled.directory, &["--coverage"]).stdout;
                let words: Vec<&str> = report.split_whitespace().collect();
                let left_out = format!("{} communicators of 1 rank", STEPS - 1);
                for said in [left_out.as_str(), "not read: they came faster than"] {
                    assert!(words.join(" ").contains(said), "{report}");
                }
            }
        }
    }
}

#[test]
fn what_a_library_registers_with_the_first_window_is_read() {
    let run = Profiled::run(crate::common::MPICH_PVARS, 4, &["objects"], &[]).succeeded();
    for profile in run.profiles() {
        assert!(profile.coverage.exported > 40, "{}", profile.coverage.exported);
        assert_eq!(profile.coverage.sampled, profile.coverage.exported);
    }
}
