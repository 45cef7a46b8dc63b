//! Link settings of libgyan.so.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // What `-lgyan` records in a program.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libgyan.so");
    // A preloaded object whose dependency is missing is fatal to every process, so the unwinder
    // comes along: linked before std's own request for libgcc_s.so.1, it leaves that one unneeded.
    match directory_of("libgcc_eh.a") {
        Some(directory) => {
            println!("cargo:rustc-link-search=native={directory}");
            println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
        }
        None => println!("cargo:warning=no libgcc_eh.a: libgyan.so will need libgcc_s.so.1"),
    }
}

/// Where the C compiler keeps one of its own libraries.
fn directory_of(library: &str) -> Option<String> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let output = Command::new(compiler).arg(format!("-print-file-name={library}")).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    // The name alone comes back when the compiler has no such library.
    let directory = Path::new(path.trim()).parent()?.to_str()?;
    (!directory.is_empty()).then(|| directory.to_owned())
}
