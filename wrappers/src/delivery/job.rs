//! Which run is this? According to the launcher, the command line and the node, without communication.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gyan_results::{Label, SiteSettings};
use rustix::process::getuid;

use crate::config::{Config, Live, launcher};
use crate::delivery::output::RunPlace;
use crate::delivery::record::SiteRecord;
use crate::sys::kernel_files;

/// A launcher is at most this many processes above its ranks: there are proxies and shells in between.
const LEVELS: usize = 4;

/// The run that this process belongs to. Processes that `MPI_Comm_spawn` starts have an
/// `MPI_COMM_WORLD` of their own, with a rank 0 of its own: they are a run of their own.
pub(crate) struct Job {
    /// The same on every rank of the run, different from that of other runs.
    pub(crate) id: String,
    /// Empty when the user does not want it recorded.
    pub(crate) command: Vec<String>,
    pub(crate) labels: Vec<Label>,
    pub(crate) host: String,
    pub(crate) pid: u32,
    /// UTC, RFC 3339.
    pub(crate) started: String,
    /// Where the profiles go.
    pub(crate) place: RunPlace,
    /// Where the live files are; none for nowhere.
    pub(crate) live: Option<RunPlace>,
    /// The directory of its metrics; none for nowhere.
    pub(crate) metrics: Option<PathBuf>,
    pub(crate) program: String,
    /// Alternatives for profiles that cannot be written there: the first that works.
    pub(crate) elsewhere: Vec<RunPlace>,
    /// Of what the site gets a record instead; none for the run of a user.
    pub(crate) record: Option<SiteRecord>,
}

impl Job {
    /// `spawned`: this process was started by `MPI_Comm_spawn`; `begun`: when the run began.
    pub(crate) fn of_this_process(config: &Config, spawned: bool, begun: Instant) -> Job {
        let pid = std::process::id();
        let of_launcher = || id_of_launcher(spawned).unwrap_or_else(|| process_id(pid));
        let id = match &config.job_id {
            // Spawned processes inherit the user's id.
            Some(id) if spawned => format!("{id}-{}", of_launcher()),
            Some(id) => id.clone(),
            None => of_launcher(),
        };
        let name = file_name_of(program());
        let mode = config.mode;
        let named = |parent: &Path, kind| {
            RunPlace::named(&absolute(parent), mode, kind, &name, &file_name_of(&id))
        };
        let record = config.site.as_ref().map(|site| site_record(site, &id));
        let place = match (&record, &config.output) {
            (Some(record), _) => RunPlace::chosen(&record.spool, mode),
            (None, Some(directory)) if spawned => named(directory, "spawned"),
            (None, Some(directory)) => RunPlace::chosen(&absolute(directory), mode),
            (None, None) => named(Path::new(""), "gyan"),
        };
        let live = match &config.live {
            Live::Off => None,
            Live::InOutput => Some(place.clone()),
            Live::In(directory) => Some(named(directory, "gyan")),
        };
        let temporary = launcher("TMPDIR").into_iter().chain(["/tmp".into(), "/dev/shm".into()]);
        let elsewhere = temporary.map(|directory| named(Path::new(&directory), "gyan"));
        // A record goes nowhere but into the spool.
        let elsewhere = elsewhere.filter(|_| record.is_none()).collect();
        Job {
            id,
            command: if config.record_command { words_of("self") } else { Vec::new() },
            labels: labels(config),
            host: host(),
            pid,
            started: timestamp(
                SystemTime::now().checked_sub(begun.elapsed()).unwrap_or(UNIX_EPOCH),
            ),
            place,
            live,
            metrics: config.metrics.clone(),
            program: program().to_owned(),
            elsewhere,
            record,
        }
    }
}

