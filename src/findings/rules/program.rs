//! Work that a program need not do.

use gyan_results::Actor;

use super::{Found, POLLS, Rule, percent};
use crate::findings::account::Cause;
use crate::findings::knobs::{command, say};
use crate::findings::run::{Family, Run, exact, taken};
use crate::render::numbers::{bytes, double};

pub(super) const POLLING: Rule = Rule {
    id: "polling",
    name: "The program asks again and again",
    acts: Actor::Program,
    needs: "the number of calls of MPI_Test, MPI_Iprobe and their kin, and of what they wait for",
    when: "there are over 100 calls that ask for each request or message, and they take over 1 % of the run",
    means: "Each call goes through the progress engine of the library. At stake is their time; a waiting call needs none of \
            them, but the rank can do nothing else then.",
    wrong_when: "the program does useful work between two calls: then they are what overlaps communication with it.",
    witness: "the number of these calls",
    source: "MPI 4.1, 3.7.3 and 3.8.1",
    todo: "Wait with MPI_Waitany, MPI_Waitsome or MPI_Probe, or do more work between two calls.",
    look: polling,
};

fn polling(run: &Run) -> Vec<Found> {
    const REQUESTS: &[&str] = &[
        "MPI_Isend",
        "MPI_Issend",
        "MPI_Irsend",
        "MPI_Ibsend",
        "MPI_Irecv",
        "MPI_Imrecv",
        "MPI_Start",
        "MPI_Startall",
        "MPI_Ibarrier",
        "MPI_Ibcast",
        "MPI_Iallreduce",
        "MPI_Ialltoall",
        "MPI_Recv",
        "MPI_Mrecv",
        "MPI_Sendrecv",
        "MPI_Sendrecv_replace",
    ];
    let (asked, of) = (run.count(POLLS), run.count(REQUESTS).max(1.0));
    let (time, Some(worst)) = (run.time(POLLS), run.worst(POLLS)) else { return Vec::new() };
    if asked <= 100.0 * of {
        return Vec::new();
    }
    let title = format!(
        "{} asks {} times for each request or message",
        run.with_place(&worst.name),
        double((asked / of).round())
    );
    let instead =
        if worst.name.contains("probe") { "MPI_Probe" } else { "MPI_Waitany or MPI_Waitsome" };
    let advice = vec![say(format!("wait with {instead}, or do more work between two calls"))];
    let evidence = vec![
        exact("calls that ask", asked, "", "gyan report"),
        exact("requests and messages", of, "", "gyan report"),
        taken("time in calls that ask", time, "gyan report"),
    ];
    let functions = vec![worst.name.clone()];
    let at_stake = Some(run.stake(POLLS, Cause::Any, time));
    vec![Found { title, at_stake, evidence, advice, functions, ..Found::default() }]
}

pub(super) const ASKS_FOR_RANK: Rule = Rule {
    id: "asks-for-rank",
    name: "The program asks for its rank again and again",
    acts: Actor::Program,
    needs: "the time of MPI_Comm_rank and MPI_Comm_size",
    when: "calls of MPI_Comm_rank and MPI_Comm_size take over 1 % of the run",
    means: "What they answer does not change while the communicator lives. At stake is their time.",
    wrong_when: "never, as far as is known.",
    witness: "the number of calls",
    source: "MPI 4.1, 7.4.1",
    todo: "Ask once, and keep the answer in a variable.",
    look: asks_for_rank,
};

fn asks_for_rank(run: &Run) -> Vec<Found> {
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
    vec![Found { title, at_stake, evidence, advice, functions, ..Found::default() }]
}

pub(super) const LEAK: Rule = Rule {
    id: "leak",
    name: "Objects of MPI are made and not freed",
    acts: Actor::Program,
    needs: "the number of calls that make and free communicators, windows, datatypes and groups",
    when: "a rank makes over 100 more objects of a kind than it frees",
    means: "Each holds memory, and libraries have a limited number of communicators: MPICH ends a program that has about \
            2,000. Making one takes longer the more there are. No time is at stake, but memory and the end of the program.",
    wrong_when: "the program keeps them all in use.",
    witness: "calls that make, minus calls that free",
    source: "MPI 4.1, 7.4.3; MPICH, MPIR_MAX_CONTEXT_MASK",
    todo: "Free each object after its last use, or make it once and use it again.",
    look: leak,
};

