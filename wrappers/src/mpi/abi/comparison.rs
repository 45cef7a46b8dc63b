//! The differences of two tables, by the standard names of the constants.

use std::ffi::{CStr, c_int};

use gyan_results::Class;

use super::native::ABSENT;
use super::{
    Abi, Bind, CALLBACK_SAFETIES, Constant, FromFortran, SCOPES, THREAD_LEVELS, VERBOSITIES,
};
use crate::sys::symbols;

/// Every constant of a table with its name; a handle that is a symbol as its address.
pub(super) fn constants(abi: &Abi) -> Vec<(String, String)> {
    // No `..` here: a field that is not compared does not compile.
    let Abi {
        name: _,
        comm_world,
        comm_null,
        request_null,
        win_null,
        file_null,
        info_null,
        handle_bytes,
        file_bytes,
        in_place,
        proc_null,
        any_source,
        any_tag,
        status_ignore,
        status_source_and_tag: [status_source, status_tag],
        root,
        mode_noprecede,
        lock_exclusive,
        object_name_bytes,
        unsupported_operation,
        topologies,
        from_fortran,
        // Not in mpi.h.
        fortran_in_place: _,
        thread_levels,
        library_version_bytes,
        verbosities,
        binds,
        classes,
        scopes,
        source_ordered,
        callback_safeties,
        errors,
        datatypes,
    } = abi;
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, handle) in [
        ("MPI_COMM_WORLD", comm_world),
        ("MPI_COMM_NULL", comm_null),
        ("MPI_REQUEST_NULL", request_null),
        ("MPI_WIN_NULL", win_null),
        ("MPI_FILE_NULL", file_null),
        ("MPI_INFO_NULL", info_null),
    ] {
        all.push((name.into(), shown(number(*handle))));
    }
    for (name, size) in [
        ("sizeof(MPI_Comm)", handle_bytes),
        ("sizeof(MPI_File)", file_bytes),
        ("MPI_IN_PLACE", in_place),
        ("MPI_STATUS_IGNORE", status_ignore),
        ("offsetof(MPI_Status, MPI_SOURCE)", status_source),
        ("offsetof(MPI_Status, MPI_TAG)", status_tag),
        ("MPI_MAX_OBJECT_NAME", object_name_bytes),
        ("MPI_MAX_LIBRARY_VERSION_STRING", library_version_bytes),
    ] {
        all.push((name.into(), shown(*size as i128)));
    }
    let mut integers = |prefix: &str, names: &[&str], values: &[c_int]| {
        for (name, value) in names.iter().zip(values).filter(|(_, value)| **value != ABSENT) {
            all.push((format!("{prefix}{name}"), value.to_string()));
        }
    };
    let ranks_and_tags = [*proc_null, *root, *any_source, *any_tag];
    integers("MPI_", &["PROC_NULL", "ROOT", "ANY_SOURCE", "ANY_TAG"], &ranks_and_tags);
    integers("MPI_MODE_", &["NOPRECEDE"], &[*mode_noprecede]);
    integers("MPI_LOCK_", &["EXCLUSIVE"], &[*lock_exclusive]);
    integers("MPI_", &["CART", "GRAPH", "DIST_GRAPH"], topologies);
    integers("MPI_ERR_", &["UNSUPPORTED_OPERATION"], &[*unsupported_operation]);
    integers("", &THREAD_LEVELS, thread_levels);
    integers("MPI_T_VERBOSITY_", &VERBOSITIES, verbosities);
    integers("MPI_T_BIND_", &Bind::ALL.map(|bind| bind.name().unwrap_or("NO_OBJECT")), binds);
    integers("MPI_T_PVAR_CLASS_", &Class::ALL.map(Class::name), classes);
    integers("MPI_T_SCOPE_", &SCOPES, scopes);
    integers("MPI_T_", &["SOURCE_ORDERED"], &[*source_ordered]);
    integers("MPI_T_CB_REQUIRE_", &CALLBACK_SAFETIES, callback_safeties);
    for (value, name) in *errors {
        integers("", &[name], &[*value]);
    }
    let FromFortran { comm, datatype, group, win, file } = from_fortran;
    for (name, function) in
        [("Comm", comm), ("Datatype", datatype), ("Group", group), ("Win", win), ("File", file)]
    {
        let function = function.map_or("itself".into(), CStr::to_string_lossy);
        all.push((format!("MPI_{name} of a Fortran handle"), function.into_owned()));
    }
    for (datatype, handle) in *datatypes {
        let name = serde_json::to_string(datatype).unwrap_or_default();
        all.push((name.trim_matches('"').to_owned(), shown(number(*handle))));
    }
    all
}

/// A line for each constant of `header`, the table made from `mpi.h`, that differs in `known`.
pub(super) fn differences(known: &Abi, header: &Abi) -> Vec<String> {
    let table = constants(known);
    let in_table = |name: &str| table.iter().find(|(there, _)| there == name);
    let line = |(name, value): (String, String)| match in_table(&name) {
        Some((_, same)) if *same == value => None,
        Some((_, other)) => {
            Some(format!("{name}: {value} in mpi.h, {other} in the table {}", known.name))
        }
        None => Some(format!("{name}: {value} in mpi.h, not in the table {}", known.name)),
    };
    constants(header).into_iter().filter_map(line).collect()
}

/// Handles and addresses as in a header, integers in decimal.
fn shown(value: i128) -> String {
    if value > 0xffff { format!("{value:#x}") } else { value.to_string() }
}

fn number(handle: Constant) -> i128 {
    match handle {
        Constant::Value(value) => value as i128,
        // Not the value of any handle.
        Constant::Symbol(name) => symbols::default(name).map_or(-1, |at| at.as_ptr() as i128),
    }
}
