//! What kind of function is it, and what can be done about its time?

use crate::words::is_one_of;

/// What functions of MPI do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FunctionKind {
    /// Start and end.
    Start,
    /// Messages from rank to rank.
    Messages,
    /// Asking whether something has happened.
    Polls,
    /// One rank sends to all, or all send to one.
    Rooted,
    /// All ranks wait for all.
    Collective,
    /// Reading and writing the memory of others.
    Accesses,
    /// Opening and closing it.
    Epochs,
    /// Making and freeing communicators, windows and files.
    Objects,
    Files,
    Processes,
    /// Whatever needs no other rank.
    Local,
}

/// The functions that ask for locks of windows.
pub(crate) const LOCKING: &[&str] = &["MPI_Win_lock", "MPI_Win_lock_all"];

/// Those that complete accesses while a lock is held, or release it.
pub(crate) const LOCK_COMPLETING: &[&str] = &[
    "MPI_Win_flush",
    "MPI_Win_flush_all",
    "MPI_Win_flush_local",
    "MPI_Win_flush_local_all",
    "MPI_Win_unlock",
    "MPI_Win_unlock_all",
];

/// By the names of functions, the first that fits.
const KINDS: &[(FunctionKind, &str)] = &[
    (
        FunctionKind::Start,
        "MPI_Init MPI_Init_thread MPI_Finalize MPI_Session_init MPI_Session_finalize",
    ),
    (
        FunctionKind::Polls,
        "MPI_Test MPI_Testall MPI_Testany MPI_Testsome MPI_Iprobe MPI_Improbe MPI_Request_get_status*",
    ),
    (FunctionKind::Local, "MPI_*_init MPI_*_get_* MPI_*_set_* MPI_*_call_errhandler MPI_Buffer_*"),
    (
        FunctionKind::Messages,
        "MPI_Send MPI_*send MPI_Recv MPI_*recv MPI_Sendrecv* MPI_Probe MPI_Mprobe MPI_Start MPI_Startall MPI_Wait \
         MPI_Waitall MPI_Waitany MPI_Waitsome MPI_Isendrecv* MPI_Pready* MPI_Parrived \
         MPI_Neighbor_* MPI_Ineighbor_*",
    ),
    (
        FunctionKind::Rooted,
        "MPI_Bcast MPI_Reduce MPI_Gather MPI_Gatherv MPI_Scatter MPI_Scatterv MPI_Scan MPI_Exscan",
    ),
    (FunctionKind::Local, "MPI_Reduce_local"),
    (
        FunctionKind::Collective,
        "MPI_Allreduce MPI_Allgather* MPI_Alltoall* MPI_Barrier MPI_Reduce_scatter* MPI_Iall* MPI_Ibarrier MPI_Ibcast MPI_Ireduce* \
         MPI_Igather* MPI_Iscatter* MPI_Iscan MPI_Iexscan",
    ),
    (
        FunctionKind::Accesses,
        "MPI_Put MPI_Get MPI_Accumulate MPI_Get_accumulate MPI_Fetch_and_op MPI_Compare_and_swap MPI_Rput \
         MPI_Rget MPI_Raccumulate MPI_Rget_accumulate",
    ),
    (
        FunctionKind::Epochs,
        "MPI_Win_fence MPI_Win_start MPI_Win_complete MPI_Win_post MPI_Win_wait MPI_Win_test \
         MPI_Win_lock* MPI_Win_unlock* MPI_Win_flush* MPI_Win_sync",
    ),
    (
        FunctionKind::Objects,
        "MPI_Comm_dup* MPI_Comm_idup* MPI_Comm_create* MPI_Comm_split* MPI_Comm_free MPI_Cart_create \
         MPI_Cart_sub MPI_Graph_create MPI_Dist_graph_create* MPI_Intercomm_* MPI_Win_create* \
         MPI_Win_allocate* MPI_Win_free MPI_File_open MPI_File_close",
    ),
    (FunctionKind::Files, "MPI_File_*"),
    (
        FunctionKind::Processes,
        "MPI_Comm_spawn* MPI_Comm_accept MPI_Comm_connect MPI_Comm_disconnect MPI_Comm_join",
    ),
];

