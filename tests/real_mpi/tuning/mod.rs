//! `gyan tune`: whether a setting took is proven, what fails is out, and nothing is left behind.

mod mpis;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use gyan_results::{Took, Trial, TrialVerdict, TuneEnd, Tuning};
use tempfile::TempDir;

use crate::common::{Outcome, gyan, run, succeed};
use crate::fakempi::Faked;

/// It neither reads the environment nor says so, as it says it is MPICH.
const DEAF: &str = "library MPICH Version: 5.0.0\ncvar MPIR_CVAR_DEAF MPI_INT value 4";
const HEARS: &str = "cvar heard MPI_INT value 4";
const PROGRAM: &str = "\"$PROGRAM\" 0 0";

/// Runs a tune in `here` and reads what it found.
fn tune(here: &TempDir, script: &str, words: &[&str], shell: &str) -> (Outcome, Tuning) {
    let words = [&["tune", "-o", "tuned"], words].concat();
    let outcome = Faked::in_shell(here.path(), script, &words, shell, "fake_events");
    (outcome, tuning(&here.path().join("tuned")))
}

fn tuning(directory: &Path) -> Tuning {
    serde_json::from_str(&fs::read_to_string(directory.join("tune.json")).unwrap()).unwrap()
}

fn trial<'a>(tuning: &'a Tuning, value: &str) -> &'a Trial {
    let is_one = |trial: &&Trial| trial.settings.iter().any(|setting| setting.value == value);
    tuning.trials.iter().find(is_one).unwrap_or_else(|| panic!("no {value}: {tuning:?}"))
}

/// How many runs there are.
fn runs(directory: &Path) -> usize {
    fs::read_to_string(directory.join("tune.jsonl")).unwrap().lines().count() - 1
}

#[test]
fn a_library_that_ignores_a_setting_is_found_out() {
    let here = TempDir::new().unwrap();
    let (outcome, tuning) = tune(&here, DEAF, &["--set", "MPIR_CVAR_DEAF=8,16"], PROGRAM);
    assert_eq!((outcome.code, tuning.end), (1, TuneEnd::Decided), "{}", outcome.stderr);
    assert_eq!(tuning.winner, None);
    for value in ["8", "16"] {
        let trial = trial(&tuning, value);
        assert_eq!(trial.verdict, TrialVerdict::Ignored, "{trial:?}");
        let Took::Ignored(why) = &trial.took else { panic!("{trial:?}") };
        assert_eq!(why, "rank 0: the library has 4");
        assert_eq!(trial.raced.len(), 1, "it is not run again");
    }
    assert!(
        outcome.stdout.starts_with("None of the settings could be tried\n"),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stdout.contains("was ignored: rank 0: the library has 4"),
        "{}",
        outcome.stdout
    );
    assert!(!here.path().join("tuned/settings.env").exists());
}

#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn a_setting_that_took_is_read_back_and_a_wrong_one_is_refused_in_one_line() {
    let here = TempDir::new().unwrap();
    let words = ["--set", "heard=8", "--env", "NOBODY_READS=1"];
    let (outcome, tuning) = tune(&here, HEARS, &words, PROGRAM);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(trial(&tuning, "8").took, Took::OnEveryRank, "{tuning:?}");
    let Took::Unproven(why) = &trial(&tuning, "1").took else { panic!("{tuning:?}") };
    assert!(why.contains("nothing reads it back"), "{why}");
    let words = ["tune", "-o", "other", "--set", "hard=8"];
    let outcome = Faked::in_shell(here.path(), HEARS, &words, PROGRAM, "fake_events");
    let line = "gyan: --set hard=8: this MPI library has no such control variable; look for it with gyan \
                varlist --match, or try it with --env";
    assert_eq!(outcome.code, 2);
    assert_eq!(outcome.stderr.lines().last(), Some(line));
}

/// With each value the program does something else: ends with a code, prints something else, dies, or does not end.
#[test]
#[ignore = "measures: scripts/test runs it alone"]
fn what_crashes_hangs_or_prints_something_else_is_out_and_nothing_is_left() {
    let shell = format!(
        "{PROGRAM}; echo fine; case \"$DOES\" in fails) exit 3;; prints) echo more;; dies) kill -9 $$;; \
         hangs) sleep 1000 & echo $! > left; wait;; esac"
    );
    let here = TempDir::new().unwrap();
    let words = ["--env", "DOES=fails,prints,dies,hangs,works", "--same-output"];
    let begun = Instant::now();
    let (outcome, tuning) = tune(&here, HEARS, &words, &shell);
    assert!(begun.elapsed() >= Duration::from_secs(10), "that is the least limit");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for (value, why) in [
        ("fails", "ended with code 3"),
        ("prints", "its output is not that of the first run"),
        ("dies", "died of signal 9"),
        ("hangs", "still ran after"),
    ] {
        let trial = trial(&tuning, value);
        assert_eq!(trial.verdict, TrialVerdict::Disqualified, "{trial:?}");
        assert!(trial.why.as_ref().unwrap().starts_with(why), "{trial:?}");
    }
    assert_ne!(trial(&tuning, "works").verdict, TrialVerdict::Disqualified, "{tuning:?}");
    let left = fs::read_to_string(here.path().join("left")).unwrap();
    let process = Path::new("/proc").join(left.trim());
    assert!(!process.exists(), "{} still runs", process.display());
}

