//! MPI 4.1, chapter 14: files.

macro_rules! rows {
    ($apply:ident $($first:tt)*) => {
        $crate::mpi::functions::forms! { $apply [$($first)*]
            MPI_File_close / mpi_file_close(fh: Pointer) frees file(fh);
            MPI_File_delete / mpi_file_delete(filename: Text, info: Handle);
            MPI_File_get_amode / mpi_file_get_amode(fh: File, amode: Pointer);
            MPI_File_get_atomicity / mpi_file_get_atomicity(fh: File, flag: Pointer);
            MPI_File_get_byte_offset / mpi_file_get_byte_offset(fh: File, offset: Offset, disp: Pointer);
            MPI_File_get_group / mpi_file_get_group(fh: File, group: Pointer);
            MPI_File_get_info / mpi_file_get_info(fh: File, info_used: Pointer);
            MPI_File_get_position / mpi_file_get_position(fh: File, offset: Pointer);
            MPI_File_get_position_shared / mpi_file_get_position_shared(fh: File, offset: Pointer);
            MPI_File_get_size / mpi_file_get_size(fh: File, size: Pointer);
            [MPI_File_get_type_extent, MPI_File_get_type_extent_c] / mpi_file_get_type_extent(fh: File, datatype: Datatype, extent: Pointer);
            MPI_File_get_view / mpi_file_get_view(fh: File, disp: Pointer, etype: Pointer, filetype: Pointer, datarep: Text);
            [MPI_File_iread, MPI_File_iread_c] / mpi_file_iread(fh: File, buf: Pointer, count: Count, datatype: Datatype, request: Pointer) moves elements(count, datatype);
            [MPI_File_iread_all, MPI_File_iread_all_c] / mpi_file_iread_all(fh: File, buf: Pointer, count: Count, datatype: Datatype, request: Pointer) moves elements(count, datatype);
            [MPI_File_iread_at, MPI_File_iread_at_c] / mpi_file_iread_at(fh: File, offset: Offset, buf: Pointer, count: Count, datatype: Datatype, request: Pointer) moves elements(count, datatype);
            [MPI_File_iread_at_all, MPI_File_iread_at_all_c] / mpi_file_iread_at_all(fh: File, offset: Offset, buf: Pointer, count: Count, datatype: Datatype, request: Pointer) moves elements(count, datatype);
            [MPI_File_iread_shared, MPI_File_iread_shared_c] / mpi_file_iread_shared(fh: File, buf: Pointer, count: Count, datatype: Datatype, request: Pointer) moves elements(count, datatype);
            [MPI_File_iwrite, MPI_File_iwrite_c] / mpi_file_iwrite(fh: File, buf: Pointer, count: Count, datatype: Datatype, request: Pointer) moves elements(count, datatype);
            [MPI_File_iwrite_all, MPI_File_iwrite_all_c] / mpi_file_iwrite_all(fh: File, buf: Pointer, count: Count, datatype: Datatype, request: Pointer) moves elements(count, datatype);
            [MPI_File_iwrite_at, MPI_File_iwrite_at_c] / mpi_file_iwrite_at(fh: File, offset: Offset, buf: Pointer, count: Count, datatype: Datatype, request: Pointer) moves elements(count, datatype);
            [MPI_File_iwrite_at_all, MPI_File_iwrite_at_all_c] / mpi_file_iwrite_at_all(fh: File, offset: Offset, buf: Pointer, count: Count, datatype: Datatype, request: Pointer) moves elements(count, datatype);
            [MPI_File_iwrite_shared, MPI_File_iwrite_shared_c] / mpi_file_iwrite_shared(fh: File, buf: Pointer, count: Count, datatype: Datatype, request: Pointer) moves elements(count, datatype);
            MPI_File_open / mpi_file_open(comm: Comm, filename: Text, amode: Int, info: Handle, fh: Pointer) creates file(fh);
            MPI_File_preallocate / mpi_file_preallocate(fh: File, size: Offset);
            [MPI_File_read, MPI_File_read_c] / mpi_file_read(fh: File, buf: Pointer, count: Count, datatype: Datatype, status: Pointer) moves elements(count, datatype);
            [MPI_File_read_all, MPI_File_read_all_c] / mpi_file_read_all(fh: File, buf: Pointer, count: Count, datatype: Datatype, status: Pointer) moves elements(count, datatype);
            [MPI_File_read_all_begin, MPI_File_read_all_begin_c] / mpi_file_read_all_begin(fh: File, buf: Pointer, count: Count, datatype: Datatype) moves elements(count, datatype);
            MPI_File_read_all_end / mpi_file_read_all_end(fh: File, buf: Pointer, status: Pointer);
            [MPI_File_read_at, MPI_File_read_at_c] / mpi_file_read_at(fh: File, offset: Offset, buf: Pointer, count: Count, datatype: Datatype, status: Pointer) moves elements(count, datatype);
            [MPI_File_read_at_all, MPI_File_read_at_all_c] / mpi_file_read_at_all(fh: File, offset: Offset, buf: Pointer, count: Count, datatype: Datatype, status: Pointer) moves elements(count, datatype);
            [MPI_File_read_at_all_begin, MPI_File_read_at_all_begin_c] / mpi_file_read_at_all_begin(fh: File, offset: Offset, buf: Pointer, count: Count, datatype: Datatype) moves elements(count, datatype);
            MPI_File_read_at_all_end / mpi_file_read_at_all_end(fh: File, buf: Pointer, status: Pointer);
            [MPI_File_read_ordered, MPI_File_read_ordered_c] / mpi_file_read_ordered(fh: File, buf: Pointer, count: Count, datatype: Datatype, status: Pointer) moves elements(count, datatype);
            [MPI_File_read_ordered_begin, MPI_File_read_ordered_begin_c] / mpi_file_read_ordered_begin(fh: File, buf: Pointer, count: Count, datatype: Datatype) moves elements(count, datatype);
            MPI_File_read_ordered_end / mpi_file_read_ordered_end(fh: File, buf: Pointer, status: Pointer);
            [MPI_File_read_shared, MPI_File_read_shared_c] / mpi_file_read_shared(fh: File, buf: Pointer, count: Count, datatype: Datatype, status: Pointer) moves elements(count, datatype);
            MPI_File_seek / mpi_file_seek(fh: File, offset: Offset, whence: Int);
            MPI_File_seek_shared / mpi_file_seek_shared(fh: File, offset: Offset, whence: Int);
            MPI_File_set_atomicity / mpi_file_set_atomicity(fh: File, flag: Int);
            MPI_File_set_info / mpi_file_set_info(fh: File, info: Handle);
            MPI_File_set_size / mpi_file_set_size(fh: File, size: Offset);
            MPI_File_set_view / mpi_file_set_view(fh: File, disp: Offset, etype: Datatype, filetype: Datatype, datarep: Text, info: Handle);
            MPI_File_sync / mpi_file_sync(fh: File);
            [MPI_File_write, MPI_File_write_c] / mpi_file_write(fh: File, buf: Pointer, count: Count, datatype: Datatype, status: Pointer) moves elements(count, datatype);
            [MPI_File_write_all, MPI_File_write_all_c] / mpi_file_write_all(fh: File, buf: Pointer, count: Count, datatype: Datatype, status: Pointer) moves elements(count, datatype);
            [MPI_File_write_all_begin, MPI_File_write_all_begin_c] / mpi_file_write_all_begin(fh: File, buf: Pointer, count: Count, datatype: Datatype) moves elements(count, datatype);
            MPI_File_write_all_end / mpi_file_write_all_end(fh: File, buf: Pointer, status: Pointer);
            [MPI_File_write_at, MPI_File_write_at_c] / mpi_file_write_at(fh: File, offset: Offset, buf: Pointer, count: Count, datatype: Datatype, status: Pointer) moves elements(count, datatype);
            [MPI_File_write_at_all, MPI_File_write_at_all_c] / mpi_file_write_at_all(fh: File, offset: Offset, buf: Pointer, count: Count, datatype: Datatype, status: Pointer) moves elements(count, datatype);
            [MPI_File_write_at_all_begin, MPI_File_write_at_all_begin_c] / mpi_file_write_at_all_begin(fh: File, offset: Offset, buf: Pointer, count: Count, datatype: Datatype) moves elements(count, datatype);
            MPI_File_write_at_all_end / mpi_file_write_at_all_end(fh: File, buf: Pointer, status: Pointer);
            [MPI_File_write_ordered, MPI_File_write_ordered_c] / mpi_file_write_ordered(fh: File, buf: Pointer, count: Count, datatype: Datatype, status: Pointer) moves elements(count, datatype);
            [MPI_File_write_ordered_begin, MPI_File_write_ordered_begin_c] / mpi_file_write_ordered_begin(fh: File, buf: Pointer, count: Count, datatype: Datatype) moves elements(count, datatype);
            MPI_File_write_ordered_end / mpi_file_write_ordered_end(fh: File, buf: Pointer, status: Pointer);
            [MPI_File_write_shared, MPI_File_write_shared_c] / mpi_file_write_shared(fh: File, buf: Pointer, count: Count, datatype: Datatype, status: Pointer) moves elements(count, datatype);
            [MPI_Register_datarep, MPI_Register_datarep_c] / mpi_register_datarep(datarep: Text, read_conversion_fn: Callback, write_conversion_fn: Callback, dtype_file_extent_fn: Pointer, extra_state: Pointer);
        }
    };
}
pub(crate) use rows;

rows! { number_rows super::external::END; }

use super::number_rows;
