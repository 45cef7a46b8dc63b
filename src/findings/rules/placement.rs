//! Where do ranks run, and what does the machine let them do?

use gyan_results::{Fidelity, OpenMpRuntime, PlacementSummary};

use super::{RECEIVES, Rule, RuleMatch, SENDS, WAITS};
use crate::findings::account::{Cause, Claim, Stake};
use crate::findings::kinds::{FunctionKind, kind_of};
use crate::findings::knobs::{COMPONENTS, Purpose, command, say, set};
use crate::findings::run::{
    Family, LostWithoutProcessors, RunFacts, estimated, exact, is_true, taken,
};
use crate::findings::{LEAST_SHARE, MUCH_LOAD};
use crate::words::{bytes, double, plural_of, rough, seconds};

pub(super) const RULES: &[Rule] = rules! {
    10 "bound-together": Run,
        "the processors of each rank (gyan report --machine) and the time for which they wanted one",
        bound_together;
    20 "oversubscribed": Run,
        "the time for which ranks wanted a processor (gyan report --machine)",
        oversubscribed;
    30 "other-load": System,
        "the time for which ranks wanted a processor (gyan report --machine)",
        other_load;
    40 "idle-processors": Run,
        "the processors that a rank used (gyan report --machine)",
        idle_processors;
    50 "slow-start": Run, "the time in MPI_Init", slow_start;
    200 "copied-twice": System, "the time in sends and receives", copied_twice;
};

/// From this many bytes on, messages are copied by pages rather than through buffers.
const LARGE: f64 = 65536.0;

/// A rank that gives up its processor while it waits does so far more often per second; one that is preempted
/// loses it far less often. Open MPI 4 with four ranks on two processors: 10,000 and 90.
const YIELDING: f64 = 1000.0;

/// Ranks that use more of their processors leave none idle that is worth a word.
const MOST_USED: f64 = 0.6;
/// Seconds of a rank.
const LEAST_RUN_S: f64 = 1.0;

fn oversubscribed(run: &RunFacts) -> Vec<RuleMatch> {
    let Some(placement) = run.oversubscribed() else { return Vec::new() };
    let Some((wait_s, known)) = run.waits_for_processors() else { return Vec::new() };
    let at_stake = of_load(run);
    if at_stake.is_none() && run.share(wait_s) < 0.05 {
        return Vec::new();
    }
    let (ranks, processors) = (placement.ranks, placement.capacity());
    let who = match placement.threads {
        Some(threads) => {
            format!("{threads} busy threads of {ranks} rank{}", plural_of(ranks as f64))
        }
        None => format!("{ranks} ranks"),
    };
    let fit = processors.floor().max(1.0);
    let hosts = placement.hosts.len();
    let on = if hosts == 1 { String::new() } else { format!(" on each of {hosts} hosts") };
    let loses = match &at_stake {
        Some(stake) => {
            format!(
                "for want of one a rank loses up to {}",
                seconds(run.of_a_rank(stake.seconds()))
            )
        }
        None => format!("a rank waits for one for {}", seconds(run.of_a_rank(wait_s))),
    };
    let title = format!(
        "{who} share {} processor{}{on}: {loses} of {}",
        rough(processors),
        plural_of(processors),
        seconds(run.elapsed_s())
    );
    let others = used_by_others(run, placement, wait_s);
    let on_a_host = if hosts > 1 { " on a host" } else { "" };
    let most = format!("run at most {fit} rank{}{on_a_host}, or on more cores", plural_of(fit));
    let mut advice = Vec::new();
    advice.extend(others.map(|others| {
        let others = rough(others);
        say(format!(
            "see what else runs there (top): it used at least {others} of these processors on average"
        ))
    }));
    if placement.threads.is_some() {
        let each = (fit / ranks as f64).floor().max(1.0);
        advice.push(command(
            &format!("give each rank at most {} thread{}", double(each), plural_of(each)),
            format!("OMP_NUM_THREADS={each}, if the threads are OpenMP's"),
        ));
    }
    if placement.threads.is_none() || ranks as f64 > fit {
        advice.push(say(most));
    }
    let lost = run.summary.resources.as_ref().map(|used| used.involuntary_switches.sum.as_f64());
    if let Some((knob, value)) = run.knob_for(Purpose::Yield)
        && !is_true(value)
        && lost.is_none_or(|lost| lost < YIELDING * run.total_s)
    {
        advice.extend(knob.advice("or let ranks that wait give up their processor"));
    }
    let shown = "gyan report --machine";
    let wait = estimated("time for which ranks wanted a processor", wait_s, "s", shown);
    let mut evidence = vec![
        exact("ranks on a host", ranks as f64, "", shown),
        exact("processors that they may run on", processors, "", shown),
        gyan_results::Evidence { known, ..wait },
    ];
    evidence.extend(
        others.map(|others| estimated("processors that something else used", others, "", shown)),
    );
    if let Some(threads) = placement.threads {
        evidence.push(exact("busy threads on a host", threads as f64, "", shown));
    }
    evidence.extend(outside(run));
    evidence.extend(
        lost.map(|lost| exact("times that ranks lost or yielded their processor", lost, "", shown)),
    );
    vec![RuleMatch { title, at_stake, evidence, advice, ..RuleMatch::default() }]
}

