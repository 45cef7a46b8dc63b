//! Fortran through each of its bindings: every receive is counted, and none twice.

use std::collections::BTreeMap;

use tempfile::TempDir;

use crate::common::{MPIS, Mpi, command, libgyan, profiles, receives, run};

#[test]
fn receives_through_every_binding_are_counted_once() {
    // Of the others PyPI brings no Fortran, or modules that gfortran cannot read, and the sources no
    // wrapper that works.
    for mpi in MPIS {
        for program in ["fortran_mpif.f", "fortran_use_mpi.f90", "fortran_use_mpi_f08.f90"] {
            check(mpi, program);
        }
    }
}

fn check(mpi: Mpi, program: &str) {
    let here = TempDir::new().unwrap();
    let mut words = mpi.mpirun(3);
    words.push(mpi.fortran_program(program).display().to_string());
    let bare = run(command(&words).current_dir(&here));
    let with = run(command(&words)
        .current_dir(&here)
        .env("LD_PRELOAD", libgyan())
        .env("GYAN_NOTICES", "warnings")
        .env("GYAN_OUTPUT", here.path().join("out")));
    assert_eq!(bare.code, 0, "{mpi:?} {program} {}", bare.stderr);
    assert_eq!(with.code, 0, "{mpi:?} {program} {}", with.stderr);
    assert_eq!(with.stdout_of_ranks(), bare.stdout_of_ranks(), "{mpi:?} {program}");
    let profiles = profiles(&here.path().join("out"));
    assert_eq!(profiles.len(), 3);
    for profile in &profiles {
        let expected = BTreeMap::from([
            ("MPI_Init", 1),
            ("MPI_Finalize", 1),
            ("MPI_Recv", 5 + u64::from(profile.rank)),
            ("MPI_Irecv", 3),
            ("MPI_Sendrecv", 2),
            ("MPI_Recv_init", 1),
        ]);
        assert_eq!(receives(profile), expected, "{mpi:?} {program} rank {}", profile.rank);
    }
}
