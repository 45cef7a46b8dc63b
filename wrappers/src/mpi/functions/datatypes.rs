//! MPI 4.1, chapter 5: datatypes, packing; and the numeric types of Fortran (19.1).

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            MPI_Get_address / mpi_get_address(location: Pointer, address: Pointer);
            [MPI_Get_elements, MPI_Get_elements_c] / mpi_get_elements(status: Pointer, datatype: Datatype, count: OutCount);
            [MPI_Pack, MPI_Pack_c] / mpi_pack(inbuf: Pointer, incount: Count, datatype: Datatype, outbuf: Pointer, outsize: Count, position: OutCount, comm: Comm);
            [MPI_Pack_external, MPI_Pack_external_c] / mpi_pack_external(datarep: Text, inbuf: Pointer, incount: Count, datatype: Datatype, outbuf: Pointer, outsize: Aint, position: Pointer);
            [MPI_Pack_external_size, MPI_Pack_external_size_c] / mpi_pack_external_size(datarep: Text, incount: Count, datatype: Datatype, size: Pointer);
            [MPI_Pack_size, MPI_Pack_size_c] / mpi_pack_size(incount: Count, datatype: Datatype, comm: Comm, size: OutCount);
            MPI_Type_commit / mpi_type_commit(datatype: Pointer);
            [MPI_Type_contiguous, MPI_Type_contiguous_c] / mpi_type_contiguous(count: Count, oldtype: Datatype, newtype: Pointer);
            [MPI_Type_create_darray, MPI_Type_create_darray_c] / mpi_type_create_darray(size: Int, rank: Int, ndims: Int, array_of_gsizes: PerItem, array_of_distribs: Pointer, array_of_dargs: Pointer, array_of_psizes: Pointer, order: Int, oldtype: Datatype, newtype: Pointer);
            MPI_Type_create_f90_complex / mpi_type_create_f90_complex(p: Int, r: Int, newtype: Pointer);
            MPI_Type_create_f90_integer / mpi_type_create_f90_integer(r: Int, newtype: Pointer);
            MPI_Type_create_f90_real / mpi_type_create_f90_real(p: Int, r: Int, newtype: Pointer);
            [MPI_Type_create_hindexed, MPI_Type_create_hindexed_c] / mpi_type_create_hindexed(count: Count, array_of_blocklengths: PerItem, array_of_displacements: Pointer, oldtype: Datatype, newtype: Pointer);
            [MPI_Type_create_hindexed_block, MPI_Type_create_hindexed_block_c] / mpi_type_create_hindexed_block(count: Count, blocklength: Count, array_of_displacements: Pointer, oldtype: Datatype, newtype: Pointer);
            [MPI_Type_create_hvector, MPI_Type_create_hvector_c] / mpi_type_create_hvector(count: Count, blocklength: Count, stride: Aint, oldtype: Datatype, newtype: Pointer);
            [MPI_Type_create_indexed_block, MPI_Type_create_indexed_block_c] / mpi_type_create_indexed_block(count: Count, blocklength: Count, array_of_displacements: PerItem, oldtype: Datatype, newtype: Pointer);
            [MPI_Type_create_resized, MPI_Type_create_resized_c] / mpi_type_create_resized(oldtype: Datatype, lb: Aint, extent: Aint, newtype: Pointer);
            [MPI_Type_create_struct, MPI_Type_create_struct_c] / mpi_type_create_struct(count: Count, array_of_blocklengths: PerItem, array_of_displacements: Pointer, array_of_types: Pointer, newtype: Pointer);
            [MPI_Type_create_subarray, MPI_Type_create_subarray_c] / mpi_type_create_subarray(ndims: Int, array_of_sizes: PerItem, array_of_subsizes: PerItem, array_of_starts: PerItem, order: Int, oldtype: Datatype, newtype: Pointer);
            MPI_Type_dup / mpi_type_dup(oldtype: Datatype, newtype: Pointer);
            MPI_Type_free / mpi_type_free(datatype: Pointer);
            MPI_Type_get_contents / mpi_type_get_contents(datatype: Datatype, max_integers: Int, max_addresses: Int, max_datatypes: Int, array_of_integers: Pointer, array_of_addresses: Pointer, array_of_datatypes: Pointer);
            MPI_Type_get_contents_c(datatype: Datatype, max_integers: Count, max_addresses: Count, max_large_counts: OwnCount, max_datatypes: Count, array_of_integers: Pointer, array_of_addresses: Pointer, array_of_large_counts: Pointer, array_of_datatypes: Pointer);
            MPI_Type_get_envelope / mpi_type_get_envelope(datatype: Datatype, num_integers: Pointer, num_addresses: Pointer, num_datatypes: Pointer, combiner: Pointer);
            MPI_Type_get_envelope_c(datatype: Datatype, num_integers: Pointer, num_addresses: Pointer, num_large_counts: OutOwnCount, num_datatypes: Pointer, combiner: Pointer);
            [MPI_Type_get_extent, MPI_Type_get_extent_c] / mpi_type_get_extent(datatype: Datatype, lb: Pointer, extent: Pointer);
            [MPI_Type_get_true_extent, MPI_Type_get_true_extent_c] / mpi_type_get_true_extent(datatype: Datatype, true_lb: Pointer, true_extent: Pointer);
            MPI_Type_get_value_index / mpi_type_get_value_index(value_type: Datatype, index_type: Datatype, pair_type: Pointer);
            [MPI_Type_indexed, MPI_Type_indexed_c] / mpi_type_indexed(count: Count, array_of_blocklengths: PerItem, array_of_displacements: PerItem, oldtype: Datatype, newtype: Pointer);
            MPI_Type_match_size / mpi_type_match_size(typeclass: Int, size: Int, datatype: Pointer);
            [MPI_Type_size, MPI_Type_size_c] / mpi_type_size(datatype: Datatype, size: OutCount);
            [MPI_Type_vector, MPI_Type_vector_c] / mpi_type_vector(count: Count, blocklength: Count, stride: Count, oldtype: Datatype, newtype: Pointer);
            [MPI_Unpack, MPI_Unpack_c] / mpi_unpack(inbuf: Pointer, insize: Count, position: OutCount, outbuf: Pointer, outcount: Count, datatype: Datatype, comm: Comm);
            [MPI_Unpack_external, MPI_Unpack_external_c] / mpi_unpack_external(datarep: Text, inbuf: Pointer, insize: Aint, position: Pointer, outbuf: Pointer, outcount: Count, datatype: Datatype);
        }
    };
}
pub(crate) use rows;

rows! { number_rows super::partitioned::END; }

use super::number_rows;
