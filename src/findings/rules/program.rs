//! Work that a program need not do.

use super::{POLLS, Rule, RuleMatch, percent};
use crate::findings::account::Cause;
use crate::findings::kinds::{FunctionKind, kind_of};
use crate::findings::knobs::{command, say};
use crate::findings::run::{Family, RunFacts, exact, taken};
use crate::words::{bytes, double};

pub(super) const RULES: &[Rule] = rules! {
    60 "asks-for-rank": Program, "the number of calls", asks_for_rank;
    70 "independent-io": Program, "the time in functions of MPI_File", independent_io;
    120 "polling": Program, "the number of these calls", polling;
    410 "leak": Program, "objects made, minus objects freed", leak;
};

/// How many requests and messages there may have been at most; none where that is not known.
fn requests(run: &RunFacts) -> Option<f64> {
    const RECEIVED: &[&str] =
        &["MPI_Recv", "MPI_Mrecv", "MPI_Sendrecv", "MPI_Sendrecv_replace", "MPI_Start"];
    let mut all = run.count(RECEIVED);
    for call in &run.summary.calls {
        if makes_request(&call.name) {
            all += call.count.sum.as_f64();
        }
    }
    // A call of MPI_Startall may start all that were prepared.
    let started = run.count(&["MPI_Startall"]);
    let prepared = run
        .summary
        .calls
        .iter()
        .filter(|call| call.name.strip_suffix("_c").unwrap_or(&call.name).ends_with("_init"));
    let prepared: f64 = prepared.map(|call| call.count.max.as_f64()).sum();
    all += started * prepared;
    (all > 0.0).then_some(all)
}

/// Whether each call of a function makes one request: those whose names begin with I or R, as the standard has it.
fn makes_request(name: &str) -> bool {
    const OTHERS: &[&str] = &["Init", "Inter", "Info", "Is_", "Iprobe", "Improbe"];
    let Some(rest) = name.strip_prefix("MPI_") else { return false };
    let is_access = ["Rput", "Rget", "Raccumulate"].iter().any(|start| rest.starts_with(start));
    let is_of_file = rest.starts_with("File_iread") || rest.starts_with("File_iwrite");
    let is_immediate =
        rest.starts_with('I') || rest == "Comm_idup" || rest == "Comm_idup_with_info";
    is_access || is_of_file || is_immediate && !OTHERS.iter().any(|start| rest.starts_with(start))
}

fn polling(run: &RunFacts) -> Vec<RuleMatch> {
    let Some(of) = requests(run) else { return Vec::new() };
    let asked = run.count(POLLS);
    let (time, Some(worst)) = (run.time(POLLS), run.worst(POLLS)) else { return Vec::new() };
    if asked <= 100.0 * of {
        return Vec::new();
    }
    let title = format!(
        "{} asks {} times for each request or message",
        run.with_place(&worst.name),
        double((asked / of).round())
    );
    let instead = match worst.name.as_str() {
        "MPI_Test" => "MPI_Wait",
        "MPI_Testall" => "MPI_Waitall",
        "MPI_Testany" => "MPI_Waitany",
        "MPI_Testsome" => "MPI_Waitsome",
        "MPI_Improbe" => "MPI_Mprobe",
        _ => "MPI_Probe",
    };
    let advice = vec![say(format!("wait with {instead}, or do more work between two calls"))];
    let evidence = vec![
        exact("calls that ask", asked, "", "gyan report"),
        exact("requests and messages", of, "", "gyan report"),
        taken("time in calls that ask", time, "gyan report"),
    ];
    let functions = vec![worst.name.clone()];
    let at_stake = Some(run.stake(POLLS, Cause::Any, time));
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() }]
}

