//! Monitoring that MPI libraries leave off is turned on when the user asks, and never otherwise.

use std::fs;

use gyan_results::{Number, RankProfile, Values};
use tempfile::TempDir;

use crate::common::{
    MPICH, MPICH_PVARS, Mpi, OPENMPI, OPENMPI_SPC, OPENMPI5, Profiled, counts, elements,
    only_warning, pvar,
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
        // Open MPI counts its own calls here, so two independent counts are compared.
        let calls = counts(&profile)["MPI_Irecv"];
        assert_eq!((calls, profile.coverage.exported), (300, 113));
        assert_eq!(elements(counted.delta.as_ref()), [Number::Integer(calls.into())]);
        let advice = &profile.coverage.advice;
        assert!(!advice.iter().any(|advice| advice.contains("--enable spc")), "{advice:?}");
    }
}

#[test]
fn nothing_is_turned_on_or_done_by_itself_and_the_advice_names_what_could_be() {
    for (mpi, advised) in [
        (OPENMPI, "gyan run --enable monitoring"),
        (OPENMPI5, "gyan run --enable monitoring"),
        (OPENMPI_SPC, "gyan run --enable spc"),
        (MPICH, "--enable-mpit-pvars=all"),
        (MPICH_PVARS, ""),
    ] {
        let ob1 = [("OMPI_MCA_pml", "ob1")];
        for profile in Profiled::run(mpi, 2, &["unexpected"], &ob1).succeeded().profiles() {
            let variables = ["pml_monitoring_enable", "mpi_spc_attach"];
            assert!(profile.cvars.iter().all(|cvar| !variables.contains(&cvar.name.as_str())));
            assert!(!profile.pvars.iter().any(|pvar| pvar.name.contains("_monitoring_")));
            let spc = profile.pvars.iter().filter(|pvar| pvar.name.starts_with("runtime_spc_"));
            for pvar in spc.filter(|pvar| pvar.delta.is_some()) {
                assert_eq!(elements(pvar.delta.as_ref()), [Number::Integer(0)], "{}", pvar.name);
            }
            let advice = &profile.coverage.advice;
            let named = advice.iter().filter(|advice| advice.contains(advised));
            assert_eq!(named.count(), usize::from(!advised.is_empty()), "{advice:?}");
            // Without variables there are still the calls.
            assert_eq!(profile.pvars.is_empty(), mpi == MPICH, "{:?}", profile.coverage);
            assert!(counts(&profile)["MPI_Finalize"] == 1 && profile.phases.is_empty());
            assert!(profile.series.is_none() && profile.watch.is_none());
            assert!(profile.messages.is_empty() && profile.events.is_empty());
            assert!(profile.coverage.events.is_empty(), "{:?}", profile.coverage.events);
            assert!(profile.overhead.events_s.abs() < f64::EPSILON);
        }
    }
}

/// A run by `gyan run --enable <names>`.
fn gyan_run(mpi: Mpi, names: &str, settings: &[(&str, &str)]) -> Profiled {
    let options = ["--no-report", "--enable", names];
    Profiled::by_command(&options, 2, &mpi.launch(2, "exit_code", &[]), settings).succeeded()
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
        let run = gyan_run(mpi, name, &[]);
        let [line] = run.outcome.notices()[..] else { panic!("not one line") };
        assert!(line.starts_with(&format!("gyan: GYAN_ENABLE: {name}: ")), "{line}");
        assert!(line.contains(words), "{line}");
        only_warning(&run.profiles()[1], "GYAN_ENABLE: ");
    }
}

#[test]
fn all_is_whatever_there_is_without_a_word() {
    for (mpi, cvar) in
        [(OPENMPI, "pml_monitoring_enable"), (OPENMPI_SPC, "mpi_spc_attach"), (MPICH, "")]
    {
        let run = gyan_run(mpi, "all", &[]);
        assert!(run.outcome.notices().is_empty());
        let profiles = run.profiles();
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
        let run = gyan_run(OPENMPI, "monitoring", &[setting]);
        let [line] = run.outcome.notices()[..] else { panic!("not one line") };
        let profiles = run.profiles();
        assert!(line.contains(&format!("{by} sets {cvar} to \"0\", which stays")), "{line}");
        let recorded = profiles[0].cvars.iter().find(|recorded| recorded.name == cvar).unwrap();
        assert_eq!(recorded.value.as_deref(), Some("0"));
        assert!(!profiles[0].pvars.iter().any(|pvar| pvar.name.contains("_monitoring_")));
    }
    // The same value as requested is not a contradiction.
    let same = ("OMPI_MCA_pml_monitoring_enable", "2");
    let run = gyan_run(OPENMPI, "monitoring", &[same]);
    assert!(run.outcome.notices().is_empty());
    assert!(run.profiles()[0].pvars.iter().any(|pvar| pvar.name.contains("_monitoring_")));
}

#[test]
fn after_a_missed_start_what_to_set_is_said() {
    let run = Profiled::run(OPENMPI, 1, &["late"], &[("GYAN_ENABLE", "monitoring")]).succeeded();
    only_warning(&run.profiles()[0], "set OMPI_MCA_pml_monitoring_enable=2");
}
