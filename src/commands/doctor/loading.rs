//! Can the dynamic loader load libgyan.so, and if not, why? It skips a library that it cannot load with a line
//! on stderr, but one that needs a newer C library ends every program.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use gyan_results::Check;
use object::read::elf::{ElfFile64, FileHeader as _};
use rustix::fs::StatVfsMountFlags;

use super::{obstacle, ok};
use crate::error::reason;
use crate::launch::c_library;
use crate::launch::executable::{self, Executable, ProgramKind};

const WHAT: &str = "libgyan.so";
/// What to do when something keeps the loader from the file.
const ELSEWHERE: &str =
    "copy it to a file system that programs can be started from, and set GYAN_LIBRARY to it";
const NEWER: &str = "use a libgyan.so that was built on a system as old as this one, or older";

/// Whether programs of this machine can load the library.
pub(super) fn check(library: &Path) -> Check {
    let own = executable::own().filter(|_| library.is_absolute());
    by_its_file(library)
        .or_else(|| by_its_loader(library, own.as_ref()?))
        .unwrap_or_else(|| ok(WHAT, library.display().to_string()))
}

/// Whether a program with its own loader can load it.
pub(super) fn check_for(library: &Path, program: &Executable) -> Option<Check> {
    if loader_of(program) == executable::own().as_ref().and_then(loader_of) {
        return None;
    }
    by_its_loader(library, program)
}

/// What can be checked without loading it.
fn by_its_file(library: &Path) -> Option<Check> {
    let path = library.display();
    let bytes = match fs::read(library) {
        Ok(bytes) => bytes,
        Err(error) => {
            let finding = format!("{path} cannot be read: {}", reason(&error));
            return Some(obstacle(WHAT, finding, "make it readable for everyone (chmod a+r)"));
        }
    };
    let Some(processor) = executable::processor(&bytes) else {
        let finding = format!("{path} is no library");
        return Some(obstacle(WHAT, finding, "set GYAN_LIBRARY to a libgyan.so"));
    };
    let here = executable::processor_here();
    if here.as_ref() != Some(&processor) {
        let here = here.unwrap_or_default();
        let finding =
            format!("{path} is for {processor}, and this machine's programs are for {here}");
        return Some(obstacle(
            WHAT,
            finding,
            "set GYAN_LIBRARY to the libgyan.so for this machine",
        ));
    }
    let needed = needed_c_library(&bytes);
    let here = c_library::version();
    if needed > version(&here) {
        let needed = text(&needed);
        let finding = format!(
            "{path} needs glibc {needed}, and this system has {here}: no program would start with it"
        );
        return Some(obstacle(WHAT, finding, NEWER));
    }
    let mount = rustix::fs::statvfs(library).ok()?;
    mount.f_flag.contains(StatVfsMountFlags::NOEXEC).then(|| {
        let finding =
            format!("{path} is on a file system that is mounted noexec: no program can load it");
        obstacle(WHAT, finding, ELSEWHERE)
    })
}

