//! `gyan varlist` says about every variable what an independent program learns from the same library.

use std::fs;
use std::path::Path;

use gyan_results::{Cvar, Moment, PvarInfo, Values, Variables};
use tempfile::TempDir;

use crate::common::{
    MPICH, MPIS, Mpi, OPENMPI, Outcome, command, each_library, gyan, run, succeed,
};

/// `gyan varlist <options> -- <program>` with `settings` in the environment.
fn varlist(mpi: Mpi, options: &[&str], settings: &[(&str, &str)]) -> Outcome {
    let mut words = mpi.alone(Path::new(gyan().get_program()));
    words.extend(["varlist".into()].into_iter().chain(options.iter().map(|word| (*word).into())));
    let mut command = command(&words);
    command.arg("--").arg(mpi.program("exit_code"));
    run(command.envs(settings.iter().copied()))
}

fn listing(mpi: Mpi, options: &[&str], settings: &[(&str, &str)]) -> Variables {
    let outcome = varlist(mpi, &[&["--json"], options].concat(), settings);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap()
}

fn cvar<'a>(listing: &'a Variables, name: &str) -> &'a Cvar {
    let found = listing.cvars.iter().find(|cvar| cvar.name.as_deref() == Some(name));
    found.unwrap_or_else(|| panic!("no {name}"))
}

fn json_name<T: serde::Serialize>(value: Option<T>) -> String {
    let value = value.map(|value| serde_json::to_value(value).unwrap());
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_else(|| "?".into())
}

/// In the form that the independent program prints.
fn cvar_line(cvar: &Cvar) -> String {
    format!(
        "cvar {} {} {} {} {} {}",
        cvar.index,
        cvar.name.as_deref().unwrap(),
        cvar.verbosity.as_deref().unwrap_or("?"),
        json_name(cvar.datatype),
        cvar.bind.as_deref().unwrap_or("-"),
        cvar.scope.as_deref().unwrap_or("?"),
    )
}

fn pvar_line(pvar: &PvarInfo) -> String {
    format!(
        "pvar {} {} {} {} {} {} {} {} {}",
        pvar.index,
        pvar.name.as_deref().unwrap(),
        json_name(pvar.class),
        pvar.verbosity.as_deref().unwrap_or("?"),
        json_name(pvar.datatype),
        pvar.bind.as_deref().unwrap_or("-"),
        i32::from(pvar.readonly.unwrap()),
        i32::from(pvar.continuous.unwrap()),
        i32::from(pvar.atomic.unwrap()),
    )
}

#[test]
fn it_says_of_every_variable_what_an_independent_program_hears() {
    for mpi in each_library() {
        for (order, options, moment) in
            [("init", &[][..], Moment::AfterInit), ("before", &["-m"], Moment::BeforeInit)]
        {
            let mut words = mpi.alone(&mpi.program("list"));
            words.push(order.into());
            let independent = succeed(&mut command(&words));
            let listing = listing(mpi, options, &[]);
            assert_eq!(listing.listed, moment);
            let mut lines = independent.stdout.lines();
            let mut compared = 0;
            let mut kind = |name: &str, number: usize, line_of: &dyn Fn(usize) -> String| {
                assert_eq!(lines.next().unwrap(), format!("{name}s {number}"), "{mpi:?} {order}");
                for index in 0..number {
                    let line = lines.next().unwrap();
                    // gyan knows more about variables that the library no longer tells, from before MPI_Init.
                    if line != format!("{name} {index} -") {
                        assert_eq!(line_of(index), line, "{mpi:?} {order}");
                        compared += 1;
                    }
                }
            };
            kind("cvar", listing.cvars.len(), &|index| cvar_line(&listing.cvars[index]));
            kind("pvar", listing.pvars.len(), &|index| pvar_line(&listing.pvars[index]));
            assert_eq!(lines.next(), None);
            assert!(compared >= 344, "{mpi:?} {order}: {compared}");
        }
    }
}

#[test]
fn what_the_library_no_longer_tells_is_told_from_before() {
    let listing = listing(OPENMPI, &[], &[]);
    // A singleton has no use for shared memory.
    let limit = cvar(&listing, "btl_vader_eager_limit");
    assert!(limit.before_init && limit.value_text().as_deref() == Some("4096"));
    assert_eq!(limit.environment.as_deref(), Some("OMPI_MCA_btl_vader_eager_limit"));
    assert_eq!(limit.launcher_option.as_deref(), Some("--mca btl_vader_eager_limit VALUE"));
    // These crash when they are read after MPI_Init.
    let verbose = cvar(&listing, "opal_common_ucx_verbose");
    assert!(verbose.before_init && verbose.value.is_some());
    assert!(verbose.problem.as_ref().unwrap().contains("crashes inside the library"));
}

