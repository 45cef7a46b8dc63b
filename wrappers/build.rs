//! Link settings of libgyan.so.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The name that `-lgyan` records in a program.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libgyan.so");
    // The loader can run it as a program: the keeper (`delivery::keeper`).
    println!("cargo:rustc-cdylib-link-arg=-Wl,-e,gyan_keeper");
    // The C library calls it at exit, MPI in callbacks, and programs through symbols that are bound to it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // A preloaded object with a missing dependency is fatal to every process, so the unwinder is linked in:
    // placed before std's own request for libgcc_s.so.1, it makes that one unneeded.
    match directory_of("libgcc_eh.a") {
        Some(directory) => {
            println!("cargo:rustc-link-search=native={directory}");
            println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
        }
        None => println!("cargo:warning=no libgcc_eh.a: libgyan.so will need libgcc_s.so.1"),
    }
    #[cfg(feature = "native")]
    native::build();
}

/// The place where the C compiler keeps one of its own libraries.
fn directory_of(library: &str) -> Option<String> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let output = Command::new(compiler).arg(format!("-print-file-name={library}")).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    // The compiler returns just the name if it has no such library.
    let directory = Path::new(path.trim()).parent()?.to_str()?;
    (!directory.is_empty()).then(|| directory.to_owned())
}

/// The parts in C of the features `native` and `static`.
#[cfg(feature = "native")]
mod native {
    use std::collections::BTreeSet;
    use std::path::Path;

    pub(super) fn build() {
        println!("cargo:rerun-if-changed=src/mpi/abi/native.c");
        println!("cargo:rerun-if-env-changed=MPICC");
        // As mpi-sys finds it.
        let mpi = build_probe_mpi::probe().expect("mpi-sys has found an MPI");
        let mut build = cc::Build::new();
        build.file("src/mpi/abi/native.c").includes(mpi.include_paths);
        if let Some(mpicc) = mpi.mpicc {
            build.compiler(mpicc);
        }
        build.compile("gyan_native");
        if cfg!(feature = "static") {
            profiling_names(&String::from_utf8_lossy(&build.expand()));
        }
    }

    /// Writes a table of all the functions with a profiling name that the preprocessed `mpi.h`
    /// declares.
    fn profiling_names(header: &str) {
        let part_of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut names = BTreeSet::new();
        for (at, _) in header.match_indices("PMPI_") {
            let name = &header[at..];
            let end = name.find(|c| !part_of_a_name(c)).unwrap_or(name.len());
            let begins = !header[..at].ends_with(part_of_a_name);
            let declared = begins && name[end..].trim_start().starts_with('(');
            // MPICH has the conversions of mpi_f08 statuses in its Fortran library.
            if declared && !name[..end].contains("f08") {
                names.insert(&name[..end]);
            }
        }
        let mut lines = vec!["unsafe extern \"C\" {".to_owned()];
        lines.extend(names.iter().map(|name| format!("fn {name}();")));
        lines.push("}\nstatic PROFILING_NAMES: &[Defined] = &[".to_owned());
        lines.extend(names.iter().map(|name| format!("Defined(\"{name}\", {name}),")));
        lines.push("];\n".to_owned());
        let directory = std::env::var_os("OUT_DIR").expect("cargo sets it");
        std::fs::write(Path::new(&directory).join("profiling_names.rs"), lines.join("\n"))
            .expect("writable");
    }
}
