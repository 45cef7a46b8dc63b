//! What do the machine, the loader and the C library give us, safely?
//!
//! Knows nothing of MPI or of gyan's purpose.

pub(crate) mod adiak;
pub(crate) mod alloc;
pub(crate) mod at_exit;
pub(crate) mod cancellation;
pub(crate) mod cells;
pub(crate) mod cgroups;
pub(crate) mod clock;
pub(crate) mod counters;
pub(crate) mod crash;
pub(crate) mod elf_objects;
pub(crate) mod elf_symbols;
pub(crate) mod energy;
pub(crate) mod file_system;
pub(crate) mod fixed_map;
pub(crate) mod foreign;
pub(crate) mod fork;
pub(crate) mod guard;
pub(crate) mod handlers;
pub(crate) mod itt;
pub(crate) mod kernel_files;
pub(crate) mod later;
pub(crate) mod locks;
pub(crate) mod lookup;
pub(crate) mod maps;
pub(crate) mod memory;
pub(crate) mod network_counters;
pub(crate) mod notice;
pub(crate) mod nvtx;
pub(crate) mod ompt;
pub(crate) mod peek;
pub(crate) mod perf_map;
pub(crate) mod python;
pub(crate) mod resources;
pub(crate) mod ring;
pub(crate) mod sigmask;
pub(crate) mod symbols;
pub(crate) mod threads;
pub(crate) mod tls;
pub(crate) mod topology;
#[cfg(test)]
pub(crate) mod trees;
pub(crate) mod unwind;
pub(crate) mod weak_symbols;