/// Whether the site wants a record of this run: the same on all ranks of a program. `settings`: the site's.
pub(crate) fn is_recorded(settings: &SiteSettings) -> bool {
    // Where there is no batch system, the processes of one launch are a job. One without an id is never chosen.
    let job = || batch_job(&launcher).or_else(|| id_of_launcher(false));
    let is_chosen = settings.one_in.get() == 1 || job().is_some_and(|job| settings.chooses(&job));
    is_chosen && !settings.leaves_out(program(), getuid().as_raw())
}

/// `id`: of the run.
fn site_record(settings: &SiteSettings, id: &str) -> SiteRecord {
    let job = batch_job(&launcher);
    SiteRecord {
        spool: settings.spool.clone(),
        cluster: settings.cluster.clone(),
        step: job.as_ref().and_then(|_| launcher("SLURM_STEP_ID")),
        job: job.unwrap_or_else(|| id.to_owned()),
        user: getuid().as_raw(),
        program: program().to_owned(),
    }
}

/// The id of the job in the batch system, if there is one.
fn batch_job(lookup: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let lsf = || {
        let (job, index) = (lookup("LSB_JOBID")?, lookup("LSB_JOBINDEX"));
        // 0 for a job that is no array.
        let index = index.filter(|index| index != "0");
        Some(index.map_or_else(|| job.clone(), |index| format!("{job}[{index}]")))
    };
    lookup("SLURM_JOB_ID").or_else(|| lookup("PBS_JOBID")).or_else(lsf)
}

fn labels(config: &Config) -> Vec<Label> {
    let label =
        |(name, value): &(String, String)| Label { name: name.clone(), value: value.clone() };
    config.labels.iter().map(label).collect()
}

/// The absolute path of `directory`, so that it stays valid if the program changes its directory. Unchanged if
/// the current directory no longer exists.
fn absolute(directory: &Path) -> PathBuf {
    env::current_dir().map_or_else(|_| directory.to_owned(), |here| here.join(directory))
}

pub(crate) fn host() -> String {
    kernel_files::text("/proc/sys/kernel/hostname")
        .map_or_else(|| "unknown".into(), |name| name.trim().to_owned())
}

/// Whether this process speaks for its node: the first rank on it, according to the launcher.
pub(crate) fn speaks_for_node() -> bool {
    ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"]
        .into_iter()
        .find_map(launcher)
        .is_none_or(|rank| rank == "0")
}

/// The id that the launcher gave to the run.
fn id_of_launcher(spawned: bool) -> Option<String> {
    let start = if spawned {
        StartedBy::Spawned(world_of_spawned(Ancestor::proxy()))
    } else {
        StartedBy::Launched
    };
    id_from(&launcher, &start, &Ancestor::proxy)
}

/// What started the processes of this run.
enum StartedBy {
    Launched,
    /// `MPI_Comm_spawn`. The name tells them from others with the same parent process.
    Spawned(Option<String>),
}

/// `lookup` reads an environment variable, `proxy` finds the ancestor that started this process.
fn id_from<'a>(
    lookup: &dyn Fn(&str) -> Option<String>,
    start: &StartedBy,
    proxy: &dyn Fn() -> &'a Ancestor,
) -> Option<String> {
    let slurm_job = lookup("SLURM_JOB_ID");
    let slurm_step = || Some(format!("{}.{}", slurm_job.clone()?, lookup("SLURM_STEP_ID")?));
    // PMIx: Open MPI's launchers, and srun --mpi=pmix, for which Slurm's own id reads better. Under mpirun
    // inside a Slurm job the step is that of the daemons, and is not set on every node. Spawned processes have
    // their own namespace.
    if let Some(namespace) = lookup("PMIX_NAMESPACE") {
        return match (namespace.starts_with("slurm."), &slurm_job) {
            (true, _) => slurm_step().or(Some(namespace)),
            (false, Some(job)) => Some(format!("{job}-{namespace}")),
            (false, None) => Some(namespace),
        };
    }
    // Hydra (MPICH, Intel MPI), on the launcher's node and on others. The step is the launcher's, so spawned
    // processes share it.
    if lookup("HYDI_CONTROL_FD").is_some() || lookup("MPI_LOCALRANKID").is_some() {
        let launch = id_of_hydra(lookup, start, proxy());
        let launch =
            slurm_job.as_ref().map_or_else(|| launch.clone(), |job| format!("{job}-{launch}"));
        return Some(match start {
            StartedBy::Launched => slurm_step().unwrap_or(launch),
            StartedBy::Spawned(None) => launch,
            StartedBy::Spawned(Some(world)) => format!("{launch}-{world}"),
        });
    }
    lookup("SLURM_PROCID")
        .and_then(|_| slurm_step())
        .or_else(|| ["PMI_JOBID", "PMI_ID_JOB"].into_iter().find_map(lookup))
}