fn asks_for_rank(run: &RunFacts) -> Vec<RuleMatch> {
    const ASKS: &[&str] = &["MPI_Comm_rank", "MPI_Comm_size"];
    let time = run.time(ASKS);
    let Some(worst) = run.worst(ASKS) else { return Vec::new() };
    let calls = run.count(ASKS);
    let title = format!(
        "{} calls of MPI_Comm_rank and MPI_Comm_size, most of {}",
        double(calls),
        run.with_place(&worst.name)
    );
    let advice = vec![say("ask once, and keep the answer in a variable")];
    let evidence =
        vec![exact("calls", calls, "", "gyan report"), taken("time in them", time, "gyan report")];
    let functions = vec![worst.name.clone()];
    let at_stake = Some(run.stake(ASKS, Cause::Any, time));
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() }]
}

fn leak(run: &RunFacts) -> Vec<RuleMatch> {
    const KINDS: [(&str, &str, &[&str]); 3] = [
        (
            // Of profiles that do not tell what came back: only functions that give each rank one.
            "communicators",
            "MPI_Comm_free",
            &[
                "MPI_Comm_dup",
                "MPI_Comm_idup",
                "MPI_Comm_dup_with_info",
                "MPI_Intercomm_create",
                "MPI_Intercomm_merge",
            ],
        ),
        (
            "datatypes",
            "MPI_Type_free",
            functions![
                MPI_Type_contiguous MPI_Type_vector MPI_Type_create_hvector MPI_Type_indexed
                MPI_Type_create_hindexed MPI_Type_create_indexed_block
                MPI_Type_create_hindexed_block MPI_Type_create_struct MPI_Type_create_subarray
                MPI_Type_create_darray MPI_Type_create_resized MPI_Type_dup MPI_Type_hvector
                MPI_Type_hindexed MPI_Type_struct
            ],
        ),
        (
            "groups",
            "MPI_Group_free",
            functions![
                MPI_Comm_group MPI_Group_incl MPI_Group_excl MPI_Group_union
                MPI_Group_intersection MPI_Group_difference MPI_Group_range_incl
                MPI_Group_range_excl MPI_Group_from_session_pset MPI_Win_get_group
                MPI_File_get_group
            ],
        ),
    ];
    let of = |(kind, free, make): &(&str, &str, &[&str])| {
        if *kind == "communicators" && !run.summary.objects_made.is_empty() {
            return None;
        }
        let (made, freed) = (run.count(make), run.count(&[free, "MPI_Comm_disconnect"]));
        let each = run.of_a_rank(made - freed);
        if each <= 100.0 {
            return None;
        }
        let worst = run
            .called(make)
            .max_by(|one, other| one.count.sum.as_f64().total_cmp(&other.count.sum.as_f64()))?;
        let title = format!(
            "a rank makes {} {kind} more than it frees, most with {}",
            double(each.round()),
            run.with_place(&worst.name)
        );
        let advice = vec![say(format!("free them with {free}, or keep one and use it again"))];
        let evidence = vec![
            exact(&format!("{kind} made"), made, "", "gyan report --all"),
            exact(&format!("calls of {free}"), freed, "", "gyan report --all"),
        ];
        let functions = vec![worst.name.clone()];
        Some(RuleMatch {
            title,
            at_stake: None,
            evidence,
            advice,
            functions,
            ..RuleMatch::default()
        })
    };
    by_handles(run).into_iter().chain(KINDS.iter().filter_map(of)).collect()
}

