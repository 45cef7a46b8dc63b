//! `gyan doctor` names what keeps libgyan.so from a program on clusters, and its remedy helps: a
//! file that no loader can load, Slurm's exports, containers.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use gyan_results::{Diagnosis, Verdict};
use tempfile::TempDir;

use super::slurm::Slurm;
use crate::common::{MPICH, OPENMPI, command, gyan, libgyan, run, succeed};
use crate::variables::doctor::{diagnosed, obstacle, only_one, says};

/// `gyan doctor --json` as `command` runs it: the code, and what was found.
fn diagnosis(command: &mut Command) -> (i32, Diagnosis) {
    let here = TempDir::new().unwrap();
    diagnosed(command.current_dir(&here))
}

fn only_obstacle(command: &mut Command) -> String {
    only_one(&diagnosis(command))
}

fn doctor(words: &[String]) -> Vec<String> {
    let gyan = gyan().get_program().to_str().unwrap().to_owned();
    [&[gyan, "doctor".into(), "--json".into(), "--".into()], words].concat()
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// A copy of libgyan.so in which `change` changed something.
fn changed(here: &TempDir, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let mut bytes = fs::read(libgyan()).unwrap();
    change(&mut bytes);
    let path = here.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_library_that_this_machine_cannot_load_is_an_obstacle_before_anything_is_started() {
    let here = TempDir::new().unwrap();
    let program = here.path().join("started");
    let words = ["sh".to_owned(), "-c".into(), format!("touch {}", program.display())];
    let newer = changed(&here, "newer.so", |bytes| {
        let places = |bytes: &[u8]| -> Vec<usize> {
            let is_here = |(_, window): &(usize, &[u8])| *window == b"\0GLIBC_2.";
            bytes.windows(9).enumerate().filter(is_here).map(|(at, _)| at).collect()
        };
        let found = places(bytes);
        assert!(!found.is_empty());
        for at in found {
            bytes[at + 7] = b'9';
        }
    });
    let other =
        changed(&here, "other.so", |bytes| bytes[18] = if bytes[18] == 183 { 62 } else { 183 });
    let short = changed(&here, "short.so", |bytes| bytes.truncate(100));
    let no_library = changed(&here, "text.so", |bytes| *bytes = b"no library".to_vec());
    for (library, parts) in [
        (newer, [" needs glibc 9.", "built on a system as old as this one"]),
        (other, ["is for ", "set GYAN_LIBRARY to the libgyan.so for this machine"]),
        (short, ["cannot be loaded by /", ": cannot read file data"]),
        (no_library, ["is no library", "set GYAN_LIBRARY to a libgyan.so"]),
    ] {
        let found = obstacle(&words, &[("GYAN_LIBRARY", &text(&library))]);
        says(&found, &["libgyan.so: ", &text(&library), parts[0], parts[1]]);
        assert!(!program.exists(), "{found}");
    }
}

/// What `doctor` says about the same library when it cannot read the file: the loader's own words.
#[test]
fn a_library_on_a_file_system_that_is_mounted_noexec_is_an_obstacle() {
    let here = TempDir::new().unwrap();
    let library = here.path().join("libgyan.so");
    let mount =
        "mount -t tmpfs -o noexec none \"$1\" && cp \"$2\" \"$1\" && shift 2 && exec \"$@\"";
    let from = text(&libgyan());
    let unshared =
        ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh"].map(str::to_owned);
    let words = [&unshared[..], &[text(here.path()), from]].concat();
    if run(&mut command(&[&words[..], &["true".into()]].concat())).code != 0 {
        eprintln!("skipped: this system lets no user mount anything in a namespace");
        return;
    }
    let with = |words_of_doctor: Vec<String>| {
        let words = [&words[..], &words_of_doctor].concat();
        let mut command = command(&words);
        command.env("GYAN_LIBRARY", &library);
        command
    };
    let found = only_obstacle(&mut with(doctor(&["/bin/true".into()])));
    let parts =
        ["libgyan.so: ", "is on a file system that is mounted noexec", "set GYAN_LIBRARY to it"];
    says(&found, &parts);
    // A program runs as without gyan, except for the loader's line.
    let preload = format!("LD_PRELOAD={}", library.display());
    let outcome = run(&mut with(["env", &preload, "sh", "-c", "exit 3"].map(str::to_owned).into()));
    assert_eq!(outcome.code, 3, "{}", outcome.stderr);
    says(&outcome.stderr, &["cannot be preloaded (failed to map segment"]);
}

/// A command on the way that starts in a different file system.
#[test]
fn a_library_that_cannot_be_loaded_where_the_ranks_are_is_told_in_the_loaders_words() {
    let here = TempDir::new().unwrap();
    let library = changed(&here, "libgyan.so", |_| ());
    let program = MPICH.program("exit_code");
    let away = |name: &str, what: &str| {
        let script = here.path().join(name);
        let library = library.display();
        let text = format!(
            "#!/bin/sh\nmv {library} {library}.away\n{what}\ncode=$?\nmv {library}.away {library}\nexit $code\n"
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        script
    };
    // As a word of the command line, and out of sight.
    let visible = vec![text(&away("away", "\"$@\"")), text(&program)];
    let hidden = vec![text(&away("job", &text(&program)))];
    for (words, name) in [(visible, "exit_code"), (hidden, "job")] {
        let words = [MPICH.mpirun(1), words].concat();
        let found = obstacle(&words, &[("GYAN_LIBRARY", &text(&library))]);
        let finding =
            format!("the loader cannot load libgyan.so where {name} is started: cannot open");
        says(&found, &[&finding, "the same on all nodes"]);
    }
}

#[test]
fn a_program_for_another_processor() {
    let here = TempDir::new().unwrap();
    let program = here.path().join("app");
    let mut bytes = fs::read(MPICH.program("exit_code")).unwrap();
    bytes[18] = if bytes[18] == 183 { 62 } else { 183 };
    fs::write(&program, bytes).unwrap();
    run(Command::new("chmod").arg("755").arg(&program));
    let found = obstacle(&[text(&program)], &[]);
    let remedy = "use the gyan that was built for it";
    says(&found, &["program: ", "/app is for ", ", and libgyan.so for ", remedy]);
}

#[test]
fn what_srun_does_not_export_is_reported_and_gyan_after_it_works() {
    let slurm = Slurm::start();
    for (mpi, plugin) in [(MPICH, "--mpi=pmi2"), (OPENMPI, "--mpi=pmix")] {
        let program = text(&mpi.program("exit_code"));
        let srun = |option: &str| {
            let words = ["srun", "-Q", plugin, option, "-n", "2", &program].map(str::to_owned);
            doctor(&words)
        };
        let of = |words: &[String]| {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            slurm.command(&words)
        };
        for option in ["--export=NONE", "--export=PATH,HOME"] {
            let found = only_obstacle(&mut of(&srun(option)));
            let why = "keeps LD_PRELOAD from the ranks";
            says(&found, &["start: srun ", option, why, "srun ... gyan run"]);
        }
        let found = only_obstacle(of(&srun("-Q")).env("SLURM_EXPORT_ENV", "NONE"));
        says(&found, &["SLURM_EXPORT_ENV=NONE (sbatch --export sets it for a job) keeps"]);
        for (option, environment) in
            [("--export=ALL", "NONE"), ("--export=ALL,X=1", "ALL"), ("-Q", "ALL")]
        {
            let (code, found) = diagnosis(of(&srun(option)).env("SLURM_EXPORT_ENV", environment));
            assert_eq!(code, 0, "{option} {:?}", found.checks);
            let others = found.checks.iter().find(|check| check.what == "others").unwrap();
            says(&others.finding, &["also loaded into srun"]);
        }
        let here = TempDir::new().unwrap();
        let script = format!("#!/bin/sh\n{} >found\n", srun("-Q").join(" "));
        fs::write(here.path().join("script"), script).unwrap();
        let words = ["sbatch", "--parsable", "--export=NONE", "-n", "2", "-o", "out", "script"];
        let job = run(slurm.command(&words).current_dir(&here)).stdout;
        slurm.end_of_job(job.trim());
        let found = fs::read_to_string(here.path().join("found")).unwrap();
        let found: Diagnosis = serde_json::from_str(&found).unwrap();
        let obstacles: Vec<&str> = found.obstacles().map(|check| check.finding.as_str()).collect();
        says(obstacles[0], &["SLURM_EXPORT_ENV=NONE (sbatch --export sets it for a job) keeps"]);

        let here = TempDir::new().unwrap();
        let gyan = text(Path::new(gyan().get_program()));
        let words = ["srun", "-Q", plugin, "--export=NONE", "-n", "2", &gyan, "run", &program];
        succeed(slurm.command(&words).current_dir(&here));
        crate::common::profiles(&crate::common::only_run_directory(here.path()), 2);
    }
}

/// Charliecloud, whose containers need no daemon, no rights and no network: the image is a folder that has the
/// system's `/usr`, and nothing of gyan.
#[test]
fn in_a_container_the_library_is_missing_until_it_is_brought_along() {
    if run(&mut command(&["sh", "-c", "command -v ch-run"])).code != 0 {
        eprintln!("skipped: no ch-run (Debian's package charliecloud-runtime)");
        return;
    }
    let here = TempDir::new_in("/tmp").unwrap();
    let image = here.path().join("image");
    for folder in ["usr", "etc", "dev", "proc", "sys", "tmp", "home", "mnt", "run", "root"] {
        fs::create_dir_all(image.join(folder)).unwrap();
    }
    for file in ["passwd", "group", "hosts", "resolv.conf"] {
        fs::write(image.join("etc").join(file), "").unwrap();
    }
    for folder in ["bin", "lib", "lib64"] {
        symlink(format!("usr/{folder}"), image.join(folder)).unwrap();
    }
    // /tmp is that of the host.
    let program = here.path().join("app");
    fs::copy(MPICH.program("exit_code"), &program).unwrap();
    // Not below the project's folder, which may be in /tmp or in a home directory, which containers have as well.
    let outside = TempDir::new_in("/var/tmp").unwrap();
    let library = outside.path().join("libgyan.so");
    fs::copy(libgyan(), &library).unwrap();
    let found = |bring_along: &[String]| {
        let words = ["ch-run".to_owned(), "--bind=/usr".into()];
        let program = [text(&image), "--".into(), text(&program)];
        let words = [&MPICH.mpirun(1)[..], &words, bring_along, &program].concat();
        let words = doctor(&words);
        let mut command = command(&words);
        command.env("GYAN_LIBRARY", &library).env("USER", "somebody").env_remove("TMPDIR");
        command
    };
    let text_of = only_obstacle(&mut found(&[]));
    let bind = format!("--bind {}", outside.path().display());
    let what = "start: no program in the container of ch-run loads libgyan.so";
    says(&text_of, &[what, "harmless", &bind]);
    // Its remedy.
    fs::create_dir_all(image.join(outside.path().strip_prefix("/").unwrap())).unwrap();
    let bring_along: Vec<String> = bind.split(' ').map(str::to_owned).collect();
    let (code, diagnosis) = diagnosis(&mut found(&bring_along));
    assert_eq!(code, 0, "{:?}", diagnosis.checks);
    assert!(
        diagnosis.checks.iter().any(|check| check.what == "start" && check.verdict == Verdict::Ok)
    );
}

#[test]
fn what_a_shell_preloads_into_everything_is_a_note() {
    let preload = format!("/nonexistent/libother.so:{}", libgyan().display());
    let words = doctor(&[text(&MPICH.program("exit_code"))]);
    let (code, diagnosis) = diagnosis(command(&words).env("LD_PRELOAD", preload));
    assert_eq!(code, 0, "{:?}", diagnosis.checks);
    let notes: Vec<&str> = diagnosis
        .checks
        .iter()
        .filter(|check| check.what == "LD_PRELOAD" && check.verdict == Verdict::Note)
        .map(|check| check.finding.as_str())
        .collect();
    let [gone, everything] = notes[..] else { panic!("{notes:?}") };
    says(gone, &["/nonexistent/libother.so, which does not exist"]);
    says(everything, &["of this shell has libgyan.so", "without MPI it does nothing there"]);
}
