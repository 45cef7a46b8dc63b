//! MPI 4.1, chapter 8: virtual topologies and neighbourhood collectives.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            MPI_Cart_coords / mpi_cart_coords(comm: Comm, rank: Int, maxdims: Int, coords: Pointer);
            MPI_Cart_create / mpi_cart_create(comm_old: Comm, ndims: Int, dims: Pointer, periods: Pointer, reorder: Int, comm_cart: Pointer) creates topology(comm_cart, comm_old, reorder);
            MPI_Cart_get / mpi_cart_get(comm: Comm, maxdims: Int, dims: Pointer, periods: Pointer, coords: Pointer);
            MPI_Cart_map / mpi_cart_map(comm: Comm, ndims: Int, dims: Pointer, periods: Pointer, newrank: Pointer);
            MPI_Cart_rank / mpi_cart_rank(comm: Comm, coords: Pointer, rank: Pointer);
            MPI_Cart_shift / mpi_cart_shift(comm: Comm, direction: Int, disp: Int, rank_source: Pointer, rank_dest: Pointer);
            MPI_Cart_sub / mpi_cart_sub(comm: Comm, remain_dims: Pointer, newcomm: Pointer) creates part(newcomm, comm);
            MPI_Cartdim_get / mpi_cartdim_get(comm: Comm, ndims: Pointer);
            MPI_Dims_create / mpi_dims_create(nnodes: Int, ndims: Int, dims: Pointer);
            MPI_Dist_graph_create / mpi_dist_graph_create(comm_old: Comm, n: Int, sources: Pointer, degrees: Pointer, destinations: Pointer, weights: Pointer, info: Handle, reorder: Int, comm_dist_graph: Pointer) creates topology(comm_dist_graph, comm_old, reorder);
            MPI_Dist_graph_create_adjacent / mpi_dist_graph_create_adjacent(comm_old: Comm, indegree: Int, sources: Pointer, sourceweights: Pointer, outdegree: Int, destinations: Pointer, destweights: Pointer, info: Handle, reorder: Int, comm_dist_graph: Pointer) creates topology(comm_dist_graph, comm_old, reorder);
            MPI_Dist_graph_neighbors / mpi_dist_graph_neighbors(comm: Comm, maxindegree: Int, sources: Pointer, sourceweights: Pointer, maxoutdegree: Int, destinations: Pointer, destweights: Pointer);
            MPI_Dist_graph_neighbors_count / mpi_dist_graph_neighbors_count(comm: Comm, indegree: Pointer, outdegree: Pointer, weighted: Pointer);
            MPI_Graph_create / mpi_graph_create(comm_old: Comm, nnodes: Int, indx: Pointer, edges: Pointer, reorder: Int, comm_graph: Pointer) creates topology(comm_graph, comm_old, reorder);
            MPI_Graph_get / mpi_graph_get(comm: Comm, maxindex: Int, maxedges: Int, indx: Pointer, edges: Pointer);
            MPI_Graph_map / mpi_graph_map(comm: Comm, nnodes: Int, indx: Pointer, edges: Pointer, newrank: Pointer);
            MPI_Graph_neighbors / mpi_graph_neighbors(comm: Comm, rank: Int, maxneighbors: Int, neighbors: Pointer);
            MPI_Graph_neighbors_count / mpi_graph_neighbors_count(comm: Comm, rank: Int, nneighbors: Pointer);
            MPI_Graphdims_get / mpi_graphdims_get(comm: Comm, nnodes: Pointer, nedges: Pointer);
            [MPI_Ineighbor_allgather, MPI_Ineighbor_allgather_c] / mpi_ineighbor_allgather(sendbuf: Pointer, sendcount: Count, sendtype: Datatype, recvbuf: Pointer, recvcount: Count, recvtype: Datatype, comm: Comm, request: Pointer) [samples] moves to_neighbors(sendcount, sendtype, comm);
            [MPI_Ineighbor_allgatherv, MPI_Ineighbor_allgatherv_c] / mpi_ineighbor_allgatherv(sendbuf: Pointer, sendcount: Count, sendtype: Datatype, recvbuf: Pointer, recvcounts: PerSource, displs: PerSource, recvtype: Datatype, comm: Comm, request: Pointer) [samples] moves to_neighbors(sendcount, sendtype, comm);
            [MPI_Ineighbor_alltoall, MPI_Ineighbor_alltoall_c] / mpi_ineighbor_alltoall(sendbuf: Pointer, sendcount: Count, sendtype: Datatype, recvbuf: Pointer, recvcount: Count, recvtype: Datatype, comm: Comm, request: Pointer) [samples] moves to_neighbors(sendcount, sendtype, comm);
            [MPI_Ineighbor_alltoallv, MPI_Ineighbor_alltoallv_c] / mpi_ineighbor_alltoallv(sendbuf: Pointer, sendcounts: PerDestination, sdispls: PerDestination, sendtype: Datatype, recvbuf: Pointer, recvcounts: PerSource, rdispls: PerSource, recvtype: Datatype, comm: Comm, request: Pointer) [samples] moves to_neighbors_v(sendcounts, sendtype, comm);
            [MPI_Ineighbor_alltoallw, MPI_Ineighbor_alltoallw_c] / mpi_ineighbor_alltoallw(sendbuf: Pointer, sendcounts: PerDestination, sdispls: Pointer, sendtypes: Datatypes, recvbuf: Pointer, recvcounts: PerSource, rdispls: Pointer, recvtypes: Pointer, comm: Comm, request: Pointer) [samples] moves to_neighbors_w(sendcounts, sendtypes, comm);
            [MPI_Neighbor_allgather, MPI_Neighbor_allgather_c] / mpi_neighbor_allgather(sendbuf: Pointer, sendcount: Count, sendtype: Datatype, recvbuf: Pointer, recvcount: Count, recvtype: Datatype, comm: Comm) [samples] moves to_neighbors(sendcount, sendtype, comm);
            [MPI_Neighbor_allgather_init, MPI_Neighbor_allgather_init_c] / mpi_neighbor_allgather_init(sendbuf: Pointer, sendcount: Count, sendtype: Datatype, recvbuf: Pointer, recvcount: Count, recvtype: Datatype, comm: Comm, info: Handle, request: Pointer) prepares to_neighbors(sendcount, sendtype, comm);
            [MPI_Neighbor_allgatherv, MPI_Neighbor_allgatherv_c] / mpi_neighbor_allgatherv(sendbuf: Pointer, sendcount: Count, sendtype: Datatype, recvbuf: Pointer, recvcounts: PerSource, displs: PerSource, recvtype: Datatype, comm: Comm) [samples] moves to_neighbors(sendcount, sendtype, comm);
            [MPI_Neighbor_allgatherv_init, MPI_Neighbor_allgatherv_init_c] / mpi_neighbor_allgatherv_init(sendbuf: Pointer, sendcount: Count, sendtype: Datatype, recvbuf: Pointer, recvcounts: PerSource, displs: PerSource, recvtype: Datatype, comm: Comm, info: Handle, request: Pointer) prepares to_neighbors(sendcount, sendtype, comm);
            [MPI_Neighbor_alltoall, MPI_Neighbor_alltoall_c] / mpi_neighbor_alltoall(sendbuf: Pointer, sendcount: Count, sendtype: Datatype, recvbuf: Pointer, recvcount: Count, recvtype: Datatype, comm: Comm) [samples] moves to_neighbors(sendcount, sendtype, comm);
            [MPI_Neighbor_alltoall_init, MPI_Neighbor_alltoall_init_c] / mpi_neighbor_alltoall_init(sendbuf: Pointer, sendcount: Count, sendtype: Datatype, recvbuf: Pointer, recvcount: Count, recvtype: Datatype, comm: Comm, info: Handle, request: Pointer) prepares to_neighbors(sendcount, sendtype, comm);
            [MPI_Neighbor_alltoallv, MPI_Neighbor_alltoallv_c] / mpi_neighbor_alltoallv(sendbuf: Pointer, sendcounts: PerDestination, sdispls: PerDestination, sendtype: Datatype, recvbuf: Pointer, recvcounts: PerSource, rdispls: PerSource, recvtype: Datatype, comm: Comm) [samples] moves to_neighbors_v(sendcounts, sendtype, comm);
            [MPI_Neighbor_alltoallv_init, MPI_Neighbor_alltoallv_init_c] / mpi_neighbor_alltoallv_init(sendbuf: Pointer, sendcounts: PerDestination, sdispls: PerDestination, sendtype: Datatype, recvbuf: Pointer, recvcounts: PerSource, rdispls: PerSource, recvtype: Datatype, comm: Comm, info: Handle, request: Pointer) prepares to_neighbors_v(sendcounts, sendtype, comm);
            [MPI_Neighbor_alltoallw, MPI_Neighbor_alltoallw_c] / mpi_neighbor_alltoallw(sendbuf: Pointer, sendcounts: PerDestination, sdispls: Pointer, sendtypes: Datatypes, recvbuf: Pointer, recvcounts: PerSource, rdispls: Pointer, recvtypes: Pointer, comm: Comm) [samples] moves to_neighbors_w(sendcounts, sendtypes, comm);
            [MPI_Neighbor_alltoallw_init, MPI_Neighbor_alltoallw_init_c] / mpi_neighbor_alltoallw_init(sendbuf: Pointer, sendcounts: PerDestination, sdispls: Pointer, sendtypes: Datatypes, recvbuf: Pointer, recvcounts: PerSource, rdispls: Pointer, recvtypes: Pointer, comm: Comm, info: Handle, request: Pointer) prepares to_neighbors_w(sendcounts, sendtypes, comm);
            MPI_Topo_test / mpi_topo_test(comm: Comm, status: Pointer);
        }
    };
}
pub(crate) use rows;

rows! { number_rows super::caching::END; }

use super::number_rows;
