//! Which loaded libraries and components move messages, and what does each of them do?

use std::collections::BTreeSet;

use gyan_results::Transport;

use crate::sys::elf_objects;

/// File names without `lib` and `.so`, where `*` is anything, and what they are. The first match counts.
const ROWS: &[(&str, &str)] = &[
    ("mca_pml_ob1", "Open MPI's own matching, over BTLs"),
    ("mca_pml_cm", "matching by the network library, over an MTL"),
    ("mca_pml_ucx", "point-to-point by UCX"),
    ("mca_pml_monitoring", "Open MPI's monitoring"),
    ("mca_pml_v", "message logging"),
    ("mca_mtl_ofi", "libfabric"),
    ("mca_mtl_psm2", "Omni-Path by PSM2"),
    ("mca_mtl_psm", "InfiniBand by PSM"),
    ("mca_mtl_portals4", "Portals 4"),
    ("mca_btl_self", "messages to oneself"),
    ("mca_btl_vader", "shared memory"),
    ("mca_btl_sm", "shared memory"),
    ("mca_btl_smcuda", "shared memory, with CUDA"),
    ("mca_btl_tcp", "TCP"),
    ("mca_btl_openib", "InfiniBand verbs"),
    ("mca_btl_uct", "UCX transports, for one-sided communication"),
    ("mca_btl_ofi", "libfabric, for one-sided communication"),
    ("mca_btl_ugni", "Cray Aries"),
    ("mca_btl_usnic", "Cisco usNIC"),
    ("mca_btl_portals4", "Portals 4"),
    ("mca_osc_ucx", "one-sided communication by UCX"),
    ("mca_osc_rdma", "one-sided communication by RDMA of BTLs"),
    ("mca_osc_sm", "one-sided communication in shared memory"),
    ("mca_osc_pt2pt", "one-sided communication by messages"),
    ("mca_coll_hcoll", "collectives by HCOLL"),
    ("mca_coll_ucc", "collectives by UCC"),
    ("ucp", "UCX"),
    ("uct_ib*", "UCX over InfiniBand and RoCE"),
    ("uct_cma", "UCX: single copy by the kernel (CMA)"),
    ("uct_xpmem", "UCX: single copy by XPMEM"),
    ("uct_knem", "UCX: single copy by KNEM"),
    ("uct_cuda*", "UCX with CUDA"),
    ("uct_rocm*", "UCX with ROCm"),
    ("uct_ugni*", "UCX over Cray Aries"),
    ("uct_rdmacm", "UCX: connections by RDMA CM"),
    ("fabric", "libfabric"),
    ("*-fi", "provider of libfabric"),
    ("psm2", "Omni-Path (PSM2)"),
    ("psm3*", "Ethernet and Omni-Path (PSM3)"),
    ("psm_infinipath", "InfiniBand (PSM)"),
    ("cxi", "Slingshot"),
    ("ugni", "Cray Aries"),
    ("efa", "EFA"),
    ("portals", "Portals 4"),
    ("ibverbs", "InfiniBand verbs"),
    ("mlx5", "verbs of ConnectX-4 and later"),
    ("mlx4", "verbs of ConnectX-3"),
    ("rdmacm", "connections of RDMA"),
    ("xpmem", "single copy by XPMEM"),
    ("knem", "single copy by KNEM"),
    ("hcoll", "collectives by HCOLL"),
    ("ucc", "collectives by UCC"),
    ("sharp_coll", "collectives in InfiniBand switches (SHARP)"),
];

/// Those that are loaded now, sorted.
pub(crate) fn loaded() -> Vec<Transport> {
    let mut found = BTreeSet::new();
    elf_objects::each(&mut |object| {
        found.extend(transport(&object.name.to_string_lossy()));
    });
    found.into_iter().collect()
}

fn transport(file: &str) -> Option<Transport> {
    let name = elf_objects::library(file)?;
    let matches = |pattern: &str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end),
        (_, Some(start)) => name.starts_with(start),
        _ => name == pattern,
    };
    let (_, what) = ROWS.iter().find(|(pattern, _)| matches(pattern))?;
    Some(Transport { name: name.to_owned(), what: (*what).to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_messages_is_known_by_the_name_of_its_file() {
        for (file, name, what) in [
            ("/usr/lib/openmpi/mca_btl_vader.so", "mca_btl_vader", "shared memory"),
            ("/lib/x86_64-linux-gnu/libucp.so.0", "ucp", "UCX"),
            ("/opt/libfabric.so.1.14.0", "fabric", "libfabric"),
            ("/opt/prov/libpsm3-fi.so", "psm3-fi", "provider of libfabric"),
            ("/x/libuct_ib_mlx5.so.0", "uct_ib_mlx5", "UCX over InfiniBand and RoCE"),
            ("libucp-5e6b4b2a.so.0.0.0", "ucp", "UCX"),
        ] {
            let expected = Transport { name: name.into(), what: what.into() };
            assert_eq!(transport(file), Some(expected), "{file}");
        }
        for file in ["", "/bin/app", "/lib/libc.so.6", "/lib/libmpi.so.40", "linux-vdso.so.1"] {
            assert_eq!(transport(file), None, "{file}");
        }
    }

    /// The first match counts, so a row after a more general one would have no effect.
    #[test]
    fn no_row_is_hidden_by_one_before_it() {
        for (at, (pattern, what)) in ROWS.iter().enumerate() {
            let found = transport(&format!("{}.so", pattern.replace('*', "x"))).unwrap();
            assert_eq!(found.what, *what, "{pattern}");
            assert!(ROWS.iter().skip(at + 1).all(|(other, _)| other != pattern), "{pattern}");
        }
    }
}
