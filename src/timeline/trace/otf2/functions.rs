//! What are the functions of MPI in OTF2? Their roles (`OTF2_RegionRole`), and which collective operation each is
//! (`OTF2_CollectiveOp`).

use crate::words::is_one_of;

/// The role of code that the user has marked, and that of a function for which there is none of its own.
pub(super) const CODE: u8 = 4;
const FUNCTION: u8 = 1;

/// By the names of functions, the first that fits.
const ROLES: [(u8, &str); 9] = [
    // Making an object, or asking about one, is neither a message nor an access.
    (FUNCTION, "MPI_Reduce_local MPI_*_get_* MPI_*_set_* MPI_*_call_errhandler"),
    // Barriers.
    (15, "MPI_Barrier MPI_Ibarrier MPI_Barrier_init"),
    // From one to all.
    (23, "MPI_Bcast* MPI_Ibcast* MPI_Scatter* MPI_Iscatter*"),
    // From all to all.
    (
        25,
        "MPI_Allgather* MPI_Allreduce* MPI_Alltoall* MPI_Iall* MPI_Reduce_scatter* MPI_Ireduce_scatter*",
    ),
    // From all to one.
    (24, "MPI_Reduce* MPI_Ireduce* MPI_Gather* MPI_Igather*"),
    // Other collective operations.
    (26, "MPI_Scan* MPI_Iscan* MPI_Exscan* MPI_Iexscan* MPI_Neighbor_* MPI_Ineighbor_*"),
    // Files.
    (27, "MPI_File_*"),
    // Messages.
    (
        28,
        "MPI_*end MPI_*ecv MPI_*end_init MPI_*ecv_init MPI_*endrecv_replace MPI_*robe MPI_Start* MPI_Wait* MPI_Test MPI_Testall \
         MPI_Testany MPI_Testsome MPI_Cancel MPI_Pready* MPI_Parrived",
    ),
    // Accesses to windows.
    (
        29,
        "MPI_Put MPI_Get MPI_Accumulate MPI_Get_accumulate MPI_Fetch_and_op MPI_Compare_and_swap MPI_Rput MPI_Rget \
         MPI_Raccumulate MPI_Rget_accumulate MPI_Win_*",
    ),
];

/// The collective operations, by their numbers and under the names of the functions that return when they are done.
const COLLECTIVES: [&str; 17] = [
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Scatter",
    "MPI_Scatterv",
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Alltoallw",
    "MPI_Allreduce",
    "MPI_Reduce",
    "MPI_Reduce_scatter",
    "MPI_Scan",
    "MPI_Exscan",
    "MPI_Reduce_scatter_block",
];

/// The large-count form of a function is like it.
fn without_suffix(function: &str) -> &str {
    function.strip_suffix("_c").unwrap_or(function)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct CollectiveFunction {
    pub(super) operation: u8,
    /// Whether another call completes it.
    pub(super) is_nonblocking: bool,
}

/// The collective operation of a function; none of any other one, and of one that only prepares an operation.
pub(super) fn collective(function: &str) -> Option<CollectiveFunction> {
    let blocking = blocking_form(function);
    let place = COLLECTIVES.iter().position(|known| *known == blocking)?;
    let is_nonblocking = blocking != without_suffix(function);
    Some(CollectiveFunction { operation: u8::try_from(place).ok()?, is_nonblocking })
}

/// `MPI_Bcast` of `MPI_Ibcast`; any other function as it is, without the suffix of large counts.
fn blocking_form(function: &str) -> String {
    let function = without_suffix(function);
    let after = function.strip_prefix("MPI_I").and_then(|rest| rest.split_at_checked(1));
    match after {
        Some((first, rest)) if first.chars().all(char::is_lowercase) => {
            format!("MPI_{}{rest}", first.to_uppercase())
        }
        _ => function.to_owned(),
    }
}

/// What a rank sent and what it received in a collective operation, in bytes: as far as the bytes that are counted on it say that,
/// otherwise 0.
pub(super) fn sent_and_received(function: &str, counted: u64, is_root: bool) -> (u64, u64) {
    let is_received = match blocking_form(function).as_str() {
        // The message is counted on every rank.
        "MPI_Bcast" => !is_root,
        // What a rank gets from the root is counted.
        "MPI_Scatter" | "MPI_Scatterv" => true,
        _ => false,
    };
    if is_received { (0, counted) } else { (counted, 0) }
}

pub(super) fn role(function: &str) -> u8 {
    let name = without_suffix(function);
    ROLES.iter().find(|(_, names)| is_one_of(name, names)).map_or(FUNCTION, |(role, _)| *role)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_role_of_what_they_do() {
        for (name, expected) in [
            ("MPI_Barrier", 15),
            ("MPI_Ibcast", 23),
            ("MPI_Scatterv_c", 23),
            ("MPI_Allreduce", 25),
            ("MPI_Ialltoallw", 25),
            ("MPI_Reduce_scatter_block", 25),
            ("MPI_Reduce", 24),
            ("MPI_Gather_init", 24),
            ("MPI_Exscan", 26),
            ("MPI_Neighbor_alltoall", 26),
            ("MPI_File_write_all", 27),
            ("MPI_Isend", 28),
            ("MPI_Mrecv", 28),
            ("MPI_Sendrecv_replace", 28),
            ("MPI_Improbe", 28),
            ("MPI_Waitsome", 28),
            ("MPI_Ssend_init", 28),
            ("MPI_Rget_accumulate_c", 29),
            ("MPI_Win_fence", 29),
            ("MPI_Reduce_local", FUNCTION),
            ("MPI_Comm_split", FUNCTION),
            ("MPI_Win_get_name", FUNCTION),
            ("MPI_Alloc_mem", FUNCTION),
            ("MPI_Test_cancelled", FUNCTION),
        ] {
            assert_eq!(role(name), expected, "{name}");
        }
    }

    #[test]
    fn counted_bytes_were_sent_or_received() {
        assert_eq!(sent_and_received("MPI_Bcast", 8, true), (8, 0));
        assert_eq!(sent_and_received("MPI_Bcast_c", 8, false), (0, 8));
        assert_eq!(sent_and_received("MPI_Ibcast_c", 8, false), (0, 8));
        assert_eq!(sent_and_received("MPI_Scatterv", 8, true), (0, 8));
        assert_eq!(sent_and_received("MPI_Reduce", 8, false), (8, 0));
    }

    #[test]
    fn collective_operations_have_the_numbers_of_otf2() {
        let found =
            |operation, is_nonblocking| Some(CollectiveFunction { operation, is_nonblocking });
        for (function, expected) in [
            ("MPI_Barrier", found(0, false)),
            ("MPI_Allreduce_c", found(11, false)),
            ("MPI_Reduce_scatter_block", found(16, false)),
            ("MPI_Ibcast", found(1, true)),
            ("MPI_Iallgatherv_c", found(7, true)),
            ("MPI_Isend", None),
            ("MPI_Bcast_init", None),
            ("MPI_Init", None),
        ] {
            assert_eq!(collective(function), expected, "{function}");
        }
    }
}
