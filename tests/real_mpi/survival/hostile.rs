//! A hostile MPI: that of `tests/fakempi` with faults. Each is a row of a table, run under gyan with a program
//! that must not notice; the outcomes are recorded for `docs/reliability.md`.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use gyan_results::{Number, Pvar, RankProfile, Values};
use tempfile::TempDir;

use crate::common::{
    self, MPICH, MPICH_PVARS, MPIS, OPENMPI, OPENMPI_SPC, Profiled, elements, gyan, pvar,
};
use crate::fakempi::Faked;
use crate::faults::inject;

const PROGRAM: [&str; 4] = ["fake_events", "5", "3", "2"];

/// Every kind of crash: its name in the script, and its signal.
const CRASHES: [(&str, &str); 6] = [
    ("segv", "SIGSEGV"),
    ("bus", "SIGBUS"),
    ("ill", "SIGILL"),
    ("fpe", "SIGFPE"),
    ("abort", "SIGABRT"),
    ("overflow", "SIGSEGV"),
];

/// What surviving one means.
const CRASHED: &str = "the program goes on, the profile has what was known before";

/// Three variables, the second of which has a fault.
const THREE: &str = "
    pvar first COUNTER MPI_INT value 1
    pvar bad COUNTER MPI_INT value 2
    pvar last LEVEL MPI_INT value 3 continuous
";

/// How much is known of a variable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Known {
    Whole,
    Start,
    End,
    /// It is there, with a reason for each reading that is not.
    Nothing,
    /// It is not among the variables that were read; the coverage says why.
    Skipped,
    /// The library was not asked for variables any more.
    Unheard,
}
use Known::{End, Nothing, Skipped, Start, Unheard, Whole};

/// Tries every row and records the outcome; then the first failure fails the test.
fn survive<T>(rows: &[T], what: impl Fn(&T) -> (String, String), each: impl Fn(&T)) {
    let mut first = None;
    for row in rows {
        let (name, what) = what(row);
        let fault = inject("hostile", &name, &what);
        match catch_unwind(AssertUnwindSafe(|| each(row))) {
            Ok(()) => fault.survived(),
            Err(panic) => {
                eprintln!("{name}: not survived");
                first.get_or_insert(panic);
            }
        }
    }
    if let Some(panic) = first {
        resume_unwind(panic);
    }
}

/// Runs the program under gyan with `script`. It must behave as without gyan, and its calls must be counted.
fn run(script: &str, settings: &[(&str, &str)]) -> (Faked, RankProfile) {
    let alone = Faked::alone(script, &PROGRAM);
    // A live file takes snapshots at any time, with readings of its own.
    let settings = [settings, &[("GYAN_LIVE", "off")]].concat();
    let run = Faked::run(script, &PROGRAM, &settings);
    assert_eq!(alone.outcome.code, 0, "{}", alone.outcome.stderr);
    assert_eq!(alone.outcome.stdout, run.outcome.stdout);
    assert_eq!(run.misuses(), Vec::<&str>::new());
    let profile = run.profile();
    let count = |name| crate::common::call(&profile, name).count;
    assert_eq!((count("MPI_Barrier"), count("MPI_Send"), count("MPI_Comm_dup")), (7, 8, 1));
    (run, profile)
}

/// The same with a crash of the library, which gyan must name: `named` is its line up to the signal.
fn crash(script: &str, settings: &[(&str, &str)], named: &str, signal: &str) -> RankProfile {
    let (run, profile) = run(script, settings);
    assert_eq!(run.lines("fault").len(), 1, "{:?}", run.log);
    let start =
        format!("{named} crashed inside the MPI library ({signal}); gyan calls MPI_T no more");
    let notices = run.outcome.notices();
    let told = notices.iter().filter(|line| line.starts_with(&format!("gyan: {start}"))).count();
    assert_eq!((told, notices.len()), (1, 2), "{}", run.outcome.stderr);
    let told = profile.warnings.iter().filter(|warning| warning.starts_with(&start)).count();
    assert_eq!(told, 1, "{:?}", profile.warnings);
    profile
}

