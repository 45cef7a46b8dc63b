//! Everything that `scripts/install` installs works from there, also at link time.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::common::{MPIS, built, command, counts, profiles, root, succeed};

fn install() -> TempDir {
    let prefix = TempDir::new().unwrap();
    let mut install = Command::new(root().join("scripts/install"));
    succeed(install.arg("--built").arg(built()).arg(prefix.path()));
    prefix
}

#[test]
fn the_installed_command_finds_the_installed_library() {
    let prefix = install();
    for file in [
        "bin/gyan",
        "lib/libgyan.so",
        "include/gyan.h",
        "include/gyan.f90",
        "lib/pkgconfig/gyan.pc",
        "share/man/man1/gyan.1",
        "share/man/man1/gyan-run.1",
        "share/bash-completion/completions/gyan",
        "share/zsh/site-functions/_gyan",
        "share/fish/vendor_completions.d/gyan.fish",
        concat!("share/modulefiles/gyan/", env!("CARGO_PKG_VERSION")),
        concat!("share/modulefiles/gyan/", env!("CARGO_PKG_VERSION"), ".lua"),
        "share/gyan/site/environment.sh",
        "share/gyan/site/slurm/gyan_spank.c",
        "share/gyan/site/slurm/Makefile",
        "share/gyan/site/slurm/task-prolog",
        "share/gyan/site/pbs/gyan_hook.py",
        "share/gyan/site/lsf/job-starter",
        concat!("share/gyan/site/modulefiles/gyan-site/", env!("CARGO_PKG_VERSION"), ".lua"),
    ] {
        assert!(prefix.path().join(file).is_file(), "{file} is missing");
    }
    let here = TempDir::new().unwrap();
    let mpi = MPIS[0];
    let mut gyan = Command::new(prefix.path().join("bin/gyan"));
    gyan.current_dir(&here).args(["run", "-o", "out", "--"]).args(mpi.mpirun(2));
    succeed(gyan.arg(mpi.program("exit_code")));
    profiles(&here.path().join("out"), 2);
}

#[test]
fn a_program_that_is_linked_with_it_needs_no_preload() {
    let prefix = install();
    let flags = succeed(
        Command::new("pkg-config")
            .args(["--cflags", "--libs", "gyan"])
            .env("PKG_CONFIG_PATH", prefix.path().join("lib/pkgconfig")),
    );
    let flags: Vec<&str> = flags.stdout.split_whitespace().collect();
    assert!(flags.contains(&"-lgyan"), "{flags:?}");
    for mpi in MPIS {
        let program = mpi.compiled("receives", &flags);
        let (bare, with) = (mpi.program("receives"), profile_of(&program, mpi.mpirun(2)));
        assert_eq!(counts(&with[1])["MPI_Recv"], 5);
        assert_ne!(bare, program);
        let program = mpi.compiled("phases", &flags);
        for profile in profile_of(&program, mpi.mpirun(2)) {
            assert!(profile.phases.iter().any(|phase| phase.name == "step/exchange"), "{mpi:?}");
        }
    }
}

/// Nothing but the program says where libgyan.so is.
fn profile_of(program: &Path, mut words: Vec<String>) -> Vec<gyan_results::RankProfile> {
    let here = TempDir::new().unwrap();
    words.push(program.display().to_string());
    let mut command = command(&words);
    succeed(command.current_dir(&here).env("GYAN_OUTPUT", here.path().join("out")));
    profiles(&here.path().join("out"), 2)
}