#[test]
fn a_variable_that_kills_is_named_and_the_listing_goes_on() {
    let outcome = varlist(OPENMPI, &["-m", "-p"], &[]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let dead: Vec<&str> = outcome.stdout.lines().filter(|line| line.contains("crashes")).collect();
    assert_eq!(dead.len(), 13, "{}", outcome.stdout);
    let expected = "(crashes inside the library (SIGSEGV) in MPI_T_pvar_handle_alloc)";
    assert!(dead.iter().all(|line| line.starts_with("mtl_psm2_") && line.ends_with(expected)));
    assert!(outcome.stdout.contains("pml_ob1_unexpected_msgq_length"), "it ended there");
    assert_eq!(outcome.stderr, "");
}

#[test]
fn enumerations_are_shown_by_name_and_texts_whole() {
    let listing = listing(OPENMPI, &[], &[("OMPI_MCA_btl", &"self,".repeat(300))]);
    let btl = cvar(&listing, "btl");
    assert!(matches!(&btl.value, Some(Values::Text(text)) if text.len() == 1500), "{btl:?}");
    let named = listing.cvars.iter().filter(|cvar| cvar.enumeration.is_some());
    let mut shown = 0;
    for cvar in named {
        let items = cvar.enumeration.as_ref().unwrap();
        if let Some(text) = cvar.value_text()
            && items.iter().any(|item| item.name == text)
        {
            shown += 1;
        }
    }
    assert!(shown > 100, "{shown}");
}

#[test]
fn options_choose_what_is_shown() {
    let all = varlist(MPICH, &[], &[]).stdout;
    assert!(all.starts_with("MPICH Version: 4.0.2 (MPI 4.0, MPI_THREAD_SINGLE)\n"), "{all}");
    assert!(all.contains("\nControl variables: 344 found, 344 shown, with verbosity <= D/A-9\n"));
    assert!(all.contains("\nPerformance variables: 0 found"));
    let cvars = varlist(MPICH, &["-c", "-v", "1"], &[]).stdout;
    assert!(!cvars.contains("Performance variables"));
    assert!(cvars.contains("with verbosity <= U/B-1"));
    assert!(!cvars.contains("U/D-2"), "{cvars}");
    let pvars = varlist(MPICH, &["-p"], &[]).stdout;
    assert!(!pvars.contains("Control variables"), "{pvars}");
    let long = varlist(MPICH, &["-c", "-l", "--match", "*BCAST_MIN_PROCS"], &[]).stdout;
    for part in
        ["description", "writable now  yes", "MPIR_CVAR_BCAST_MIN_PROCS=VALUE", "-genv MPIR"]
    {
        assert!(long.contains(part), "{part}: {long}");
    }
    let tree = varlist(OPENMPI, &["-g"], &[]).stdout;
    assert!(
        tree.contains("\nopal_mca\n") && tree.contains("    cvar mca_base_verbose\n"),
        "{tree}"
    );
    let events = varlist(MPICH, &["-e"], &[]).stdout;
    assert!(events.contains("Events: 0 found") && !events.contains("no event interface"));
    let events = varlist(OPENMPI, &["-e"], &[]).stdout;
    assert!(events.contains("this library has no event interface (MPI 4.0)"));
    let names = varlist(OPENMPI, &["-c", "--enum", "--match", "^mpi_leave_pinned$"], &[]).stdout;
    assert!(names.contains("Enumerations: 1 variables"), "{names}");
}

#[test]
fn changed_shows_what_is_not_the_default() {
    let name = "MPIR_CVAR_BCAST_MIN_PROCS";
    let changed = listing(MPICH, &["--changed"], &[(name, "5")]);
    let names: Vec<_> = changed.cvars.iter().filter_map(|cvar| cvar.name.as_deref()).collect();
    assert_eq!(names, [name]);
    let changed = listing(OPENMPI, &["--changed"], &[("OMPI_MCA_btl_vader_eager_limit", "2048")]);
    assert_eq!(cvar(&changed, "btl_vader_eager_limit").value_text().as_deref(), Some("2048"));
    assert!(changed.cvars.len() < 12, "{:?}", changed.cvars.len());
    // Set for the launcher, not for the launcher's library.
    let mut command = gyan();
    command.args(["varlist", "--json", "--changed", "--"]).args(OPENMPI.mpirun(2));
    command.args(["--mca", "btl_vader_eager_limit", "1000"]).arg(OPENMPI.program("exit_code"));
    let outcome = run(&mut command);
    let changed: Variables = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(cvar(&changed, "btl_vader_eager_limit").value_text().as_deref(), Some("1000"));
}

#[test]
fn two_listings_are_compared() {
    let directory = TempDir::new().unwrap();
    let save = |name: &str, settings: &[(&str, &str)]| {
        let outcome = varlist(MPICH, &["--json"], settings);
        let path = directory.path().join(name);
        fs::write(&path, outcome.stdout).unwrap();
        path.display().to_string()
    };
    let a = save("a.json", &[]);
    let b = save("b.json", &[("MPIR_CVAR_BCAST_MIN_PROCS", "5")]);
    let diff = succeed(gyan().args(["varlist", "--diff", &a, &b]));
    let rows: Vec<Vec<&str>> = diff
        .stdout
        .lines()
        .filter(|line| line.starts_with("changed"))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows, [["changed", "MPIR_CVAR_BCAST_MIN_PROCS", "8", "5"]]);
    let equal = run(gyan().args(["varlist", "--diff", &a, &a]));
    assert!(equal.stdout.starts_with("the listings do not differ"), "{}", equal.stdout);
    let against = varlist(MPICH, &["-c", "--changed", "--against", &b], &[]);
    let rows = against.stdout.lines().filter(|line| line.starts_with("MPIR_CVAR_")).count();
    assert_eq!(rows, 1, "{}", against.stdout);
    // Added and removed: another library.
    let other = directory.path().join("o.json");
    fs::write(&other, varlist(OPENMPI, &["--json"], &[]).stdout).unwrap();
    let diff = run(gyan().args(["varlist", "--diff", &a]).arg(&other));
    assert!(diff.stdout.lines().filter(|line| line.starts_with("removed")).count() >= 344);
    assert!(diff.stdout.lines().filter(|line| line.starts_with("added")).count() > 1000);
}