/// How much is known of a variable, and that the profile says why not more.
fn known(profile: &RankProfile, name: &str) -> Known {
    if let Some(pvar) = profile.pvars.iter().find(|pvar| pvar.name == name) {
        let says = |what: &str| pvar.notes.iter().any(|note| note.starts_with(what));
        assert!(pvar.end.is_some() || says("end: "), "{pvar:?}");
        return match (&pvar.start, &pvar.end) {
            (Some(_), Some(_)) => Whole,
            (Some(_), None) => Start,
            (None, Some(_)) => End,
            (None, None) => Nothing,
        };
    }
    let mut skipped = profile.coverage.skipped.iter();
    match skipped.find(|skipped| skipped.name.as_deref() == Some(name)) {
        Some(skipped) => {
            assert!(!skipped.reason.is_empty());
            Skipped
        }
        None => Unheard,
    }
}

fn knows(profile: &RankProfile, expected: [Known; 3]) {
    assert_eq!(["first", "bad", "last"].map(|name| known(profile, name)), expected, "{profile:#?}");
    for (name, value) in [("first", 1), ("bad", 2), ("last", 3)] {
        let Some(pvar) = profile.pvars.iter().find(|pvar| pvar.name == name) else { continue };
        for values in [&pvar.start, &pvar.end].into_iter().flatten() {
            assert_eq!(elements(Some(values)), [Number::Integer(value)]);
        }
    }
}

/// A call that crashes: the text before the variable in gyan's line, and how much is known then.
const CALLS: [(&str, &str, u32, [Known; 3]); 7] = [
    // Before MPI_Init, when gyan asks for the names.
    ("MPI_T_pvar_get_info", "performance variable 1", 1, [Unheard; 3]),
    ("MPI_T_pvar_get_info", "performance variable 1", 2, [Start, Skipped, Skipped]),
    ("MPI_T_pvar_handle_alloc", "bad (performance variable 1)", 1, [Start, Skipped, Skipped]),
    ("MPI_T_pvar_start", "bad (performance variable 1)", 1, [Start, Skipped, Skipped]),
    ("MPI_T_pvar_read", "bad (performance variable 1)", 1, [Start, Nothing, Skipped]),
    // At the end levels come first, and then what they changed places with.
    ("MPI_T_pvar_read", "bad (performance variable 1)", 2, [Start, Start, Whole]),
    ("MPI_T_pvar_handle_free", "bad (performance variable 1)", 1, [Start, Whole, Whole]),
];

#[test]
fn a_crash_in_any_call_for_a_variable_is_named_and_survived() {
    let rows: Vec<_> =
        CALLS.iter().flat_map(|call| CRASHES.iter().map(move |crash| (call, crash))).collect();
    survive(
        &rows,
        |((call, ..), _)| (format!("a crash in {call}"), CRASHED.into()),
        |((call, variable, number, expected), (kind, signal))| {
            let script = format!("{THREE}\nfault {call} of bad call {number} {kind}");
            let profile = crash(&script, &[], &format!("{call} for {variable}"), signal);
            knows(&profile, *expected);
        },
    );
}

#[test]
fn a_crash_in_any_other_call_is_named_and_survived() {
    let stopped = "
        library Open MPI v5.0.3
        pvar runtime_spc_OMPI_SPC_MAX_X SIZE MPI_INT value 1
    ";
    let rows = [
        ("MPI_T_pvar_get_num", "", THREE),
        ("MPI_T_pvar_session_create", "", THREE),
        ("MPI_T_pvar_session_free", "", THREE),
        ("MPI_T_pvar_stop", " for runtime_spc_OMPI_SPC_MAX_X (performance variable 0)", stopped),
        ("MPI_T_finalize", "", stopped),
        ("MPI_T_cvar_get_num", "", "cvar knob MPI_INT"),
        ("MPI_T_cvar_get_info", " for control variable 0", "cvar knob MPI_INT"),
        ("MPI_T_cvar_handle_alloc", " for control variable 0", "cvar knob MPI_INT"),
        ("MPI_T_cvar_read", " for control variable 0", "cvar knob MPI_INT"),
        ("MPI_T_cvar_handle_free", " for control variable 0", "cvar knob MPI_INT"),
        (
            "MPI_T_enum_get_item",
            "",
            "enum states idle 0 busy 1\npvar state STATE MPI_INT enum states continuous",
        ),
        ("MPI_T_event_get_num", "", "source here\nevent happens here"),
        ("MPI_T_event_get_info", " for event 0", "source here\nevent happens here"),
        ("MPI_T_source_get_info", " for source 0 of events", "source here\nevent happens here"),
        ("MPI_T_event_handle_alloc", " for event 0", "source here\nevent happens here"),
        ("MPI_T_event_register_callback", " for event 0", "source here\nevent happens here"),
        ("MPI_T_event_handle_free", " for event 0", "source here\nevent happens here"),
    ];
    survive(
        &rows,
        |(call, ..)| (format!("a crash in {call}"), CRASHED.into()),
        |(call, about, script)| {
            let script = format!("{script}\nfault {call} segv");
            let events = if script.contains("event") { "mpi_t" } else { "off" };
            let settings = [("GYAN_CVARS_RECORD", "all"), ("GYAN_EVENTS", events)];
            crash(&script, &settings, &format!("{call}{about}"), "SIGSEGV");
        },
    );
}