#[test]
fn a_check_of_the_output_decides_too() {
    let here = TempDir::new().unwrap();
    let shell = format!("{PROGRAM}; echo result ${{DOES:-right}}");
    let words = ["--env", "DOES=wrong,right", "--check", "grep -q right"];
    let (_, tuning) = tune(&here, HEARS, &words, &shell);
    assert_eq!(trial(&tuning, "wrong").why.as_deref(), Some("--check ended with code 1"));
    assert_ne!(trial(&tuning, "right").verdict, TrialVerdict::Disqualified);
}

/// The number that counts is in the output: no time is measured.
#[test]
fn a_number_of_the_output_is_the_measure_and_a_tune_goes_on_where_it_was_stopped() {
    let here = TempDir::new().unwrap();
    let shell = format!(
        "{PROGRAM}; n=$(cat n 2>/dev/null || echo 0); n=$((n + 1)); echo $n > n; echo \"speed ${{BY:-1}}00.$n MB/s\""
    );
    let words = ["--env", "BY=2,3", "--metric", "speed ([0-9.]+)", "--higher"];
    let stopped = [&words[..], &["--budget", "1ms"]].concat();
    let (outcome, tuning) = tune(&here, HEARS, &stopped, &shell);
    assert_eq!((outcome.code, tuning.end), (1, TuneEnd::OutOfBudget), "{}", outcome.stderr);
    let directory = here.path().join("tuned");
    let first = fs::read_to_string(directory.join("tune.jsonl")).unwrap();
    let before = runs(&directory);
    let (outcome, tuning) = tune(&here, HEARS, &words, &shell);
    assert_eq!((outcome.code, tuning.end), (0, TuneEnd::Decided), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(&format!("gyan: {before} runs of before are taken over")));
    assert!(fs::read_to_string(directory.join("tune.jsonl")).unwrap().starts_with(&first));
    assert_eq!(tuning.trials[tuning.winner.unwrap()].settings[0].value, "3");
    assert_eq!(trial(&tuning, "3").verdict, TrialVerdict::Better);
    let text = fs::read_to_string(directory.join("settings.env")).unwrap();
    assert!(text.ends_with("\nexport BY=3\n"), "{text}");
    // A third one runs nothing, and says the same.
    let all = runs(&directory);
    let (again, same) = tune(&here, HEARS, &words, &shell);
    assert_eq!((runs(&directory), same.trials), (all, tuning.trials), "{}", again.stderr);
    // Nor does it mix with runs of another library. The budget lets it make more runs.
    let tuned = directory.join("tune.jsonl");
    let text = fs::read_to_string(&tuned).unwrap();
    let first: Vec<&str> = text.lines().take(3).collect();
    fs::write(&tuned, first.join("\n") + "\n").unwrap();
    let newer = "library another MPI 2\ncvar heard MPI_INT value 4";
    let words = [&["tune", "-o", "tuned"], &words[..]].concat();
    let other = Faked::in_shell(here.path(), newer, &words, &shell, "fake_events");
    assert_eq!(other.code, 2, "{}", other.stderr);
    assert!(
        other.stderr.contains("cannot be compared with new ones: the MPI library was"),
        "{}",
        other.stderr
    );
    assert!(other.stderr.contains("another MPI 2"), "{}", other.stderr);
    fs::write(&tuned, text).unwrap();
    // Another tune does not mix with it.
    let words = ["tune", "-o", "tuned", "--env", "BY=4"];
    let other = Faked::in_shell(here.path(), HEARS, &words, &shell, "fake_events");
    assert_eq!(other.code, 2);
    assert!(other.stderr.contains("holds runs of another tune"), "{}", other.stderr);
    // What it left is what other commands read.
    succeed(gyan().args(["report", "tuned/runs/default/run-1"]).current_dir(&here));
}