/// Processors of a host that something else used, at least and on average: while a thread wants one, all are busy.
fn used_by_others(run: &RunFacts, placement: &PlacementSummary, wait_s: f64) -> Option<f64> {
    let used = run.summary.resources.as_ref()?.processors_used.as_ref()?;
    // A control group has threads wait while processors are free.
    let is_limited = placement.processor_limit.is_some();
    let busy = placement.capacity() * run.share(wait_s);
    let others = busy - used.avg * placement.ranks as f64;
    (!is_limited && run.is_known_to_its_end() && others >= MUCH_LOAD * placement.capacity())
        .then_some(others)
}

fn other_load(run: &RunFacts) -> Vec<RuleMatch> {
    if run.oversubscribed().is_some() || run.summary.placements.is_empty() {
        return Vec::new();
    }
    let Some((wait_s, Fidelity::Exact)) = run.waits_for_processors() else { return Vec::new() };
    let at_stake = of_load(run);
    let lost_s = at_stake.as_ref().map_or(0.0, Stake::seconds);
    if run.share(lost_s) < 0.05 && run.lacks_processors() < MUCH_LOAD {
        return Vec::new();
    }
    // Where little of it can be lost nobody knows what it costs.
    let at_stake = at_stake.filter(|stake| run.share(stake.seconds()) > LEAST_SHARE);
    let whole = seconds(run.elapsed_s());
    let loses = match &at_stake {
        Some(stake) => {
            format!(
                "loses up to {} of {whole} for want of a processor",
                seconds(run.of_a_rank(stake.seconds()))
            )
        }
        None => format!("is without a processor for {} of {whole}", seconds(run.of_a_rank(wait_s))),
    };
    let title = format!("a rank {loses}, though there are enough: something else runs on them");
    let shown = "gyan report --machine";
    let mut evidence = vec![exact("time for which ranks wanted a processor", wait_s, "s", shown)];
    evidence.extend(outside(run));
    let advice = vec![
        say(
            "see what else runs there (top), or whether the ranks have threads of their own (OMP_NUM_THREADS)",
        ),
        say("times of such a run say little: measure again when nothing else runs"),
    ];
    vec![RuleMatch { title, at_stake, evidence, advice, ..RuleMatch::default() }]
}

/// What ranks lose for want of processors.
fn of_load(run: &RunFacts) -> Option<Stake> {
    let LostWithoutProcessors { own: own_s, in_mpi: in_mpi_s, uneven: uneven_s } =
        run.lost_without_processors()?;
    let names = run.summary.calls.iter().map(|call| call.name.clone());
    let functions = names.filter(|name| kind_of(name) != FunctionKind::Start).collect();
    let in_mpi = Claim::Calls { functions, cause: Cause::Any };
    let claims = [(Claim::OwnCode, own_s), (in_mpi, in_mpi_s), (Claim::Uneven, uneven_s)];
    let available = |(claim, wanted_s): (Claim, f64)| {
        let seconds = run.account.available(&claim, wanted_s);
        (claim, seconds)
    };
    Some(Stake { claims: claims.map(available).into(), error: Some(0.0) })
}

fn outside(run: &RunFacts) -> Option<gyan_results::Evidence> {
    let lost = run.lost_without_processors()?;
    Some(estimated("of that outside MPI", lost.own, "s", "gyan report --machine"))
}