/// With these, Hydra's launcher takes the first free port of a few, which is the same in successive runs.
const PORT_RANGES: [&str; 10] = [
    "MPIEXEC_PORT_RANGE",
    "MPIEXEC_PORTRANGE",
    "MPICH_PORT_RANGE",
    "MPICH_PORTRANGE",
    "MPICH_CH3_PORT_RANGE",
    "MPIR_CVAR_PORT_RANGE",
    "MPIR_CVAR_PORTRANGE",
    "MPIR_CVAR_CH3_PORT_RANGE",
    "MPIR_PARAM_PORT_RANGE",
    "MPIR_PARAM_CH3_PORT_RANGE",
];

/// Hydra sets no id, but the processes of one launch share something that no others have.
fn id_of_hydra(
    lookup: &dyn Fn(&str) -> Option<String>,
    start: &StartedBy,
    proxy: &Ancestor,
) -> String {
    // When MPICH 5 spawns, these are the numbers of the original launch.
    let is_one_node = matches!(start, StartedBy::Launched)
        && lookup("PMI_SIZE").is_some_and(|ranks| lookup("MPI_LOCALNRANKS") == Some(ranks));
    let is_used_again = || PORT_RANGES.into_iter().any(|range| lookup(range).is_some());
    // On several nodes: the address where each proxy finds the launcher. A port means one launch, until it is
    // free again.
    let port = || {
        let port = proxy.option("--control-port")?;
        (!is_one_node && !is_used_again()).then(|| port.to_owned())
    };
    // Intel MPI has an id, made of the launcher's process id and the time.
    match lookup("I_MPI_HYDRA_UUID").or_else(port) {
        // Spawned processes share it with launched ones.
        Some(launch) => match lookup("HYDRA_BSTRAP_PGID").as_deref().or(proxy.option("--pgid")) {
            None | Some("0") => launch,
            Some(group) => format!("{launch}-{group}"),
        },
        // On one node: its proxy, which is unique over time.
        None => proxy.id(),
    }
}

/// What the processes of one spawn have in common, if one Hydra proxy starts several spawns. None if it starts
/// only these.
fn world_of_spawned(proxy: &Ancestor) -> Option<String> {
    // Hydra 4.0: a proxy for each spawn, which is told its process group.
    if proxy.option("--pgid").is_some_and(|group| group != "0") {
        return None;
    }
    // Intel MPI: the same, but it tells the processes.
    if launcher("HYDRA_BSTRAP_PGID").is_some_and(|group| group != "0") {
        return None;
    }
    // MPICH 5 names its shared memory after a hash of the process manager's name for the world.
    let maps = kernel_files::text("/proc/self/maps").unwrap_or_default();
    // Otherwise each process is a run of its own: no summary, but nothing is mixed up or lost.
    world_in(&maps).or_else(|| Some(process_id(std::process::id())))
}

/// The hash in `/dev/shm/mpich_shm_<hash>_<node>`.
fn world_in(maps: &str) -> Option<String> {
    let (_, rest) = maps.split_once("/mpich_shm_")?;
    let hash = rest.split(['_', ' ', '\n']).next()?;
    let is_hash = !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| hash.to_owned())
}

struct Ancestor {
    pid: u32,
    /// None for one that has ended.
    stat: Option<ProcessStat>,
    /// Its command line.
    words: Vec<String>,
}