/// What a function does; its large-count form does the same.
pub(super) fn kind_of(function: &str) -> FunctionKind {
    let name = function.strip_suffix("_c").unwrap_or(function);
    KINDS
        .iter()
        .find(|(_, names)| is_one_of(name, names))
        .map_or(FunctionKind::Local, |(kind, _)| *kind)
}

/// Whether the ranks of a communicator call a function together, to move data or to meet.
pub(crate) fn is_collective(function: &str) -> bool {
    matches!(kind_of(function), FunctionKind::Collective | FunctionKind::Rooted)
}

impl FunctionKind {
    /// What can be done about the time in such functions, and the command that shows more.
    pub(super) fn advice(self) -> (&'static str, &'static str) {
        let sites = "gyan report --sites DIR";
        match self {
            FunctionKind::Messages => (
                "see whether ranks take turns in waiting for each other; send fewer and larger messages, and work \
                 while they travel (MPI_Isend, MPI_Irecv)",
                "gyan report --peers DIR",
            ),
            FunctionKind::Polls => ("wait instead of asking, or work between two calls", sites),
            FunctionKind::Rooted => (
                "see whether the root comes late, for which all others wait; have it send before it works, or use the \
                 nonblocking form",
                "gyan report --waiting DIR",
            ),
            FunctionKind::Collective => (
                "see which rank comes last; call it less often, or work meanwhile (the nonblocking form)",
                "gyan report --waiting DIR",
            ),
            FunctionKind::Accesses => (
                "collect what goes to one rank into fewer and larger accesses, with a datatype if it is scattered",
                sites,
            ),
            FunctionKind::Epochs => (
                "see whether a rank comes late to the synchronisation of the window, or holds a lock for long; wait \
                 only for those that take part (MPI_Win_post, MPI_Win_start, MPI_Win_flush)",
                sites,
            ),
            FunctionKind::Objects => {
                ("make the object once, before the loop, and use it again", sites)
            }
            FunctionKind::Files => {
                ("read and write larger pieces, and together (the functions with _all)", sites)
            }
            FunctionKind::Processes => ("start or connect processes once, and keep them", sites),
            FunctionKind::Start | FunctionKind::Local => {
                ("see which calls take the time, and whether each is needed", sites)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_of_the_kind_that_they_are_of() {
        for (name, kind) in [
            ("MPI_Send", FunctionKind::Messages),
            ("MPI_Irecv", FunctionKind::Messages),
            ("MPI_Waitall", FunctionKind::Messages),
            ("MPI_Send_init", FunctionKind::Local),
            ("MPI_Neighbor_allgather", FunctionKind::Messages),
            ("MPI_Testall", FunctionKind::Polls),
            ("MPI_Bcast_c", FunctionKind::Rooted),
            ("MPI_Allreduce", FunctionKind::Collective),
            ("MPI_Alltoallv_c", FunctionKind::Collective),
            ("MPI_Alloc_mem", FunctionKind::Local),
            ("MPI_Reduce_scatter", FunctionKind::Collective),
            ("MPI_Reduce_local", FunctionKind::Local),
            ("MPI_Put", FunctionKind::Accesses),
            ("MPI_Win_lock", FunctionKind::Epochs),
            ("MPI_Win_flush_all", FunctionKind::Epochs),
            ("MPI_Win_create", FunctionKind::Objects),
            ("MPI_Comm_split", FunctionKind::Objects),
            ("MPI_Comm_split_type", FunctionKind::Objects),
            ("MPI_Comm_rank", FunctionKind::Local),
            ("MPI_Type_vector", FunctionKind::Local),
            ("MPI_File_write_at", FunctionKind::Files),
            ("MPI_Init_thread", FunctionKind::Start),
        ] {
            assert_eq!(kind_of(name), kind, "{name}");
        }
    }
}