#[test]
fn an_error_of_any_call_is_noted_and_the_rest_is_read() {
    let rows = [
        ("MPI_T_pvar_get_info", "MPI_T_ERR_INVALID_INDEX", [Whole, Unheard, Whole]),
        ("MPI_T_pvar_handle_alloc", "MPI_T_ERR_OUT_OF_HANDLES", [Whole, Skipped, Whole]),
        ("MPI_T_pvar_start", "MPI_T_ERR_PVAR_NO_STARTSTOP", [Whole, Skipped, Whole]),
        ("MPI_T_pvar_read", "MPI_T_ERR_INVALID_HANDLE", [Whole, Nothing, Whole]),
        ("MPI_T_pvar_session_create", "MPI_T_ERR_OUT_OF_SESSIONS", [Unheard; 3]),
        ("MPI_T_pvar_get_num", "MPI_T_ERR_MEMORY", [Unheard; 3]),
    ];
    survive(
        &rows,
        |(call, error, _)| (format!("{error} of {call}"), "noted, and the rest is read".into()),
        |(call, error, expected)| {
            let of = if expected == &[Unheard; 3] { "" } else { " of bad" };
            let (run, profile) = run(&format!("{THREE}\nfault {call}{of} error {error}"), &[]);
            knows(&profile, *expected);
            assert_eq!(run.outcome.notices().len(), 1, "{}", run.outcome.stderr);
            let reasons = profile.coverage.skipped.iter().map(|skipped| &skipped.reason);
            let notes = profile.pvars.iter().flat_map(|pvar| &pvar.notes);
            let mut said = reasons.chain(notes).chain(&profile.warnings);
            let expected = format!("{call}: {error}");
            assert!(said.any(|text| text.contains(&expected)), "{profile:#?}");
        },
    );
}

/// A variable of the profile as the script has it.
type Check = fn(&RankProfile);

fn only<'a>(profile: &'a RankProfile, name: &str) -> &'a Pvar {
    assert_eq!(profile.pvars.len(), 1, "{:#?}", profile.pvars);
    pvar(profile, name)
}

fn reason(profile: &RankProfile) -> &str {
    assert!(profile.pvars.is_empty());
    let [skipped] = &profile.coverage.skipped[..] else { panic!("{:?}", profile.coverage) };
    &skipped.reason
}