fn bound_together(run: &RunFacts) -> Vec<RuleMatch> {
    let mut placements = run.summary.placements.iter();
    let crowded = placements.find_map(|placement| Some((placement, placement.crowded.as_ref()?)));
    let Some((placement, crowded)) = crowded else { return Vec::new() };
    let Some((wait_s, known)) = run.waits_for_processors() else { return Vec::new() };
    let free = crowded.free_cores as f64;
    let (most, who) = match crowded.threads_per_core {
        Some(threads) => (threads, "busy threads"),
        None => (crowded.ranks_per_core, "ranks"),
    };
    let title = format!(
        "up to {} {who} are bound to one core ({}) while {} {} none",
        double(most),
        crowded.processors,
        double(free),
        if crowded.free_cores == 1 { "core has" } else { "cores have" }
    );
    let ranks = placement.ranks.max(1);
    let most_cores = (placement.cores.unwrap_or(placement.processors) + crowded.free_cores) / ranks;
    let each = placement.demand().div_ceil(ranks).min(most_cores.max(1));
    let advice = if crowded.threads_per_core.is_some() {
        vec![
            command(
                &format!(
                    "give each rank {each} core{}, for its busy threads",
                    plural_of(each as f64)
                ),
                format!(
                    "mpirun --map-by slot:PE={each} --bind-to core ... (Slurm: srun --cpus-per-task={each})"
                ),
            ),
            say("let OpenMP spread its threads: OMP_PLACES=cores, without a list of processors"),
        ]
    } else {
        vec![
            command(
                "bind each rank to a core of its own",
                "mpirun --bind-to core ... (Slurm: srun --cpu-bind=cores)",
            ),
            say("or bind none: mpirun --bind-to none, srun --cpu-bind=none"),
        ]
    };
    let shown = "gyan report --machine";
    let wait = estimated("time for which ranks wanted a processor", wait_s, "s", shown);
    let evidence = vec![
        exact("ranks on a host", placement.ranks as f64, "", shown),
        exact(&format!("{who} on the fullest core"), most, "", shown),
        exact(&format!("cores without {who}"), free, "", shown),
        gyan_results::Evidence { known, ..wait },
    ];
    let at_stake = of_load(run);
    vec![RuleMatch { title, at_stake, evidence, advice, ..RuleMatch::default() }]
}

fn idle_processors(run: &RunFacts) -> Vec<RuleMatch> {
    let Some(used) = run.summary.resources.as_ref() else { return Vec::new() };
    let (Some(running), true) = (&used.processors_used, run.is_known_to_its_end()) else {
        return Vec::new();
    };
    // Threads of a core count as one: a rank that uses one of two leaves little idle.
    let share = |placement: &PlacementSummary| {
        Some(placement.capacity().min(placement.cores? as f64) / placement.ranks as f64)
    };
    let shares: Option<Vec<f64>> = run.summary.placements.iter().map(share).collect();
    let least = shares.unwrap_or_default().into_iter().reduce(f64::min);
    // Whatever is at the start and the end of a short run is most of it.
    let (Some(each), true) = (least, run.of_a_rank(run.total_s) >= LEAST_RUN_S) else {
        return Vec::new();
    };
    let busy = used.busy_threads.as_ref().map_or(1.0, |busy| busy.avg);
    // What they wanted of the processors and others had is not idle.
    let wanted = used.thread_wait_s.as_ref().map_or(0.0, |wait| run.share(wait.sum.as_f64()));
    if each < 1.5 || each - running.avg < 0.9 || running.avg + wanted * busy > MOST_USED * each {
        return Vec::new();
    }
    let cores = each.floor();
    let title = format!(
        "a rank could use {} cores and used {} of them, on average",
        rough(each),
        rough(running.avg)
    );
    let mut advice = Vec::new();
    match &used.openmp {
        Some(OpenMpRuntime { num_threads: Some(threads), .. })
            if threads.parse().is_ok_and(|threads: f64| threads < cores) =>
        {
            advice.push(command(
                &format!("let OpenMP use them: OMP_NUM_THREADS is {threads}"),
                format!("OMP_NUM_THREADS={cores}"),
            ));
        }
        _ if busy >= 1.5 => advice.push(say(format!(
            "see what runs on one thread: {} threads of a rank are busy, for part of the time",
            rough(busy)
        ))),
        _ => {}
    }
    let or = if advice.is_empty() { "" } else { "or " };
    advice.push(say(format!(
        "{or}start one rank for each core, unless a rank needs the memory of several"
    )));
    let shown = "gyan report --machine";
    let evidence = vec![
        exact("processors that a rank used, on average", running.avg, "", shown),
        exact("cores for each rank, on its host", each, "", shown),
        exact("busy threads of a rank, on average", busy, "", shown),
    ];
    vec![RuleMatch { title, evidence, advice, ..RuleMatch::default() }]
}