/// What a program's loader says of it. The loader can run libgyan.so as a program.
fn by_its_loader(library: &Path, program: &Executable) -> Option<Check> {
    let loader = loader_of(program)?;
    let mut command = Command::new(loader);
    command.arg(library).env_clear().stdin(Stdio::null()).stdout(Stdio::null());
    if let Some(path) = env::var_os("LD_LIBRARY_PATH") {
        command.env("LD_LIBRARY_PATH", path);
    }
    let output = command.output().ok()?;
    if output.status.success() {
        return None;
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let refusal = refusal(&said, library).or_else(|| {
        // "<library>: error while loading shared libraries: <library>: <why>"
        let line = said.lines().next()?;
        Some(line.rsplit(": ").next()?.to_owned())
    })?;
    let (finding, remedy) = meaning(&refusal);
    let finding = format!("{} cannot be loaded by {loader}: {finding}", library.display());
    Some(obstacle(WHAT, finding, remedy))
}

fn loader_of(program: &Executable) -> Option<&str> {
    match &program.kind {
        ProgramKind::Dynamic { loader, .. } => Some(loader),
        _ => None,
    }
}

/// Why a loader did not load the library, found in its own words between the output of programs.
pub(super) fn refusal(said: &str, library: &Path) -> Option<String> {
    let library = library.display();
    let (object, required) =
        (format!("object '{library}' from LD_PRELOAD "), format!("(required by {library})"));
    let preload = said.lines().find_map(|line| {
        let (_, why) = line.split_once(&object)?;
        let why = why.strip_prefix("cannot be preloaded (").unwrap_or(why);
        Some(why.strip_suffix("): ignored.").unwrap_or(why).to_owned())
    });
    let versions = said.lines().filter(|line| line.contains(&required)).filter_map(|line| {
        let (name, _) = line.split_once("version `")?.1.split_once('\'')?;
        Some(name)
    });
    let newest = versions.max_by_key(|name| version(name.trim_start_matches("GLIBC_")));
    newest.map(|name| format!("it needs {name}")).or(preload)
}

/// What the loader's words mean, and what to do.
pub(super) fn meaning(refusal: &str) -> (String, &'static str) {
    if refusal.starts_with("it needs ") {
        return (
            format!("{refusal}, which the C library there lacks, so no program starts"),
            NEWER,
        );
    }
    if refusal.starts_with("failed to map segment") {
        let finding =
            format!("{refusal} (the file system is mounted noexec, or ulimit -v leaves no room)");
        return (finding, ELSEWHERE);
    }
    if refusal.starts_with("wrong ELF class") {
        let finding = format!("{refusal} (the program has another word size)");
        return (finding, "use the libgyan.so that was built for it");
    }
    if refusal.starts_with("cannot open") {
        // The loader says this also of a library for another processor.
        let remedy = "put it at a path that is the same on all nodes and in containers, and readable for everyone";
        return (refusal.to_owned(), remedy);
    }
    (refusal.to_owned(), "reinstall it")
}

fn needed_c_library(bytes: &[u8]) -> Vec<u32> {
    needed_versions(bytes).unwrap_or_default().into_iter().max().unwrap_or_default()
}

fn needed_versions(bytes: &[u8]) -> Option<Vec<Vec<u32>>> {
    let file: ElfFile64 = ElfFile64::parse(bytes).ok()?;
    let endian = file.endian();
    let sections = file.elf_header().sections(endian, bytes).ok()?;
    let (needs, strings) = sections.gnu_verneed(endian, bytes).ok()??;
    let strings = sections.strings(endian, bytes, strings).ok()?;
    let names = needs.flatten().flat_map(|(_, names)| names.flatten());
    let names = names.filter_map(|name| str::from_utf8(name.name(endian, strings).ok()?).ok());
    Some(names.filter_map(|name| name.strip_prefix("GLIBC_")).map(version).collect())
}

/// `2.36` as numbers; parts that are not numbers are left out.
fn version(text: &str) -> Vec<u32> {
    text.split('.').filter_map(|part| part.parse().ok()).collect()
}

fn text(version: &[u32]) -> String {
    version.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_words_are_found_among_others() {
        let library = Path::new("/opt/gyan/libgyan.so");
        let preload = |why: &str| {
            format!(
                "[n1] ERROR: ld.so: object '/opt/gyan/libgyan.so' from LD_PRELOAD cannot be preloaded ({why}): ignored.\n"
            )
        };
        let of = |text: &str| refusal(text, library);
        let why = "failed to map segment from shared object";
        assert_eq!(of(&format!("hello\n{}", preload(why))).as_deref(), Some(why));
        let needs = |version: &str| {
            format!(
                "/bin/true: /lib/libc.so.6: version `{version}' not found (required by /opt/gyan/libgyan.so)\n"
            )
        };
        let text = ["GLIBC_2.34", "GLIBC_2.4", "GLIBC_2.35", "GLIBC_2.33"].map(needs).concat();
        assert_eq!(of(&text).as_deref(), Some("it needs GLIBC_2.35"));
        assert_eq!(of(&preload(why).replace("libgyan", "libother")), None);
        assert_eq!(of(&needs("GLIBC_2.35").replace("libgyan", "libother")), None);
    }

    #[test]
    fn a_program_needs_no_newer_c_library_than_the_one_that_it_runs_on() {
        let own = fs::read(env::current_exe().unwrap()).unwrap();
        let needed = needed_c_library(&own);
        assert!(needed >= vec![2], "{needed:?}");
        assert!(needed <= version(&c_library::version()), "{needed:?}");
        assert!(version("2.9") < version("2.35") && version("2.2.5") < version("2.3"));
    }
}