#[test]
fn what_is_odd_about_a_variable_is_seen_and_harms_nobody() {
    let long = "x".repeat(4096);
    let rows: [(&str, String, Check); 11] = [
        ("a name of 4 KiB", format!("pvar {long} LEVEL MPI_INT value 7"), |profile| {
            let name = "x".repeat(4096);
            assert_eq!(elements(only(profile, &name).end.as_ref()), [Number::Integer(7)]);
        }),
        ("a name that is no UTF-8", "pvar a\\xff\\xfeb LEVEL MPI_INT value 7".into(), |profile| {
            let pvar = only(profile, "a\u{fffd}\u{fffd}b");
            assert_eq!(elements(pvar.end.as_ref()), [Number::Integer(7)]);
        }),
        (
            "a name of control characters",
            "pvar \\x1b[31mred\\x07 LEVEL MPI_INT value 7".into(),
            |profile| _ = only(profile, "\u{1b}[31mred\u{7}"),
        ),
        (
            "more elements than the handle says",
            "pvar grows COUNTER MPI_UINT64_T count 2 value 4 5 writes 4000".into(),
            |profile| {
                let expected = [Number::Integer(4), Number::Integer(5)];
                assert_eq!(elements(only(profile, "grows").end.as_ref()), expected);
            },
        ),
        ("no element", "pvar none COUNTER MPI_INT count 0".into(), |profile| {
            assert_eq!(elements(only(profile, "none").end.as_ref()), []);
        }),
        (
            "a datatype that MPI_T does not allow",
            "pvar strange COUNTER MPI_LONG_DOUBLE".into(),
            |profile| assert!(reason(profile).contains("datatype that MPI_T does not allow")),
        ),
        ("a class that there is not", "pvar strange UNHEARD_OF MPI_INT".into(), |profile| {
            assert!(reason(profile).contains("unknown class 4711"));
        }),
        (
            "a binding that there is not",
            "pvar strange COUNTER MPI_INT bind UNHEARD_OF".into(),
            |profile| assert!(reason(profile).contains("unknown kind of object (4711)")),
        ),
        (
            "a counter that wraps",
            "pvar wraps COUNTER MPI_UINT32_T value 4294967290 continuous
             pvar wide COUNTER MPI_UINT64_T value -6 continuous
             at MPI_Finalize set wraps 5
             at MPI_Comm_free set wraps 5
             at MPI_Comm_free set wide 5"
                .into(),
            |profile| {
                for name in ["wraps", "wide"] {
                    let delta = pvar(profile, name).delta.as_ref();
                    assert_eq!(elements(delta), [Number::Integer(11)], "{name}");
                }
            },
        ),
        (
            "variables that appear while the program runs",
            "pvar first COUNTER MPI_INT value 1
             pvar later COUNTER MPI_INT value 2 hidden copies 2
             at MPI_Barrier call 3 show"
                .into(),
            |profile| {
                assert_eq!((profile.coverage.exported, profile.coverage.sampled), (3, 3));
                let later = pvar(profile, "later_1");
                assert_eq!(elements(later.end.as_ref()), [Number::Integer(2)]);
            },
        ),
        ("100000 variables", "pvar many COUNTER MPI_INT value 1 copies 100000".into(), |profile| {
            assert_eq!((profile.coverage.exported, profile.coverage.sampled), (100_000, 100_000));
            let values = |pvar: &Pvar| {
                pvar.end == Some(Values::Elements(vec![Number::Integer(1)]))
                    && pvar.start == pvar.end
            };
            assert!(profile.pvars.iter().all(values));
        }),
    ];
    survive(
        &rows,
        |(what, ..)| ((*what).into(), "the profile has what the variable is".into()),
        |(_, script, check)| {
            let (run, profile) = run(script, &[]);
            assert_eq!(run.outcome.notices().len(), 1, "{}", run.outcome.stderr);
            assert_eq!(profile.warnings, Vec::<String>::new());
            check(&profile);
        },
    );
}

#[test]
fn a_reading_that_is_far_too_long_is_a_crash() {
    let script = format!("{THREE}\npvar vast COUNTER MPI_UINT64_T writes 1000000");
    let run = Faked::run(&script, &PROGRAM, &[]);
    let profile = run.profile();
    knows(&profile, [Start; 3]);
    assert_eq!(known(&profile, "vast"), Nothing);
    let named = "MPI_T_pvar_read for vast (performance variable 3) crashed inside the MPI library";
    assert!(profile.warnings[0].starts_with(named), "{:?}", profile.warnings);
}

#[test]
fn the_variable_that_crashed_can_be_left_out() {
    let script = format!("{THREE}\nfault MPI_T_pvar_handle_alloc of bad segv");
    let run = Faked::run(&script, &PROGRAM, &[("GYAN_PVARS", "-bad")]);
    let profile = run.profile();
    knows(&profile, [Whole, Skipped, Whole]);
    assert_eq!(run.outcome.notices().len(), 1, "{}", run.outcome.stderr);
}

#[test]
fn a_listing_survives_what_kills_and_what_hangs() {
    let calls = [
        ("MPI_T_pvar_get_info", &["segv", "abort"][..]),
        ("MPI_T_pvar_handle_alloc", &["bus"]),
        ("MPI_T_pvar_handle_free", &["abort"]),
        // It takes as long as a listing waits.
        ("MPI_T_pvar_handle_alloc", &["hang"]),
    ];
    let rows: Vec<_> = calls
        .iter()
        .flat_map(|(call, kinds)| kinds.iter().map(move |kind| (*call, *kind)))
        .collect();
    survive(
        &rows,
        |(call, kind)| (format!("{kind} in {call}"), "the listing names it and goes on".into()),
        |(call, kind)| {
            let script = format!("{THREE}\nfault {call} of bad {kind}");
            let (outcome, listing) = Faked::listed(&script);
            assert_eq!(outcome.code, 0, "{}", outcome.stderr);
            let names: Vec<_> = listing.pvars.iter().map(|pvar| pvar.name.as_deref()).collect();
            let bad = if *call == "MPI_T_pvar_get_info" { None } else { Some("bad") };
            assert_eq!(names, [Some("first"), bad, Some("last")]);
            let problem = listing.pvars[1].problem.as_deref().unwrap_or_default();
            assert!(problem.ends_with(&format!("in {call}")), "{problem}");
            let how = if *kind == "hang" { "hangs inside" } else { "crashes inside" };
            assert!(problem.starts_with(how), "{problem}");
            for well in [&listing.pvars[0], &listing.pvars[2]] {
                assert_eq!(well.problem, None);
            }
        },
    );
}

