//! The programs of the chapters "A problem solved": what these change is not what they compute, and the flood is one.

use gyan_results::RankProfile;

use crate::common::{MPIS, OPENMPI, Profiled};

#[test]
fn what_the_chapters_change_leaves_the_results() {
    for mpi in MPIS {
        let printed = |program: &[&str]| {
            Profiled::run(mpi, 2, program, &[]).succeeded().outcome.stdout_of_ranks()
        };
        for [before, after] in [
            [&["plate", "rows", "60", "50"], &["plate", "cells", "60", "50"]],
            [&["results", "in-order", "300", "2"], &["results", "as-they-come", "300", "2"]],
        ] {
            assert_eq!(printed(before), printed(after), "{mpi:?}");
        }
    }
}

/// Messages come in the opposite order of the receives: at the receive with tag n all but n of 2,000 wait.
#[test]
fn receives_in_order_are_called_while_all_later_messages_wait() {
    let watch = |profile: &RankProfile| profile.watch.clone().unwrap();
    let settings = [("GYAN_WATCH", "umq>1000"), ("OMPI_MCA_pml", "ob1")];
    let run = Profiled::run(OPENMPI, 2, &["results", "in-order", "2000", "2"], &settings);
    let of_rank_0 = watch(&run.profiles()[0]);
    // With tags 1 to 999 in each round; with tag 0 nobody knows what has come already.
    assert!((2 * 999..=2 * 1000).contains(&of_rank_0.hits), "{of_rank_0:?}");
    assert!((1999..=2000).contains(&of_rank_0.max), "{of_rank_0:?}");
}