impl Ancestor {
    /// The ancestors of this process, from its parent up to Hydra's launcher, or as far as a launcher may be.
    fn above() -> &'static [Ancestor] {
        static ABOVE: OnceLock<Vec<Ancestor>> = OnceLock::new();
        ABOVE.get_or_init(|| {
            let mut above: Vec<Ancestor> = Vec::new();
            let mut pid = ProcessStat::read(std::process::id()).map(|stat| stat.parent);
            while let Some(found) = pid.filter(|_| above.len() < LEVELS) {
                let stat = ProcessStat::read(found);
                pid = stat.as_ref().map(|stat| stat.parent);
                above.push(Ancestor { pid: found, stat, words: words_of(&found.to_string()) });
                if above.iter().any(Ancestor::is_proxy) && above.iter().any(Ancestor::is_launcher) {
                    break;
                }
            }
            above
        })
    }

    /// Hydra's proxy on this node, which may have started this process through a shell or another tool; the
    /// parent if there is none.
    fn proxy() -> &'static Ancestor {
        static NOBODY: Ancestor = Ancestor { pid: 0, stat: None, words: Vec::new() };
        let above = Ancestor::above();
        above.iter().find(|process| process.is_proxy()).or(above.first()).unwrap_or(&NOBODY)
    }

    fn is_proxy(&self) -> bool {
        self.is_called(&["hydra_pmi_proxy"])
    }

    fn is_launcher(&self) -> bool {
        self.is_called(&["mpiexec", "mpirun"])
    }

    /// Whether its program's name contains one of `names`.
    fn is_called(&self, names: &[&str]) -> bool {
        self.words.first().is_some_and(|program| names.iter().any(|name| program.contains(name)))
    }

    /// The value of an option that is a word of its own.
    fn option(&self, name: &str) -> Option<&str> {
        let mut words = self.words.iter();
        words.find(|word| *word == name)?;
        words.next().map(String::as_str)
    }

    /// Its start time tells it from later ones with the same id.
    fn id(&self) -> String {
        id_of_process(self.pid, self.stat.as_ref())
    }
}

fn process_id(pid: u32) -> String {
    id_of_process(pid, ProcessStat::read(pid).as_ref())
}

fn id_of_process(pid: u32, stat: Option<&ProcessStat>) -> String {
    stat.map_or_else(|| pid.to_string(), |stat| format!("{pid}.{}", stat.start_ticks))
}

/// What `/proc/PID/stat` says of a process (proc(5)).
#[derive(Debug, PartialEq)]
struct ProcessStat {
    parent: u32,
    /// When it started, in clock ticks since boot.
    start_ticks: u64,
}

impl ProcessStat {
    fn read(pid: u32) -> Option<ProcessStat> {
        ProcessStat::parse(&kernel_files::text(format!("/proc/{pid}/stat"))?)
    }

    fn parse(text: &str) -> Option<ProcessStat> {
        let mut fields = kernel_files::stat_fields(text)?;
        // Fields 4 and 22.
        let parent = fields.nth(1)?.parse().ok()?;
        Some(ProcessStat { parent, start_ticks: fields.nth(17)?.parse().ok()? })
    }
}

/// A sentence if the job has several programs (MPMD) according to the launcher; the same on all ranks.
pub(crate) fn programs() -> Option<String> {
    let number = |name| launcher(name)?.parse::<u32>().ok();
    // Open MPI's launchers.
    if let Some(programs) = number("OMPI_NUM_APP_CTX").filter(|programs| *programs > 1) {
        return Some(format!("the job has {programs} programs"));
    }
    // Hydra does not tell, but its command line does if all ranks are on the launcher's node.
    let ranks = number("PMI_SIZE")?;
    let is_one_node = number("MPI_LOCALNRANKS") == Some(ranks);
    let several = "the job has several programs".to_owned();
    (is_one_node && is_launched_with_colon()).then_some(several)
}