#[test]
fn categories_in_a_cycle_are_listed_once() {
    let script = "
        cvar knob MPI_INT value 4
        category upper cvars knob categories 1
        category lower categories 0 1
    ";
    let (outcome, listing) = Faked::listed(script);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(listing.categories.len(), 2);
    let tree = Faked::gyan(script, &["varlist", "-g"]);
    assert_eq!(tree.code, 0, "{}", tree.stderr);
    assert_eq!(tree.stdout.matches("knob").count(), 1, "{}", tree.stdout);
}

#[test]
fn a_category_that_claims_more_members_than_there_can_be_has_those_that_it_tells() {
    let claimed = i32::MAX;
    let script = format!(
        "cvar knob MPI_INT value 4\ncategory vast cvars knob claims {claimed}\ncategory small"
    );
    let (outcome, listing) = Faked::listed(&script);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let members: Vec<_> = listing.categories.iter().map(|category| &category.cvars[..]).collect();
    assert_eq!(members, [&[0][..], &[]], "{:?}", listing.categories);
}

#[test]
fn the_reference_to_mpi_t_goes_where_it_has_to_also_when_no_variable_can_be_read() {
    for (library, kept) in [("Open MPI v5.0.3", 0), ("fakempi", 1)] {
        for call in ["MPI_T_pvar_session_create", "MPI_T_pvar_get_num", "nothing"] {
            let script = format!("library {library}\nfault {call} error MPI_T_ERR_MEMORY");
            let (run, _) = run(&script, &[]);
            assert_eq!(run.lines("kept MPI_T").len(), kept, "{library}, {call}: {:?}", run.log);
        }
    }
}

#[test]
fn arrays_of_a_persistent_operation_are_there_when_it_is_started() {
    let alone = Faked::alone("", &["persistent"]);
    assert_eq!((alone.outcome.code, alone.outcome.stdout.as_str()), (0, "0 0 2 3 0\n"));
    let run = Faked::run("", &["persistent"], &[]);
    assert_eq!(run.outcome.stdout, alone.outcome.stdout);
    assert_eq!(common::call(&run.profile(), "MPI_Alltoallv_init_c").count, 1);
}

#[test]
fn what_kills_or_hangs_is_found_beforehand_and_left_alone() {
    let script = format!(
        "{THREE}
        pvar worse LEVEL MPI_INT value 4
        pvar stuck LEVEL MPI_INT value 5
        pvar refused LEVEL MPI_INT value 6
        pvar nameless LEVEL MPI_INT value 7
        fault MPI_T_pvar_start of bad segv
        fault MPI_T_pvar_read of worse abort
        fault MPI_T_pvar_stop of stuck hang
        fault MPI_T_pvar_handle_alloc of refused error MPI_T_ERR_OUT_OF_HANDLES
        fault MPI_T_pvar_get_info of nameless bus"
    );
    let (outcome, file) = Faked::probed(&script, &PROGRAM);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("4 of 7 performance variables kill or hang"), "{outcome:?}");
    let (comments, lines): (Vec<&str>, Vec<&str>) =
        file.lines().partition(|line| line.starts_with('#'));
    assert_eq!(
        lines,
        [
            "bad  # crashes inside the library (SIGSEGV) in MPI_T_pvar_start",
            "worse  # crashes inside the library (SIGABRT) in MPI_T_pvar_read",
            "stuck  # hangs inside the library (over 10 s) in MPI_T_pvar_stop",
            "index 6  # crashes inside the library (SIGBUS) in MPI_T_pvar_get_info",
        ]
    );
    assert!(
        comments.iter().any(|line| line.starts_with("# no harm: refused  # MPI_T_pvar_handle"))
    );
    // A user adds a line, and another that makes no sense.
    let edited = format!("{file}l?st\nthis is nonsense\n");
    let run = Faked::run_with_file(&script, &PROGRAM, "GYAN_QUIRKS", &edited);
    let profile = run.profile();
    knows(&profile, [Whole, Skipped, Skipped]);
    assert_eq!(run.lines("fault"), Vec::<&str>::new());
    let left_out = profile.coverage.skipped.iter();
    let left_out =
        left_out.filter(|skipped| skipped.reason == "left out by the file of GYAN_QUIRKS");
    assert_eq!(left_out.count(), 5);
    let [warning] = &profile.warnings[..] else { panic!("{:?}", profile.warnings) };
    let line = file.lines().count() + 2;
    assert!(warning.starts_with("GYAN_QUIRKS: ") && warning.contains(&format!(":{line}: this is")));
}

