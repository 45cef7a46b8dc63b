//! MPI 4.1, chapters 3 and 4: every operation that receives, with its large-count form, which
//! Fortran has only inside `mpi_f08`.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $apply! { $($first)*
            /// 3.2.4
            MPI_Recv / mpi_recv(buf: Pointer, count: Int, datatype: Handle, source: Int, tag: Int, comm: Handle, status: Pointer);
            /// 3.2.4
            MPI_Recv_c(buf: Pointer, count: Count, datatype: Handle, source: Int, tag: Int, comm: Handle, status: Pointer);
            /// 3.7.2
            MPI_Irecv / mpi_irecv(buf: Pointer, count: Int, datatype: Handle, source: Int, tag: Int, comm: Handle, request: Pointer);
            /// 3.7.2
            MPI_Irecv_c(buf: Pointer, count: Count, datatype: Handle, source: Int, tag: Int, comm: Handle, request: Pointer);
            /// 3.8.3
            MPI_Mrecv / mpi_mrecv(buf: Pointer, count: Int, datatype: Handle, message: Pointer, status: Pointer);
            /// 3.8.3
            MPI_Mrecv_c(buf: Pointer, count: Count, datatype: Handle, message: Pointer, status: Pointer);
            /// 3.8.3
            MPI_Imrecv / mpi_imrecv(buf: Pointer, count: Int, datatype: Handle, message: Pointer, request: Pointer);
            /// 3.8.3
            MPI_Imrecv_c(buf: Pointer, count: Count, datatype: Handle, message: Pointer, request: Pointer);
            /// 3.10
            MPI_Sendrecv / mpi_sendrecv(sendbuf: Pointer, sendcount: Int, sendtype: Handle, dest: Int, sendtag: Int, recvbuf: Pointer, recvcount: Int, recvtype: Handle, source: Int, recvtag: Int, comm: Handle, status: Pointer);
            /// 3.10
            MPI_Sendrecv_c(sendbuf: Pointer, sendcount: Count, sendtype: Handle, dest: Int, sendtag: Int, recvbuf: Pointer, recvcount: Count, recvtype: Handle, source: Int, recvtag: Int, comm: Handle, status: Pointer);
            /// 3.10
            MPI_Sendrecv_replace / mpi_sendrecv_replace(buf: Pointer, count: Int, datatype: Handle, dest: Int, sendtag: Int, source: Int, recvtag: Int, comm: Handle, status: Pointer);
            /// 3.10
            MPI_Sendrecv_replace_c(buf: Pointer, count: Count, datatype: Handle, dest: Int, sendtag: Int, source: Int, recvtag: Int, comm: Handle, status: Pointer);
            /// 3.10
            MPI_Isendrecv / mpi_isendrecv(sendbuf: Pointer, sendcount: Int, sendtype: Handle, dest: Int, sendtag: Int, recvbuf: Pointer, recvcount: Int, recvtype: Handle, source: Int, recvtag: Int, comm: Handle, request: Pointer);
            /// 3.10
            MPI_Isendrecv_c(sendbuf: Pointer, sendcount: Count, sendtype: Handle, dest: Int, sendtag: Int, recvbuf: Pointer, recvcount: Count, recvtype: Handle, source: Int, recvtag: Int, comm: Handle, request: Pointer);
            /// 3.10
            MPI_Isendrecv_replace / mpi_isendrecv_replace(buf: Pointer, count: Int, datatype: Handle, dest: Int, sendtag: Int, source: Int, recvtag: Int, comm: Handle, request: Pointer);
            /// 3.10
            MPI_Isendrecv_replace_c(buf: Pointer, count: Count, datatype: Handle, dest: Int, sendtag: Int, source: Int, recvtag: Int, comm: Handle, request: Pointer);
            /// 3.9
            MPI_Recv_init / mpi_recv_init(buf: Pointer, count: Int, datatype: Handle, source: Int, tag: Int, comm: Handle, request: Pointer);
            /// 3.9
            MPI_Recv_init_c(buf: Pointer, count: Count, datatype: Handle, source: Int, tag: Int, comm: Handle, request: Pointer);
            /// 4.2.3
            MPI_Precv_init / mpi_precv_init(buf: Pointer, partitions: Int, count: Count, datatype: Handle, source: Int, tag: Int, comm: Handle, info: Handle, request: Pointer);
        }
    };
}
pub(crate) use rows;

rows! { number_rows super::environment::END; }

use super::number_rows;
