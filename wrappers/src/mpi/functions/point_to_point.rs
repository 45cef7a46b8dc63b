//! MPI 4.1, chapter 3: point-to-point communication.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            [MPI_Bsend, MPI_Bsend_c] / mpi_bsend(buf: Pointer, count: Count, datatype: Datatype, dest: Int, tag: Int, comm: Comm) moves message(count, datatype, dest, comm);
            [MPI_Bsend_init, MPI_Bsend_init_c] / mpi_bsend_init(buf: Pointer, count: Count, datatype: Datatype, dest: Int, tag: Int, comm: Comm, request: Pointer) prepares message(count, datatype, dest, comm);
            [MPI_Buffer_attach, MPI_Buffer_attach_c] / mpi_buffer_attach(buffer: Pointer, size: Count);
            [MPI_Buffer_detach, MPI_Buffer_detach_c] / mpi_buffer_detach(buffer_addr: Pointer, size: OutCount);
            MPI_Buffer_flush / mpi_buffer_flush();
            MPI_Buffer_iflush / mpi_buffer_iflush(request: Pointer);
            MPI_Cancel / mpi_cancel(request: Pointer);
            [MPI_Comm_attach_buffer, MPI_Comm_attach_buffer_c] / mpi_comm_attach_buffer(comm: Comm, buffer: Pointer, size: Count);
            [MPI_Comm_detach_buffer, MPI_Comm_detach_buffer_c] / mpi_comm_detach_buffer(comm: Comm, buffer_addr: Pointer, size: OutCount);
            MPI_Comm_flush_buffer / mpi_comm_flush_buffer(comm: Comm);
            MPI_Comm_iflush_buffer / mpi_comm_iflush_buffer(comm: Comm, request: Pointer);
            [MPI_Get_count, MPI_Get_count_c] / mpi_get_count(status: Pointer, datatype: Datatype, count: OutCount);
            [MPI_Ibsend, MPI_Ibsend_c] / mpi_ibsend(buf: Pointer, count: Count, datatype: Datatype, dest: Int, tag: Int, comm: Comm, request: Pointer) moves message(count, datatype, dest, comm);
            MPI_Improbe / mpi_improbe(source: Int, tag: Int, comm: Comm, flag: Pointer, message: Pointer, status: Pointer) [samples];
            [MPI_Imrecv, MPI_Imrecv_c] / mpi_imrecv(buf: Pointer, count: Count, datatype: Datatype, message: Pointer, request: Pointer) [samples receives_matched()];
            MPI_Iprobe / mpi_iprobe(source: Int, tag: Int, comm: Comm, flag: Pointer, status: Pointer) [samples];
            [MPI_Irecv, MPI_Irecv_c] / mpi_irecv(buf: Pointer, count: Count, datatype: Datatype, source: Int, tag: Int, comm: Comm, request: Pointer) [samples posts(source, tag, comm)];
            [MPI_Irsend, MPI_Irsend_c] / mpi_irsend(buf: Pointer, count: Count, datatype: Datatype, dest: Int, tag: Int, comm: Comm, request: Pointer) moves message(count, datatype, dest, comm);
            [MPI_Isend, MPI_Isend_c] / mpi_isend(buf: Pointer, count: Count, datatype: Datatype, dest: Int, tag: Int, comm: Comm, request: Pointer) moves message(count, datatype, dest, comm);
            [MPI_Isendrecv, MPI_Isendrecv_c] / mpi_isendrecv(sendbuf: Pointer, sendcount: Count, sendtype: Datatype, dest: Int, sendtag: Int, recvbuf: Pointer, recvcount: Count, recvtype: Datatype, source: Int, recvtag: Int, comm: Comm, request: Pointer) [samples posts(source, recvtag, comm)] moves message(sendcount, sendtype, dest, comm);
            [MPI_Isendrecv_replace, MPI_Isendrecv_replace_c] / mpi_isendrecv_replace(buf: Pointer, count: Count, datatype: Datatype, dest: Int, sendtag: Int, source: Int, recvtag: Int, comm: Comm, request: Pointer) [samples posts(source, recvtag, comm)] moves message(count, datatype, dest, comm);
            [MPI_Issend, MPI_Issend_c] / mpi_issend(buf: Pointer, count: Count, datatype: Datatype, dest: Int, tag: Int, comm: Comm, request: Pointer) moves message(count, datatype, dest, comm);
            MPI_Mprobe / mpi_mprobe(source: Int, tag: Int, comm: Comm, message: Pointer, status: Pointer) [samples];
            [MPI_Mrecv, MPI_Mrecv_c] / mpi_mrecv(buf: Pointer, count: Count, datatype: Datatype, message: Pointer, status: Pointer) [samples receives_matched()];
            MPI_Probe / mpi_probe(source: Int, tag: Int, comm: Comm, status: Pointer) [samples];
            [MPI_Recv, MPI_Recv_c] / mpi_recv(buf: Pointer, count: Count, datatype: Datatype, source: Int, tag: Int, comm: Comm, status: Pointer) [samples receives(source, tag, comm, status)];
            [MPI_Recv_init, MPI_Recv_init_c] / mpi_recv_init(buf: Pointer, count: Count, datatype: Datatype, source: Int, tag: Int, comm: Comm, request: Pointer) [prepares(source, tag, comm, request)] prepares received(source);
            MPI_Request_free / mpi_request_free(request: Pointer) [frees(request)] frees request(request);
            MPI_Request_get_status / mpi_request_get_status(request: Request, flag: Pointer, status: Pointer);
            MPI_Request_get_status_all / mpi_request_get_status_all(count: Int, array_of_requests: Pointer, flag: Pointer, array_of_statuses: Pointer);
            MPI_Request_get_status_any / mpi_request_get_status_any(count: Int, array_of_requests: Pointer, indx: Pointer, flag: Pointer, status: Pointer);
            MPI_Request_get_status_some / mpi_request_get_status_some(incount: Int, array_of_requests: Pointer, outcount: Pointer, array_of_indices: Pointer, array_of_statuses: Pointer);
            [MPI_Rsend, MPI_Rsend_c] / mpi_rsend(buf: Pointer, count: Count, datatype: Datatype, dest: Int, tag: Int, comm: Comm) moves message(count, datatype, dest, comm);
            [MPI_Rsend_init, MPI_Rsend_init_c] / mpi_rsend_init(buf: Pointer, count: Count, datatype: Datatype, dest: Int, tag: Int, comm: Comm, request: Pointer) prepares message(count, datatype, dest, comm);
            [MPI_Send, MPI_Send_c] / mpi_send(buf: Pointer, count: Count, datatype: Datatype, dest: Int, tag: Int, comm: Comm) moves message(count, datatype, dest, comm);
            [MPI_Send_init, MPI_Send_init_c] / mpi_send_init(buf: Pointer, count: Count, datatype: Datatype, dest: Int, tag: Int, comm: Comm, request: Pointer) prepares message(count, datatype, dest, comm);
            [MPI_Sendrecv, MPI_Sendrecv_c] / mpi_sendrecv(sendbuf: Pointer, sendcount: Count, sendtype: Datatype, dest: Int, sendtag: Int, recvbuf: Pointer, recvcount: Count, recvtype: Datatype, source: Int, recvtag: Int, comm: Comm, status: Pointer) [samples receives(source, recvtag, comm, status)] moves message(sendcount, sendtype, dest, comm);
            [MPI_Sendrecv_replace, MPI_Sendrecv_replace_c] / mpi_sendrecv_replace(buf: Pointer, count: Count, datatype: Datatype, dest: Int, sendtag: Int, source: Int, recvtag: Int, comm: Comm, status: Pointer) [samples receives(source, recvtag, comm, status)] moves message(count, datatype, dest, comm);
            [MPI_Session_attach_buffer, MPI_Session_attach_buffer_c] / mpi_session_attach_buffer(session: Handle, buffer: Pointer, size: Count);
            [MPI_Session_detach_buffer, MPI_Session_detach_buffer_c] / mpi_session_detach_buffer(session: Handle, buffer_addr: Pointer, size: OutCount);
            MPI_Session_flush_buffer / mpi_session_flush_buffer(session: Handle);
            MPI_Session_iflush_buffer / mpi_session_iflush_buffer(session: Handle, request: Pointer);
            [MPI_Ssend, MPI_Ssend_c] / mpi_ssend(buf: Pointer, count: Count, datatype: Datatype, dest: Int, tag: Int, comm: Comm) moves message(count, datatype, dest, comm);
            [MPI_Ssend_init, MPI_Ssend_init_c] / mpi_ssend_init(buf: Pointer, count: Count, datatype: Datatype, dest: Int, tag: Int, comm: Comm, request: Pointer) prepares message(count, datatype, dest, comm);
            MPI_Start / mpi_start(request: Requests) [starts(request)] moves started(request);
            MPI_Startall / mpi_startall(count: Int, array_of_requests: Requests) [starts_all(count, array_of_requests)] moves started_all(count, array_of_requests);
            MPI_Status_get_error / mpi_status_get_error(status: Pointer, error: Pointer);
            MPI_Status_get_source / mpi_status_get_source(status: Pointer, source: Pointer);
            MPI_Status_get_tag / mpi_status_get_tag(status: Pointer, tag: Pointer);
            MPI_Test / mpi_test(request: Pointer, flag: Pointer, status: Pointer) [samples] completes one_if(request, flag);
            MPI_Test_cancelled / mpi_test_cancelled(status: Pointer, flag: Pointer);
            MPI_Testall / mpi_testall(count: Int, array_of_requests: Pointer, flag: Pointer, array_of_statuses: Pointer) [samples] completes many_if(count, array_of_requests, flag);
            MPI_Testany / mpi_testany(count: Int, array_of_requests: Pointer, indx: Pointer, flag: Pointer, status: Pointer) [samples] completes many_if(count, array_of_requests, flag);
            MPI_Testsome / mpi_testsome(incount: Int, array_of_requests: Pointer, outcount: Pointer, array_of_indices: Pointer, array_of_statuses: Pointer) [samples] completes many_if(incount, array_of_requests, outcount);
            MPI_Wait / mpi_wait(request: Pointer, status: Pointer) [samples] completes one(request);
            MPI_Waitall / mpi_waitall(count: Int, array_of_requests: Pointer, array_of_statuses: Pointer) [samples] completes many(count, array_of_requests);
            MPI_Waitany / mpi_waitany(count: Int, array_of_requests: Pointer, indx: Pointer, status: Pointer) [samples] completes many(count, array_of_requests);
            MPI_Waitsome / mpi_waitsome(incount: Int, array_of_requests: Pointer, outcount: Pointer, array_of_indices: Pointer, array_of_statuses: Pointer) [samples] completes many(incount, array_of_requests);
        }
    };
}
pub(crate) use rows;

rows! { number_rows super::by_hand::END; }

use super::number_rows;