#[test]
fn a_probe_overwrites_no_file_and_finds_nothing_in_a_sound_library() {
    for mpi in [MPICH_PVARS, OPENMPI] {
        let here = TempDir::new().unwrap();
        let words = mpi.launch(1, "exit_code", &[]);
        let probe = || {
            let mut command = gyan();
            command.args(["doctor", "--probe=quirks", "--"]).args(&words);
            common::run(command.current_dir(&here))
        };
        let outcome = probe();
        assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stdout.contains("performance variables kills or hangs"), "{outcome:?}");
        let file = fs::read_to_string(here.path().join("quirks")).unwrap();
        assert!(file.lines().count() > 3 || mpi == MPICH_PVARS, "{file}");
        assert!(file.lines().all(|line| line.starts_with('#')), "{file}");
        let again = probe();
        assert_eq!(again.code, 2);
        assert!(again.stderr.contains("quirks: file exists; name another file"), "{again:?}");
        assert_eq!(fs::read_to_string(here.path().join("quirks")).unwrap(), file);
    }
}

#[test]
fn the_handlers_of_signals_are_those_that_there_are_without_gyan() {
    for mpi in MPIS {
        let settings = [("GYAN_BUDGET", "none"), ("GYAN_CRASHES", "off")];
        Profiled::run(mpi, 1, &["handlers"], &settings).succeeded().ends_as_without().profiles();
    }
}

/// While the program runs, crashes are noted.
#[test]
fn after_the_end_of_mpi_the_handlers_of_signals_are_those_that_there_are_without_gyan() {
    for mpi in MPIS {
        let with = Profiled::run(mpi, 1, &["handlers"], &[]);
        let alone = with.without();
        let moment = |when: &str| {
            [&with.outcome, &alone].map(|of| of.stdout.lines().find(|line| line.starts_with(when)))
        };
        for when in ["before MPI_Init:", "after MPI_Finalize:"] {
            let [with, alone] = moment(when);
            assert!(with.is_some() && with == alone, "{when} {with:?} {alone:?}");
        }
        let [with, alone] = moment("after messages:");
        assert_ne!(with, alone);
    }
}

/// Of a communicator that is not a valid one nothing is asked.
#[test]
fn an_error_handler_is_called_for_the_errors_of_the_program_only() {
    for mpi in [OPENMPI, MPICH, OPENMPI_SPC, MPICH_PVARS] {
        let run = Profiled::run(mpi, 1, &["null_comm"], &[("GYAN_BUDGET", "none")]);
        run.succeeded().ends_as_without().profiles();
    }
}

/// Variables that are bound to a communicator are read no more once it is freed, whoever frees it. (`pml_ob1` of Open MPI
/// has variables bound to communicators; reading them later ended the program by SIGSEGV.)
#[test]
fn a_communicator_that_a_callback_frees_is_not_read_any_more() {
    for mpi in [OPENMPI, MPICH, OPENMPI_SPC, MPICH_PVARS] {
        // Every eligible call is a reading.
        let run = Profiled::run(mpi, 2, &["freed_inside"], &[("GYAN_BUDGET", "none")]).succeeded();
        assert_eq!(run.outcome.stdout, "freed\n", "{mpi:?}");
        for profile in run.profiles() {
            assert_eq!(common::call(&profile, "MPI_Sendrecv").count, 22_000, "{mpi:?}");
            assert_eq!(profile.end.how, gyan_results::Ending::Finalize, "{mpi:?}");
        }
    }
}