/// Settings of a file, and two that are better together: the speed is the product of what they do.
#[test]
fn settings_of_a_file_are_tried_and_what_is_better_is_tried_together() {
    let here = TempDir::new().unwrap();
    fs::write(here.path().join("knobs"), "# by hearsay\nheard=8,16 # both\n").unwrap();
    let shell = format!(
        "{PROGRAM}; n=$(cat n 2>/dev/null || echo 0); n=$((n + 1)); echo $n > n; \
         echo \"speed $((100 * (1 + ${{ONE:-0}}) * (1 + ${{OTHER:-0}}))).$n MB/s\""
    );
    let measure = ["--metric", "speed ([0-9.]+)", "--higher"];
    let options = ["--knobs", "knobs", "--env", "ONE=1", "--env", "OTHER=1", "--together"];
    let (outcome, tuning) = tune(&here, HEARS, &[&options[..], &measure].concat(), &shell);
    assert_eq!((outcome.code, tuning.end), (0, TuneEnd::Decided), "{}", outcome.stderr);
    for value in ["8", "16"] {
        assert_eq!(trial(&tuning, value).took, Took::OnEveryRank, "{tuning:?}");
    }
    let winner = &tuning.trials[tuning.winner.unwrap()];
    let mut names: Vec<&str> =
        winner.settings.iter().map(|setting| setting.name.as_str()).collect();
    names.sort_unstable();
    // That of the file does nothing, so chance decides whether it is in.
    names.retain(|name| *name != "heard");
    assert_eq!(names, ["ONE", "OTHER"], "{tuning:?}");
    let gain = winner.gain.unwrap();
    assert!(gain.low > 2.0, "four times as fast: {gain:?}");
}

/// The fourth run interrupts the tune, as Ctrl-C does.
#[test]
fn an_interrupted_tune_prints_what_is_known_leaves_nothing_behind_and_goes_on() {
    let here = TempDir::new().unwrap();
    let shell = format!(
        "{PROGRAM}; n=$(cat n 2>/dev/null || echo 0); n=$((n + 1)); echo $n > n; \
         if [ $n = 4 ]; then echo $$ > left; kill -INT $PPID; sleep 1000; fi; echo \"speed ${{BY:-1}}00.$n MB/s\""
    );
    let words = ["--env", "BY=2,3", "--metric", "speed ([0-9.]+)", "--higher"];
    let (outcome, tuning) = tune(&here, HEARS, &words, &shell);
    assert_eq!((outcome.code, tuning.end), (1, TuneEnd::Interrupted), "{}", outcome.stderr);
    assert!(outcome.stdout.starts_with("Interrupted: nothing is decided yet\n"), "{outcome:?}");
    assert_eq!(trial(&tuning, "2").raced.len(), 1, "what is known is told: {tuning:?}");
    let left = fs::read_to_string(here.path().join("left")).unwrap();
    assert!(!Path::new("/proc").join(left.trim()).exists(), "{left}");
    assert_eq!(runs(&here.path().join("tuned")), 3);
    let (outcome, tuning) = tune(&here, HEARS, &words, &shell);
    assert_eq!((outcome.code, tuning.end), (0, TuneEnd::Decided), "{}", outcome.stderr);
    assert_eq!(trial(&tuning, "3").verdict, TrialVerdict::Better, "{tuning:?}");
    // The page says what the terminal says.
    let page = run(gyan().args(["open", "tuned"]).current_dir(&here).env_remove("DISPLAY"));
    assert_eq!((page.code, page.stdout.as_str()), (0, "tuned/tune.html\n"), "{}", page.stderr);
    let text = fs::read_to_string(here.path().join("tuned/tune.html")).unwrap();
    let headline = outcome.stdout.lines().next().unwrap();
    assert!(headline.starts_with("BY=3 gains ") && text.contains("BY=3 gains "), "{headline}");
}

#[test]
fn a_program_with_no_potential_is_said_to_have_none() {
    let here = TempDir::new().unwrap();
    let (outcome, tuning) = tune(&here, HEARS, &[], PROGRAM);
    assert_eq!((outcome.code, tuning.end), (0, TuneEnd::NothingToTry), "{}", outcome.stderr);
    let said = "No setting is known that could make this program faster\n";
    assert!(outcome.stdout.starts_with(said), "{}", outcome.stdout);
    assert_eq!(runs(&here.path().join("tuned")), 1, "one run says so");
}

#[test]
fn a_program_that_fails_by_itself_is_not_tuned() {
    let here = TempDir::new().unwrap();
    let words = ["tune", "-o", "tuned"];
    let shell = format!("{PROGRAM}; echo it is broken >&2; exit 4");
    let outcome = Faked::in_shell(here.path(), HEARS, &words, &shell, "fake_events");
    assert_eq!(outcome.code, 2);
    let last = outcome.stderr.lines().last().unwrap();
    assert!(last.contains("ended with code 4") && last.contains("it is broken"), "{last}");
}