#[test]
fn the_library_is_found_without_a_program() {
    let library = |options: &[&str]| -> Variables {
        let outcome = succeed(gyan().arg("varlist").arg("--json").args(options));
        serde_json::from_str(&outcome.stdout).unwrap()
    };
    // mpicc on PATH decides; both of Debian's are there.
    let default = library(&[]);
    assert!(default.cvars.len() >= 344);
    let of_program = listing(MPICH, &[], &[]);
    let by_path = library(&["--mpi", &of_program.mpi.library_path]);
    assert_eq!(by_path.mpi.library, of_program.mpi.library);
    assert_eq!(by_path.cvars.len(), of_program.cvars.len());
    // As a rank: one listing, and every rank ends well.
    for mpi in MPIS {
        let path = listing(mpi, &[], &[]).mpi.library_path;
        let mut command = command(&mpi.mpirun(2));
        command.arg(gyan().get_program()).args(["varlist", "-c", "--mpi", &path]);
        let outcome = run(&mut command);
        assert_eq!(outcome.code, 0, "{mpi:?} {}", outcome.stderr);
        let headings = outcome.stdout.lines().filter(|line| line.starts_with("Control variables"));
        assert_eq!(headings.count(), 1, "{mpi:?} {outcome:?}");
    }
}

#[test]
fn bad_input_is_one_line_and_code_2() {
    let directory = TempDir::new().unwrap();
    for (words, expected) in [
        (&["-v", "0"][..], "0 is not in 1..=9"),
        (&["-v", "10"], "10 is not in 1..=9"),
        (&["--mpi", "/nonexistent/libmpi.so"], "no such file"),
        (&["--mpi", "/etc/passwd"], "invalid ELF header"),
        (&["--match", "("], "unclosed group"),
        (&["--", "./nosuch"], "no such program"),
        (&["--", "true"], "ended with code 0 without calling MPI_Init"),
        (&["--", "sh", "-c", "exit 3"], "ended with code 3 without calling MPI_Init"),
        (&["--", "sh", "-c", "kill -SEGV $$"], "died of signal 11 without calling MPI_Init"),
        (&["--diff", "/nonexistent", "/etc/passwd"], "/nonexistent: cannot be read"),
        (&["--against", "x"], "--changed"),
    ] {
        let outcome = run(gyan().arg("varlist").args(words).current_dir(&directory));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{words:?}");
        assert!(outcome.stderr.contains(expected), "{words:?}: {}", outcome.stderr);
        let ours = outcome.notices();
        assert!(ours.len() <= 1, "{words:?}: {ours:?}");
    }
    // A library that is not an MPI: the C library itself.
    let libc = fs::read_to_string("/proc/self/maps").unwrap();
    let libc = libc.split_whitespace().find(|word| word.contains("libc.so")).unwrap().to_owned();
    let outcome = run(gyan().args(["varlist", "--mpi", &libc]));
    assert_eq!((outcome.code, outcome.notices().len()), (2, 1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("it is not an MPI library"), "{}", outcome.stderr);
}
