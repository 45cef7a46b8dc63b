//! Monitoring that MPI libraries leave off is turned on when the user asks, and never otherwise.

use std::fs;

use gyan_results::{Number, RankProfile, Values};
use tempfile::TempDir;

use crate::common::{
    MPICH, Mpi, OPENMPI, OPENMPI_SPC, OPENMPI5, Outcome, Profiled, counts, elements, gyan, pvar,
    succeed,
};

fn enabled(mpi: Mpi, program: &[&str], name: &str) -> Profiled {
    Profiled::run(mpi, 3, program, &[("GYAN_ENABLE", name)]).succeeded()
}

/// The change of a variable for each peer.
fn per_peer(profile: &RankProfile, name: &str) -> Vec<i128> {
    let change = elements(pvar(profile, name).delta.as_ref());
    change
        .iter()
        .map(|number| match number {
            Number::Integer(integer) => *integer,
            Number::Double(double) => panic!("{name}: {double}"),
        })
        .collect()
}

/// What the program recorded for `kind` in column `at`, for each peer.
fn truth(run: &Profiled, rank: u32, kind: &str, at: usize) -> Vec<i128> {
    let mut peers = vec![0; 3];
    for line in run.truth(rank).iter().filter(|line| line[0] == kind) {
        let peer: usize = line[1].parse().unwrap();
        peers[peer] = line[at].parse().unwrap();
    }
    peers
}

