//! MPI 4.1, chapter 12: one-sided communication.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            [MPI_Accumulate, MPI_Accumulate_c] / mpi_accumulate(origin_addr: Pointer, origin_count: Count, origin_datatype: Datatype, target_rank: Int, target_disp: Aint, target_count: Count, target_datatype: Datatype, op: Handle, win: Win) moves access(origin_count, origin_datatype, target_rank, win);
            MPI_Compare_and_swap / mpi_compare_and_swap(origin_addr: Pointer, compare_addr: Pointer, result_addr: Pointer, datatype: Datatype, target_rank: Int, target_disp: Aint, win: Win) moves item(datatype, target_rank, win);
            MPI_Fetch_and_op / mpi_fetch_and_op(origin_addr: Pointer, result_addr: Pointer, datatype: Datatype, target_rank: Int, target_disp: Aint, op: Handle, win: Win) moves item(datatype, target_rank, win);
            [MPI_Get, MPI_Get_c] / mpi_get(origin_addr: Pointer, origin_count: Count, origin_datatype: Datatype, target_rank: Int, target_disp: Aint, target_count: Count, target_datatype: Datatype, win: Win) moves access(origin_count, origin_datatype, target_rank, win);
            [MPI_Get_accumulate, MPI_Get_accumulate_c] / mpi_get_accumulate(origin_addr: Pointer, origin_count: Count, origin_datatype: Datatype, result_addr: Pointer, result_count: Count, result_datatype: Datatype, target_rank: Int, target_disp: Aint, target_count: Count, target_datatype: Datatype, op: Handle, win: Win) moves access(result_count, result_datatype, target_rank, win);
            [MPI_Put, MPI_Put_c] / mpi_put(origin_addr: Pointer, origin_count: Count, origin_datatype: Datatype, target_rank: Int, target_disp: Aint, target_count: Count, target_datatype: Datatype, win: Win) moves access(origin_count, origin_datatype, target_rank, win);
            [MPI_Raccumulate, MPI_Raccumulate_c] / mpi_raccumulate(origin_addr: Pointer, origin_count: Count, origin_datatype: Datatype, target_rank: Int, target_disp: Aint, target_count: Count, target_datatype: Datatype, op: Handle, win: Win, request: Pointer) moves access(origin_count, origin_datatype, target_rank, win);
            [MPI_Rget, MPI_Rget_c] / mpi_rget(origin_addr: Pointer, origin_count: Count, origin_datatype: Datatype, target_rank: Int, target_disp: Aint, target_count: Count, target_datatype: Datatype, win: Win, request: Pointer) moves access(origin_count, origin_datatype, target_rank, win);
            [MPI_Rget_accumulate, MPI_Rget_accumulate_c] / mpi_rget_accumulate(origin_addr: Pointer, origin_count: Count, origin_datatype: Datatype, result_addr: Pointer, result_count: Count, result_datatype: Datatype, target_rank: Int, target_disp: Aint, target_count: Count, target_datatype: Datatype, op: Handle, win: Win, request: Pointer) moves access(result_count, result_datatype, target_rank, win);
            [MPI_Rput, MPI_Rput_c] / mpi_rput(origin_addr: Pointer, origin_count: Count, origin_datatype: Datatype, target_rank: Int, target_disp: Aint, target_count: Count, target_datatype: Datatype, win: Win, request: Pointer) moves access(origin_count, origin_datatype, target_rank, win);
            [MPI_Win_allocate, MPI_Win_allocate_c] / mpi_win_allocate mpi_win_allocate_cptr(size: Aint, disp_unit: Count, info: Handle, comm: Comm, baseptr: Pointer, win: Pointer) creates window(win, comm);
            [MPI_Win_allocate_shared, MPI_Win_allocate_shared_c] / mpi_win_allocate_shared mpi_win_allocate_shared_cptr(size: Aint, disp_unit: Count, info: Handle, comm: Comm, baseptr: Pointer, win: Pointer) creates window(win, comm);
            MPI_Win_attach / mpi_win_attach(win: Win, base: Pointer, size: Aint);
            MPI_Win_complete / mpi_win_complete(win: Win) synchronises complete(win);
            [MPI_Win_create, MPI_Win_create_c] / mpi_win_create(base: Pointer, size: Aint, disp_unit: Count, info: Handle, comm: Comm, win: Pointer) creates window(win, comm);
            MPI_Win_create_dynamic / mpi_win_create_dynamic(info: Handle, comm: Comm, win: Pointer) creates window(win, comm);
            MPI_Win_detach / mpi_win_detach(win: Win, base: Pointer);
            MPI_Win_fence / mpi_win_fence(assert: Int, win: Win) [samples waits(win unless assert)];
            MPI_Win_flush / mpi_win_flush(rank: Int, win: Win) locks flush(rank, win);
            MPI_Win_flush_all / mpi_win_flush_all(win: Win) locks flush_all(win);
            MPI_Win_flush_local / mpi_win_flush_local(rank: Int, win: Win) locks flush_local(rank, win);
            MPI_Win_flush_local_all / mpi_win_flush_local_all(win: Win) locks flush_all(win);
            MPI_Win_free / mpi_win_free(win: Pointer) frees win(win);
            MPI_Win_get_group / mpi_win_get_group(win: Win, group: Pointer);
            MPI_Win_get_info / mpi_win_get_info(win: Win, info_used: Pointer);
            MPI_Win_lock / mpi_win_lock(lock_type: Int, rank: Int, assert: Int, win: Win) locks lock(lock_type, rank, win);
            MPI_Win_lock_all / mpi_win_lock_all(assert: Int, win: Win) locks lock_all(win);
            MPI_Win_post / mpi_win_post(group: Handle, assert: Int, win: Win) synchronises post(group, win);
            MPI_Win_set_info / mpi_win_set_info(win: Win, info: Handle);
            [MPI_Win_shared_query, MPI_Win_shared_query_c] / mpi_win_shared_query mpi_win_shared_query_cptr(win: Win, rank: Int, size: Pointer, disp_unit: OutCount, baseptr: Pointer);
            MPI_Win_start / mpi_win_start(group: Handle, assert: Int, win: Win) synchronises start(group, win);
            MPI_Win_sync / mpi_win_sync(win: Win);
            MPI_Win_test / mpi_win_test(win: Win, flag: Pointer) synchronises test(win, flag);
            MPI_Win_unlock / mpi_win_unlock(rank: Int, win: Win) locks unlock(rank, win);
            MPI_Win_unlock_all / mpi_win_unlock_all(win: Win) locks unlock_all(win);
            MPI_Win_wait / mpi_win_wait(win: Win) synchronises wait(win);
        }
    };
}
pub(crate) use rows;

rows! { number_rows super::processes::END; }

use super::number_rows;