/// Whether a launcher above this process has a colon among its arguments, which separates the programs of a
/// job.
fn is_launched_with_colon() -> bool {
    let mut launchers = Ancestor::above().iter().filter(|process| process.is_launcher());
    launchers.any(|launcher| launcher.words.iter().any(|word| word == ":"))
}

fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let path = fs::read_link("/proc/self/exe").unwrap_or_default();
        let name = path.file_name().unwrap_or(Path::new("program").as_os_str());
        name.to_string_lossy().into_owned()
    })
}

/// The command line of a process, by its name in `/proc`.
fn words_of(process: &str) -> Vec<String> {
    let bytes = kernel_files::bytes(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let text = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    text.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// RFC 3339, in UTC. A clock may be set to a time that this notation cannot express.
fn timestamp(time: SystemTime) -> String {
    let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let last = Duration::from_secs(253_402_300_799);
    humantime::format_rfc3339_millis(UNIX_EPOCH + since_1970.min(last)).to_string()
}

/// The part of `text` that is safe in file names everywhere.
pub(crate) fn file_name_of(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    text.chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No process has the number.
    const PROXY: u32 = u32::MAX;

    fn id(variables: &[(&str, &str)], start: &StartedBy) -> Option<String> {
        id_below("hydra_pmi_proxy", variables, start)
    }

    fn id_below(proxy: &str, variables: &[(&str, &str)], start: &StartedBy) -> Option<String> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let words = proxy.split(' ').map(str::to_owned).collect();
        let proxy = Ancestor { pid: PROXY, stat: None, words };
        let id = id_from(&lookup, start, &|| &proxy);
        id.map(|id| id.replace(&PROXY.to_string(), "PROXY"))
    }

    #[test]
    fn the_id_is_the_launchers() {
        let slurm = [("SLURM_JOB_ID", "12"), ("SLURM_STEP_ID", "3"), ("SLURM_PROCID", "0")];
        let with = |more: &[(&'static str, &'static str)]| [&slurm[..], more].concat();
        for (variables, expected) in [
            (vec![("PMIX_NAMESPACE", "1621032961")], Some("1621032961")),
            (vec![("PMIX_NAMESPACE", "prterun-n1-77@1")], Some("prterun-n1-77@1")),
            (vec![("HYDI_CONTROL_FD", "7"), ("PMI_RANK", "0")], Some("PROXY")),
            (with(&[]), Some("12.3")),
            (with(&[("PMIX_NAMESPACE", "slurm.pmix.12.3")]), Some("12.3")),
            (vec![("SLURM_JOB_ID", "12"), ("PMIX_NAMESPACE", "99")], Some("12-99")),
            (vec![("SLURM_JOB_ID", "12"), ("HYDI_CONTROL_FD", "7")], Some("12-PROXY")),
            (with(&[("HYDI_CONTROL_FD", "7")]), Some("12.3")),
            // A batch script is no step.
            (vec![("SLURM_JOB_ID", "12"), ("SLURM_PROCID", "0")], None),
            (vec![], None),
        ] {
            assert_eq!(id(&variables, &StartedBy::Launched).as_deref(), expected, "{variables:?}");
        }
    }

    #[test]
    fn the_spawned_are_told_apart_where_the_launcher_gives_them_no_id() {
        let shared = StartedBy::Spawned(Some("c7d012a6".into()));
        for (variables, start, expected) in [
            (vec![("PMIX_NAMESPACE", "162")], &shared, "162"),
            (vec![("MPI_LOCALRANKID", "0")], &shared, "PROXY-c7d012a6"),
            (vec![("MPI_LOCALRANKID", "0")], &StartedBy::Spawned(None), "PROXY"),
            (
                vec![("SLURM_JOB_ID", "12"), ("SLURM_STEP_ID", "3"), ("MPI_LOCALRANKID", "0")],
                &shared,
                "12-PROXY-c7d012a6",
            ),
        ] {
            assert_eq!(id(&variables, start).as_deref(), Some(expected));
        }
    }

    #[test]
    fn hydras_processes_on_several_nodes_have_one_id_and_no_others_have_it() {
        let four = [("MPI_LOCALRANKID", "0"), ("MPI_LOCALNRANKS", "2"), ("PMI_SIZE", "4")];
        let proxy = "hydra_pmi_proxy --control-port n1.site:4063 --pgid 0 --proxy-id 1";
        let spawned = "hydra_pmi_proxy --control-port n1.site:4063 --pgid 2 --proxy-id 3";
        let with = |more: &[(&'static str, &'static str)]| [&four[..], more].concat();
        let one_node = [("MPI_LOCALRANKID", "0"), ("MPI_LOCALNRANKS", "4"), ("PMI_SIZE", "4")];
        let intel = [("I_MPI_HYDRA_UUID", "8f00-47"), ("HYDRA_BSTRAP_PGID", "0")];
        let intel_spawned = [("I_MPI_HYDRA_UUID", "8f00-47"), ("HYDRA_BSTRAP_PGID", "1")];
        for (proxy, variables, start, expected) in [
            (proxy, four.to_vec(), StartedBy::Launched, "n1.site:4063"),
            (proxy, one_node.to_vec(), StartedBy::Launched, "PROXY"),
            // The next run would have the same port.
            (proxy, with(&[("MPIEXEC_PORT_RANGE", "9000:9010")]), StartedBy::Launched, "PROXY"),
            (proxy, with(&[("SLURM_JOB_ID", "12")]), StartedBy::Launched, "12-n1.site:4063"),
            (spawned, four.to_vec(), StartedBy::Spawned(None), "n1.site:4063-2"),
            (proxy, four.to_vec(), StartedBy::Spawned(Some("c7d".into())), "n1.site:4063-c7d"),
            ("hydra_pmi_proxy", with(&intel), StartedBy::Launched, "8f00-47"),
            ("hydra_pmi_proxy", with(&intel_spawned), StartedBy::Spawned(None), "8f00-47-1"),
        ] {
            assert_eq!(id_below(proxy, &variables, &start).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_world_is_known_by_its_shared_memory() {
        let maps = "7fc7-7fc8 rw-s 00000000 00:1b 13792 /dev/shm/ucx_shm_posix_2b4d1fa1 (deleted)\n\
                    7fc8-7fc9 rw-s 00000000 00:1b 13801 /dev/shm/mpich_shm_c7d012a6_0\n";
        assert_eq!(world_in(maps).as_deref(), Some("c7d012a6"));
        assert_eq!(world_in("7fc8-7fc9 rw-s 0 00:1b 1 /dev/shm/mpich_shm_\n"), None);
        assert_eq!(world_in(""), None);
    }

    #[test]
    fn names_of_directories_hold_no_separators() {
        assert_eq!(file_name_of("prterun-n1-77@1"), "prterun-n1-77-1");
        assert_eq!(file_name_of("../../x y"), "..-..-x-y");
    }

    #[test]
    fn a_clock_that_is_far_off_gives_a_time_all_the_same() {
        let day = Duration::from_secs(86_400);
        assert_eq!(timestamp(UNIX_EPOCH + day), "1970-01-02T00:00:00.000Z");
        assert_eq!(timestamp(UNIX_EPOCH - day), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(UNIX_EPOCH + day * 4_000_000), "9999-12-31T23:59:59.000Z");
    }

    #[test]
    fn a_process_is_told_apart_by_its_start() {
        assert!(process_id(std::process::id()).contains('.'));
        let fields =
            "4 (a) b) S 3 9 9 0 -1 4194304 297 0 2 0 5 6 7 8 20 0 1 0 5047291 7434240 1052";
        let stat = ProcessStat { parent: 3, start_ticks: 5_047_291 };
        assert_eq!(ProcessStat::parse(fields), Some(stat));
        assert_eq!(ProcessStat::parse("4 (a) S 3 9"), None);
    }
}