#[test]
fn monitoring_counts_what_the_program_sends_to_each_peer() {
    for (mpi, point_to_point) in [(OPENMPI, false), (OPENMPI5, true)] {
        let run = enabled(mpi, &["peers"], "monitoring");
        for profile in run.profiles() {
            let rank = profile.rank;
            let what = format!("{mpi:?}, rank {rank}");
            let (messages, bytes) = (truth(&run, rank, "sent", 2), truth(&run, rank, "sent", 3));
            // What gyan counts by itself is the same.
            let (mut own_messages, mut own_bytes) = (vec![0; 3], vec![0; 3]);
            for of in &profile.peers.as_ref().unwrap().messages {
                let peer = of.rank.unwrap() as usize;
                (own_messages[peer], own_bytes[peer]) = (of.number.into(), of.bytes.into());
            }
            assert_eq!((&own_messages, &own_bytes), (&messages, &bytes), "{what}");
            if point_to_point {
                assert!(messages.iter().filter(|messages| **messages > 0).count() == 2);
                let counted = per_peer(&profile, "pml_monitoring_messages_count");
                assert_eq!(counted, messages, "{what}");
                assert_eq!(per_peer(&profile, "pml_monitoring_messages_size"), bytes, "{what}");
            }
            let put = truth(&run, rank, "put", 2);
            assert_eq!(per_peer(&profile, "osc_monitoring_messages_sent_size"), put, "{what}");
            let got = truth(&run, rank, "got", 2);
            assert_eq!(per_peer(&profile, "osc_monitoring_messages_recv_size"), got, "{what}");
            assert!(per_peer(&profile, "coll_monitoring_a2a_count")[0] >= 5, "{what}");
        }
        // It writes files when its own variable is touched.
        let mut files: Vec<_> = fs::read_dir(run.directory.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        assert_eq!(files, ["profile", "truth.0", "truth.1", "truth.2"], "{mpi:?}");
    }
}

#[test]
fn a_name_gives_what_the_librarys_own_setting_gives() {
    for mpi in [OPENMPI, OPENMPI5] {
        let program = ["halo_exchange", "60", "200"];
        let by_name = enabled(mpi, &program, "monitoring").profiles();
        let setting = [("OMPI_MCA_pml_monitoring_enable", "2")];
        let by_hand = Profiled::run(mpi, 3, &program, &setting).profiles();
        for (a, b) in by_name.iter().zip(&by_hand) {
            let monitored = |profile: &RankProfile| -> Vec<(String, Option<Values>)> {
                let own = profile.pvars.iter().filter(|pvar| pvar.name.contains("_monitoring_"));
                own.map(|pvar| (pvar.name.clone(), pvar.delta.clone())).collect()
            };
            assert_eq!(monitored(a), monitored(b), "{mpi:?}");
            assert!(monitored(a).len() >= 10, "{mpi:?}");
            assert_eq!(per_peer(a, "coll_monitoring_a2a_count"), [4]);
        }
    }
}

#[test]
fn software_counters_count_the_calls() {
    let run = enabled(OPENMPI_SPC, &["halo_exchange", "90", "150"], "spc");
    for profile in run.profiles() {
        let counted = pvar(&profile, "runtime_spc_OMPI_SPC_IRECV");
        let calls = counts(&profile)["MPI_Irecv"];
        assert_eq!(elements(counted.delta.as_ref()), [Number::Integer(calls.into())]);
        let advice = &profile.coverage.advice;
        assert!(!advice.iter().any(|advice| advice.contains("--enable spc")), "{advice:?}");
    }
}

#[test]
fn nothing_is_turned_on_by_itself_and_the_advice_names_what_could_be() {
    for (mpi, name) in [(OPENMPI, "monitoring"), (OPENMPI5, "monitoring"), (OPENMPI_SPC, "spc")] {
        let run = Profiled::run(mpi, 2, &["halo_exchange", "60", "50"], &[]);
        for profile in run.profiles() {
            let variables = ["pml_monitoring_enable", "mpi_spc_attach"];
            assert!(profile.cvars.iter().all(|cvar| !variables.contains(&cvar.name.as_str())));
            assert!(!profile.pvars.iter().any(|pvar| pvar.name.contains("_monitoring_")));
            let spc = profile.pvars.iter().filter(|pvar| pvar.name.starts_with("runtime_spc_"));
            for pvar in spc.filter(|pvar| pvar.delta.is_some()) {
                assert_eq!(elements(pvar.delta.as_ref()), [Number::Integer(0)], "{}", pvar.name);
            }
            let remedy = format!("gyan run --enable {name}");
            let advice = &profile.coverage.advice;
            let named = advice.iter().filter(|advice| advice.ends_with(&remedy));
            assert_eq!(named.count(), 1, "{mpi:?} {advice:?}");
        }
    }
}

/// `gyan run --enable <names>`, and what gyan said.
fn gyan_run(mpi: Mpi, names: &str, settings: &[(&str, &str)]) -> (Outcome, Vec<RankProfile>) {
    let here = TempDir::new().unwrap();
    let mut command = gyan();
    command.args(["run", "-o", "out", "--no-report", "--enable", names, "--"]);
    command.args(mpi.mpirun(2)).arg(mpi.program("exit_code"));
    let outcome = succeed(command.current_dir(&here).envs(settings.iter().copied()));
    (outcome, crate::common::profiles(&here.path().join("out"), 2))
}

#[test]
fn a_name_that_is_not_there_is_one_warning_with_what_there_is() {
    for (mpi, name, words) in [
        (OPENMPI, "nonsense", "it has monitoring, spc"),
        (OPENMPI, "spc", "built with configure's --enable-spc"),
        (OPENMPI5, "spc", "built with configure's --enable-spc"),
        (OPENMPI_SPC, "monitoring", "built with dynamic components"),
        (MPICH, "spc", "nothing that gyan can turn on"),
    ] {
        let (outcome, profiles) = gyan_run(mpi, name, &[]);
        let [line] = outcome.notices()[..] else { panic!("{mpi:?} {}", outcome.stderr) };
        assert!(line.starts_with(&format!("gyan: GYAN_ENABLE: {name}: ")), "{line}");
        assert!(line.contains(words), "{line}");
        // Other warnings of a rank, such as a hanging disk, are not tested here.
        let of_setting = |warning: &&String| warning.starts_with("GYAN_ENABLE");
        let noted = profiles[1].warnings.iter().filter(of_setting).count();
        assert_eq!(noted, 1, "{:?}", profiles[1].warnings);
    }
}

#[test]
fn all_is_whatever_there_is_without_a_word() {
    for (mpi, cvar) in
        [(OPENMPI, "pml_monitoring_enable"), (OPENMPI_SPC, "mpi_spc_attach"), (MPICH, "")]
    {
        let (outcome, profiles) = gyan_run(mpi, "all", &[]);
        assert!(outcome.notices().is_empty(), "{mpi:?} {}", outcome.stderr);
        let by_gyan = profiles[0].cvars.iter().filter(|cvar| {
            cvar.set_by.as_deref() == Some("GYAN_ENABLE") && cvar.value == cvar.requested
        });
        let names: Vec<&str> = by_gyan.map(|cvar| cvar.name.as_str()).collect();
        assert!(cvar.is_empty() == names.is_empty(), "{mpi:?} {names:?}");
        assert!(cvar.is_empty() || names.contains(&cvar), "{mpi:?} {names:?}");
    }
}

#[test]
fn what_the_user_set_himself_stays() {
    let cvar = "pml_monitoring_enable";
    let home = TempDir::new().unwrap();
    let file = home.path().join(".openmpi/mca-params.conf");
    fs::create_dir(file.parent().unwrap()).unwrap();
    fs::write(&file, "pml_monitoring_enable = 0\n").unwrap();
    for (setting, by) in [
        (("OMPI_MCA_pml_monitoring_enable", "0"), "OMPI_MCA_pml_monitoring_enable"),
        (("GYAN_CVARS", "pml_monitoring_enable=0"), "GYAN_CVARS"),
        (("HOME", home.path().to_str().unwrap()), file.to_str().unwrap()),
    ] {
        let (outcome, profiles) = gyan_run(OPENMPI, "monitoring", &[setting]);
        let [line] = outcome.notices()[..] else { panic!("{}", outcome.stderr) };
        assert!(line.contains(&format!("{by} sets {cvar} to \"0\", which stays")), "{line}");
        let recorded = profiles[0].cvars.iter().find(|recorded| recorded.name == cvar).unwrap();
        assert_eq!(recorded.value.as_deref(), Some("0"));
        assert!(!profiles[0].pvars.iter().any(|pvar| pvar.name.contains("_monitoring_")));
    }
    // The same value as requested is not a contradiction.
    let same = ("OMPI_MCA_pml_monitoring_enable", "2");
    let (outcome, profiles) = gyan_run(OPENMPI, "monitoring", &[same]);
    assert!(outcome.notices().is_empty(), "{}", outcome.stderr);
    assert!(profiles[0].pvars.iter().any(|pvar| pvar.name.contains("_monitoring_")));
}

#[test]
fn after_a_missed_start_what_to_set_is_said() {
    let run = Profiled::run(OPENMPI, 1, &["late"], &[("GYAN_ENABLE", "monitoring")]).succeeded();
    let warnings = &run.profiles()[0].warnings;
    let said =
        warnings.iter().any(|warning| warning.contains("set OMPI_MCA_pml_monitoring_enable=2"));
    assert!(said, "{warnings:?}");
}