fn copied_twice(run: &RunFacts) -> Vec<RuleMatch> {
    // Of Open MPI, only ob1 copies by what this rule looks at.
    if !run.is_on_one_host() || run.family == Family::OpenMpi && !run.sends_by_ob1() {
        return Vec::new();
    }
    let sizes = run.sizes(SENDS);
    let all: f64 = sizes.iter().map(|(.., bytes)| bytes).sum();
    let large: f64 = sizes.iter().filter(|bar| bar.0 >= LARGE).map(|(.., bytes)| bytes).sum();
    let time = run.time(&[SENDS, RECEIVES, WAITS].concat());
    if all <= 0.0 || large < 0.5 * all || run.share(time.seconds) < 0.05 {
        return Vec::new();
    }
    let knob = run.knob_for(Purpose::SingleCopy);
    let machine = run.summary.machines.first().map(|of| &of.machine);
    let is_denied = machine.is_some_and(|machine| {
        machine.ptrace_scope.is_some_and(|scope| scope > 0) && !machine.has_ptrace_capability
    });
    let has_other = run.has_transport("xpmem") || run.has_transport("knem");
    let why = match knob {
        Some((knob, value)) if matches!(value, "none" | "0") => format!("{} is {value}", knob.name),
        _ if is_denied && !has_other => "ptrace is not allowed".to_owned(),
        _ => return Vec::new(),
    };
    let stake = time.times(0.5 * large / all);
    let at_stake = run.stake(&[SENDS, RECEIVES, WAITS].concat(), Cause::Any, stake);
    let title = format!("{} within the host are copied twice ({why})", bytes(large));
    let advice = match knob {
        Some((knob, _)) if !is_denied => {
            knob.advice("let ranks copy from each other's memory").into_iter().collect()
        }
        _ => vec![say(
            "let processes of a user read each other: sysctl kernel.yama.ptrace_scope=0, in a container \
                 --cap-add SYS_PTRACE",
        )],
    };
    let evidence = vec![
        exact("bytes in messages of 64 KiB and more", large, "bytes", "gyan report --sizes"),
        taken("time in sends, receives and waits", time, "gyan report"),
    ];
    vec![RuleMatch { title, at_stake: Some(at_stake), evidence, advice, ..RuleMatch::default() }]
}

/// The components of Open MPI 5 without the one that looks for a fabric, where there is none and it is not left out yet.
fn without_fabric(run: &RunFacts) -> Option<String> {
    let mut machines = run.summary.machines.iter();
    let is_loaded = run.has_transport("mca_btl_ofi") || run.has_transport("fabric");
    let has_network = machines.any(|of| !of.machine.networks.is_empty());
    if run.family != Family::OpenMpi || run.version < 5 || !is_loaded || has_network {
        return None;
    }
    let now = run.knob(COMPONENTS).unwrap_or_default();
    let (excludes, names) = match now.strip_prefix('^') {
        Some(names) => (true, names),
        None => (now.is_empty(), now),
    };
    let names: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
    let is_ofi = |name: &&&str| **name == "ofi";
    let is_in_use = excludes != names.iter().any(|name| is_ofi(&name));
    let others = names.iter().filter(|name| !is_ofi(name)).copied().collect::<Vec<_>>().join(",");
    let extended = match (excludes, others.is_empty()) {
        (true, true) => "^ofi".to_owned(),
        (true, false) => format!("^{others},ofi"),
        (false, _) => others,
    };
    (is_in_use && run.sends_by_ob1()).then_some(extended)
}

fn slow_start(run: &RunFacts) -> Vec<RuleMatch> {
    const START: &[&str] = &["MPI_Init", "MPI_Init_thread"];
    let time = run.time(START);
    let of_a_rank = run.of_a_rank(time.seconds);
    let (Some(call), true) = (run.worst(START), of_a_rank > 0.5 && run.share(time.seconds) > 0.05)
    else {
        return Vec::new();
    };
    let title = format!("{} takes {} of each rank", call.name, seconds(of_a_rank));
    let mut advice = Vec::new();
    if let Some(components) = without_fabric(run) {
        advice.push(set("do not look for a fabric where there is none", COMPONENTS, &components));
    }
    if advice.is_empty() {
        advice.push(say(
            "see whether the launcher, the name service or a network that is not there is slow",
        ));
    }
    let evidence = vec![taken(&format!("time in {}", call.name), time, "gyan report")];
    let functions = vec![call.name.clone()];
    let at_stake = Some(run.stake(START, Cause::Any, time));
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() }]
}
