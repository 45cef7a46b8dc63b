//! The matrix of wrapped functions tells the truth: about what libgyan.so exports, and about what
//! MPI libraries have.

use std::collections::BTreeSet;
use std::fs;

use wildmatch::WildMatch;

use crate::common::{command, libgyan, root, succeed};

/// The functions in docs/functions.md: wrapped, of those in Fortran, and patterns of the others.
struct Matrix {
    wrapped: BTreeSet<String>,
    in_fortran: BTreeSet<String>,
    others: Vec<WildMatch>,
}

fn matrix() -> Matrix {
    let text = fs::read_to_string(root().join("docs/functions.md")).unwrap();
    let mut matrix =
        Matrix { wrapped: BTreeSet::new(), in_fortran: BTreeSet::new(), others: Vec::new() };
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let name = cells[1].trim_matches('`');
        if cells[2] == "yes" {
            matrix.wrapped.insert(name.into());
            if cells[3] == "yes" {
                matrix.in_fortran.insert(name.into());
            }
        } else {
            matrix.others.push(WildMatch::new(name));
        }
    }
    assert!(matrix.wrapped.len() > 580 && matrix.in_fortran.len() > 400);
    matrix
}

/// The functions that a library defines.
fn symbols(library: &str) -> BTreeSet<String> {
    let outcome = succeed(&mut command(&["nm", "-D", "--defined-only", library]));
    let functions = outcome.stdout.lines().filter_map(|line| {
        let (kind, name) = line.split_once(' ')?.1.split_once(' ')?;
        "TWi".contains(kind).then(|| name.to_owned())
    });
    functions.collect()
}

#[test]
fn what_libgyan_exports_is_what_the_matrix_says() {
    let matrix = matrix();
    let exported = symbols(libgyan().to_str().unwrap());
    let is_c = |name: &&String| name.starts_with("MPI_") && name.to_uppercase() != **name;
    let functions: BTreeSet<String> = exported.iter().filter(is_c).cloned().collect();
    assert_eq!(functions, matrix.wrapped);
    let mut expected = BTreeSet::new();
    for name in &matrix.in_fortran {
        let name = name.to_lowercase();
        expected.insert(format!("{name}_"));
    }
    let is_fortran = |name: &&String| {
        name.starts_with("mpi_") && !name.ends_with("__") && !name.contains("_f08_")
    };
    let fortran: BTreeSet<String> =
        exported.iter().filter(is_fortran).map(|name| name.replace("_cptr_", "_")).collect();
    assert_eq!(fortran, expected);
    for name in &matrix.in_fortran {
        for spelling in [
            name.to_uppercase(),
            format!("{}__", name.to_lowercase()),
            format!("{}_f08_", name.to_lowercase()),
        ] {
            assert!(exported.contains(&spelling), "{spelling}");
        }
    }
    // Nothing else that a program could call by mistake.
    let others: Vec<&String> = exported
        .iter()
        .filter(|name| !name.to_lowercase().trim_start_matches(['p', 'o']).starts_with("mpi_"))
        .collect();
    let own = [
        "InitializeInjectionNvtx2",
        "PetscLogStagePop",
        "PetscLogStagePush",
        "PetscLogStageRegister",
        "_ZN4cali15ScopeAnnotationC1EPKc",
        "_ZN4cali15ScopeAnnotationD1Ev",
        "_ZN4cali8FunctionC1EPKc",
        "_ZN4cali8FunctionD1Ev",
        "__itt_api_init",
        "cali_begin_comm_region",
        "cali_begin_phase",
        "cali_begin_region",
        "cali_end_comm_region",
        "cali_end_phase",
        "cali_end_region",
        "dlclose",
        "dlsym",
        "gyan_keeper",
        "gyan_list",
        "gyan_phase_begin",
        "gyan_phase_end",
        "kokkosp_pop_profile_region",
        "kokkosp_push_profile_region",
        "kokkosp_request_tool_settings",
        "ompt_start_tool",
    ];
    assert_eq!(others, own);
}

#[test]
fn every_function_of_every_library_is_in_the_matrix() {
    let matrix = matrix();
    for (mpi, library) in [
        ("openmpi4", "/usr/lib/x86_64-linux-gnu/libmpi.so.40"),
        ("openmpi5", "lib/libmpi.so.40"),
        ("mpich4", "/usr/lib/x86_64-linux-gnu/libmpich.so.12"),
        ("mpich5", "lib/libmpi.so.12"),
        ("mpich5", "lib/libmpi_abi.so.1"),
        ("intelmpi", "lib/libmpi.so.12"),
        ("intelmpi", "lib/libmpi_abi.so.1"),
    ] {
        let testbed = root().join("scripts/testbed").display().to_string();
        let script = format!(
            "cd \"$(dirname \"$(dirname \"$(command -v mpirun)\")\")\" && realpath {library}"
        );
        let path = succeed(&mut command(&[&testbed, "run", mpi, "--", "sh", "-c", &script]));
        let functions = symbols(path.stdout.trim());
        let functions: Vec<&String> = functions
            .iter()
            .filter(|name| name.starts_with("MPI_") && name.to_uppercase() != **name)
            // The entry points of Open MPI's Fortran, which its own Fortran library calls.
            .filter(|name| !name.ends_with("_f") && !name.ends_with("_f08"))
            .collect();
        assert!(functions.len() > 350, "{mpi} {library}: {}", functions.len());
        for name in functions {
            let known = matrix.wrapped.contains(name)
                || matrix.others.iter().any(|pattern| pattern.matches(name));
            assert!(known, "{name} of {mpi} ({library}) is not in docs/functions.md");
        }
    }
}
