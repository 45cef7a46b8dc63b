//! Who may read a profile, and what is not in it?

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::common::{
    MPICH, MPIS, Profiled, command, gyan, libgyan, only_run_directory, profiles, run, succeed,
};

/// A user and a group with no rights: `nobody` and `nogroup`.
const NOBODY: u32 = 65534;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// All files below `directory`.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let (directories, mut found): (Vec<PathBuf>, Vec<PathBuf>) =
        entries.partition(|path| path.is_dir());
    found.extend(directories.iter().flat_map(|directory| files(directory)));
    found
}

#[test]
fn a_run_directory_belongs_to_its_user_unless_said_otherwise() {
    for mpi in MPIS {
        for (setting, umask, directory, file) in [
            ("", "022", 0o700, 0o600),
            ("0755", "022", 0o755, 0o644),
            ("0777", "027", 0o750, 0o640),
        ] {
            let here = TempDir::new().unwrap();
            let output = here.path().join("profile");
            let umask = format!("umask {umask}; exec \"$@\"");
            let mut words = ["sh", "-c", &umask, "sh"].map(str::to_owned).to_vec();
            words.extend(mpi.launch(2, "exit_code", &[]));
            let mut command = command(&words);
            command.env("LD_PRELOAD", libgyan()).env("GYAN_OUTPUT", &output);
            succeed(command.env("GYAN_MODE", setting));
            assert_eq!(mode(&output), directory, "{mpi:?} {setting}");
            for rank in 0..2 {
                let path = output.join(format!("rank-00000{rank}.json"));
                assert_eq!(mode(&path), file, "{mpi:?} {setting}");
            }
        }
    }
}

#[test]
fn gyan_run_makes_a_directory_of_its_own_with_the_same_mode() {
    for (setting, expected) in [("", 0o700), ("0750", 0o750)] {
        let here = TempDir::new().unwrap();
        let mut command = gyan();
        command.args(["run", "--"]).args(MPICH.launch(2, "exit_code", &[]));
        succeed(command.current_dir(&here).env("GYAN_MODE", setting));
        let directory = only_run_directory(here.path());
        assert_eq!(mode(&directory), expected);
        profiles(&directory, 2);
    }
}

#[test]
fn nothing_of_the_environment_is_in_a_profile_but_the_id_of_the_job_and_gyans_settings() {
    // Names like those of tokens, and like those that gyan or an MPI looks for.
    let secrets = [
        "API_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "GYAN_TOKEN",
        "MPICH_TOKEN",
        "MPIR_CVAR_TOKEN",
        "OMPI_MCA_token",
        "PMIX_MCA_token",
        "PMI_TOKEN",
        "SLURM_JWT",
    ];
    for mpi in MPIS {
        let settings: Vec<(&str, &str)> = secrets
            .iter()
            .map(|name| (*name, "hunter2-secret"))
            .chain([("GYAN_CVARS_RECORD", "all"), ("GYAN_JOB_ID", "the-id-of-the-job")])
            .collect();
        let profiled = Profiled::run(mpi, 2, &["exit_code"], &settings).succeeded();
        assert!(!profiled.outcome.stderr.contains("hunter2"), "{}", profiled.outcome.stderr);
        let files = files(&profiled.directory);
        assert_eq!(files.len(), 2);
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.contains("the-id-of-the-job"), "{mpi:?}: the search finds nothing");
            assert!(!text.contains("hunter2"), "{mpi:?}: {}", file.display());
        }
    }
}

#[test]
fn a_command_line_is_not_recorded_when_that_is_off() {
    for mpi in MPIS {
        for (setting, is_recorded) in [("on", true), ("off", false)] {
            let arguments = ["exit_code", "0", "--password=hunter2"];
            let profiled = Profiled::run(mpi, 2, &arguments, &[("GYAN_RECORD_COMMAND", setting)]);
            let found = files(&profiled.directory);
            let holding = found
                .iter()
                .filter(|file| fs::read_to_string(file).unwrap().contains("hunter2"))
                .count();
            assert_eq!(holding, if is_recorded { 2 } else { 0 }, "{mpi:?}");
            for option in [&[][..], &["--environment"]] {
                let report = succeed(gyan().arg("report").args(option).arg(&profiled.directory));
                assert_eq!(report.stdout.contains("(not recorded)"), !is_recorded, "{report:?}");
            }
        }
    }
}

#[test]
fn a_program_with_raised_privileges_never_notices() {
    // Open MPI's ranks do not find their launcher then, with gyan or without.
    let mpi = MPICH;
    for (ranks, user, group, bits) in [
        (2, None, Some(NOBODY), 0o2755),
        // Ranks of another user than the launcher's do not find each other.
        (1, Some(NOBODY), None, 0o4755),
    ] {
        let here = TempDir::new().unwrap();
        let program = here.path().join("program");
        fs::copy(mpi.program("exit_code"), &program).unwrap();
        if let Err(error) = chown(&program, user, group) {
            assert!(std::env::var_os("CI").is_none(), "no program can be given away: {error}");
            eprintln!("skipped: no program can be given away here: {error}");
            return;
        }
        fs::set_permissions(&program, fs::Permissions::from_mode(bits)).unwrap();
        fs::set_permissions(&here, fs::Permissions::from_mode(0o777)).unwrap();
        // A file system may be mounted such that the bits mean nothing.
        let options = run(Command::new("findmnt").args(["-no", "OPTIONS", "-T"]).arg(&program));
        if options.stdout.contains("nosuid") {
            eprintln!("skipped: the temporary directory is on a file system without setuid");
            return;
        }
        let words = mpi.launch_file(ranks, &program, &[]);
        let bare = run(command(&words).current_dir(&here));
        let with = run(command(&words).current_dir(&here).env("LD_PRELOAD", libgyan()));
        assert_eq!((bare.code, with.code), (0, 0), "{mpi:?}: {}", with.stderr);
        assert_eq!(with.stdout_of_ranks(), bare.stdout_of_ranks(), "{mpi:?}");
        assert_eq!(with.stderr, bare.stderr, "{mpi:?}");
        assert_eq!(fs::read_dir(&here).unwrap().count(), 1, "something was written");
    }
}

/// Linked with libgyan.so, it cannot run without it, but it ignores settings to write files.
#[test]
fn a_program_with_raised_privileges_tells_gyan_doctor_nothing() {
    let here = TempDir::new().unwrap();
    let (program, notes) = (here.path().join("program"), here.path().join("notes"));
    fs::copy(libgyan(), here.path().join("libgyan.so")).unwrap();
    fs::create_dir(&notes).unwrap();
    for path in [here.path(), &notes] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let source = here.path().join("program.c");
    fs::write(&source, "int main(void) { return 0; }").unwrap();
    let mut compiler = Command::new("cc");
    compiler.arg(&source).arg("-o").arg(&program).arg(format!("-L{}", here.path().display()));
    compiler.args(["-Wl,--no-as-needed", "-l:libgyan.so"]);
    compiler.arg(format!("-Wl,-rpath,{}", here.path().display()));
    assert_eq!(run(&mut compiler).code, 0);
    let number = || {
        succeed(Command::new(&program).env("GYAN_DOCTOR", &notes));
        fs::read_dir(&notes).unwrap().count()
    };
    assert_eq!(number(), 1);
    if chown(&program, Some(NOBODY), None).is_err() {
        eprintln!("skipped: no program can be given away here");
        return;
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    assert_eq!(number(), 1);
}