/// Communicators, windows and files, of which libgyan counted those that came back, and those that were freed.
fn by_handles(run: &RunFacts) -> Vec<RuleMatch> {
    const KINDS: [(&str, &str, &[&str]); 3] = [
        (
            "communicator",
            "MPI_Comm_free",
            &["MPI_Comm_", "MPI_Cart_", "MPI_Graph_", "MPI_Dist_graph_", "MPI_Intercomm_"],
        ),
        ("window", "MPI_Win_free", &["MPI_Win_create", "MPI_Win_allocate"]),
        ("file", "MPI_File_close", &["MPI_File_open"]),
    ];
    let of = |(kind, free, starts): &(&str, &str, &[&str])| {
        let row = run.summary.objects_made.iter().find(|row| row.kind == *kind)?;
        let left = row.left.max.as_f64();
        if left <= 100.0 {
            return None;
        }
        let makes = |name: &str| {
            let is_one = starts.iter().any(|start| name.starts_with(start));
            is_one
                && kind_of(name) == FunctionKind::Objects
                && !name.contains("free")
                && !name.contains("close")
        };
        let making = run.summary.calls.iter().filter(|call| makes(&call.name));
        let most =
            making.max_by(|one, other| one.count.sum.as_f64().total_cmp(&other.count.sum.as_f64()));
        let rank = row.left.max_rank;
        let with = most
            .map_or(String::new(), |call| format!(", most with {}", run.with_place(&call.name)));
        let title = format!("rank {rank} makes {} {kind}s more than it frees{with}", double(left));
        let advice = vec![say(format!("free them with {free}, or keep one and use it again"))];
        let evidence = vec![
            exact(
                &format!("{kind}s made on all ranks"),
                row.made.sum.as_f64(),
                "",
                "gyan report --all",
            ),
            exact(&format!("{kind}s freed"), row.freed.sum.as_f64(), "", "gyan report --all"),
            exact(&format!("{kind}s left on rank {rank}"), left, "", "gyan report --all"),
        ];
        let functions = most.map(|call| call.name.clone()).into_iter().collect();
        let ranks = vec![rank];
        Some(RuleMatch { title, at_stake: None, evidence, advice, functions, ranks })
    };
    KINDS.iter().filter_map(of).collect()
}

/// The collective function that does the same.
fn collective_of(alone: &str) -> String {
    let (name, large) = match alone.strip_suffix("_c") {
        Some(name) => (name, "_c"),
        None => (alone, ""),
    };
    match name.strip_suffix("_shared") {
        Some(start) => format!("{start}_ordered{large}"),
        None => format!("{name}_all{large}"),
    }
}

fn independent_io(run: &RunFacts) -> Vec<RuleMatch> {
    const ALONE: &[&str] = functions![
        MPI_File_read MPI_File_read_at MPI_File_read_shared MPI_File_write MPI_File_write_at
        MPI_File_write_shared MPI_File_iread MPI_File_iread_at MPI_File_iwrite MPI_File_iwrite_at
    ];
    let together: Vec<String> = ALONE.iter().map(|name| collective_of(name)).collect();
    let together: Vec<&str> = together.iter().map(String::as_str).collect();
    let (alone, together) = (run.count(ALONE), run.count(&together));
    let sizes = run.sizes(ALONE);
    let moved: f64 = sizes.iter().map(|(.., bytes)| bytes).sum();
    let (time, Some(worst)) = (run.time(ALONE), run.worst(ALONE)) else { return Vec::new() };
    let mean = moved / alone.max(1.0);
    let is_much = alone > 10.0 * together && alone >= 10.0 * run.ranks;
    if !is_much || mean >= f64::from(1 << 20) || run.share(time.seconds) < 0.05 {
        return Vec::new();
    }
    let title = format!(
        "independent reads and writes of {} each take {} of the run, most in {}",
        bytes(mean),
        percent(run.share(time.seconds)),
        run.with_place(&worst.name)
    );
    let advice = format!(
        "use the collective calls, such as {}, or larger pieces",
        collective_of(&worst.name)
    );
    let mut advice = vec![say(advice)];
    if run.family == Family::OpenMpi {
        advice.push(command(
            "then see how many ranks gather for the others",
            "gyan varlist --match 'io_ompio_*aggregators*'",
        ));
    }
    let evidence = vec![
        exact("independent reads and writes", alone, "", "gyan report --all"),
        exact("collective ones", together, "", "gyan report --all"),
        exact("bytes of the independent ones", moved, "bytes", "gyan report --sizes"),
        taken("time in the independent ones", time, "gyan report"),
    ];
    let functions = vec![worst.name.clone()];
    let at_stake = Some(run.stake(ALONE, Cause::Any, time));
    vec![RuleMatch { title, at_stake, evidence, advice, functions, ..RuleMatch::default() }]
}