fn leak(run: &Run) -> Vec<Found> {
    const KINDS: [(&str, &str, &[&str]); 4] = [
        (
            "communicators",
            "MPI_Comm_free",
            &[
                "MPI_Comm_dup",
                "MPI_Comm_idup",
                "MPI_Comm_dup_with_info",
                "MPI_Comm_create",
                "MPI_Comm_create_group",
                "MPI_Comm_split",
                "MPI_Comm_split_type",
                "MPI_Cart_create",
                "MPI_Graph_create",
                "MPI_Dist_graph_create",
                "MPI_Dist_graph_create_adjacent",
                "MPI_Cart_sub",
                "MPI_Intercomm_create",
                "MPI_Intercomm_merge",
            ],
        ),
        (
            "windows",
            "MPI_Win_free",
            &[
                "MPI_Win_create",
                "MPI_Win_allocate",
                "MPI_Win_allocate_shared",
                "MPI_Win_create_dynamic",
            ],
        ),
        (
            "datatypes",
            "MPI_Type_free",
            &[
                "MPI_Type_contiguous",
                "MPI_Type_vector",
                "MPI_Type_create_hvector",
                "MPI_Type_indexed",
                "MPI_Type_create_hindexed",
                "MPI_Type_create_indexed_block",
                "MPI_Type_create_struct",
                "MPI_Type_create_subarray",
                "MPI_Type_create_darray",
                "MPI_Type_create_resized",
                "MPI_Type_dup",
                "MPI_Type_hvector",
                "MPI_Type_hindexed",
                "MPI_Type_struct",
            ],
        ),
        (
            "groups",
            "MPI_Group_free",
            &[
                "MPI_Comm_group",
                "MPI_Group_incl",
                "MPI_Group_excl",
                "MPI_Group_union",
                "MPI_Group_intersection",
                "MPI_Group_difference",
                "MPI_Group_range_incl",
                "MPI_Group_range_excl",
                "MPI_Win_get_group",
                "MPI_File_get_group",
            ],
        ),
    ];
    let of = |(kind, free, make): &(&str, &str, &[&str])| {
        let (made, freed) = (run.count(make), run.count(&[free]));
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
        Some(Found { title, at_stake: None, evidence, advice, functions, ..Found::default() })
    };
    KINDS.iter().filter_map(of).collect()
}

pub(super) const INDEPENDENT_IO: Rule = Rule {
    id: "independent-io",
    name: "Small independent reads and writes of files",
    acts: Actor::Program,
    needs: "the number, bytes and times of calls of MPI_File functions",
    when: "there are over ten times as many independent as collective reads and writes, below 1 MiB each on average, that take over \
           5 % of the run; at least ten for each rank",
    means: "With collective calls the library gathers what ranks read and write into few large accesses. At stake is the time \
            of the independent ones.",
    wrong_when: "each rank has a file of its own, or the file system has a cache that does the same.",
    witness: "the time in functions of MPI_File",
    source: "Thakur, Gropp and Lusk 1999; Drishti (Bez et al. 2022)",
    todo: "Use the collective calls, such as MPI_File_write_at_all, or read and write larger pieces. With Open MPI, \
           gyan varlist --match 'io_ompio_*aggregators*' then shows how many ranks gather for the others.",
    look: independent_io,
};

fn independent_io(run: &Run) -> Vec<Found> {
    const ALONE: &[&str] = &[
        "MPI_File_read",
        "MPI_File_read_at",
        "MPI_File_read_shared",
        "MPI_File_write",
        "MPI_File_write_at",
        "MPI_File_write_shared",
        "MPI_File_iread",
        "MPI_File_iread_at",
        "MPI_File_iwrite",
        "MPI_File_iwrite_at",
    ];
    const TOGETHER: &[&str] = &[
        "MPI_File_read_all",
        "MPI_File_read_at_all",
        "MPI_File_read_ordered",
        "MPI_File_write_all",
        "MPI_File_write_at_all",
        "MPI_File_write_ordered",
        "MPI_File_iread_all",
        "MPI_File_iread_at_all",
        "MPI_File_iwrite_all",
        "MPI_File_iwrite_at_all",
    ];
    let (alone, together) = (run.count(ALONE), run.count(TOGETHER));
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
    let mut advice = vec![say(format!(
        "use the collective calls, such as {}_all, or larger pieces",
        worst.name
    ))];
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
    vec![Found { title, at_stake, evidence, advice, functions, ..Found::default() }]
}
