//! What kind of file is a program? Whatever keeps libgyan.so out of it shows before it runs.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::elf::{self, DT_NEEDED, Machine};
use object::read::elf::{ElfFile64, ProgramHeader as _};

use crate::launch::launcher::{self, Launcher};

/// A program as a file.
#[derive(Debug)]
pub(crate) struct Executable {
    pub(crate) path: PathBuf,
    pub(crate) kind: ProgramKind,
    /// Runs with other rights than its user's, so the dynamic loader ignores `LD_PRELOAD`.
    pub(crate) privileged: bool,
}

#[derive(Debug, Eq, PartialEq)]
pub(crate) enum ProgramKind {
    /// Text for an interpreter.
    Script,
    /// Without a dynamic loader.
    Static,
    /// For another processor or word size than this command's: which.
    Foreign(String),
    /// With a dynamic loader.
    Dynamic {
        /// The dynamic loader.
        loader: String,
        /// The MPI library that it names itself; others are loaded by its libraries, or by dlopen.
        mpi: Option<String>,
    },
    Unknown,
}

/// Whether a file name is that of an MPI library.
pub(crate) fn is_mpi_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["libmpi.so", "libmpich.so", "libmpi_abi.so", "libmpi_", "libmpich-", "libmpich_"]
        .iter()
        .any(|known| name.starts_with(known))
}

/// The program that `words` run, and which word that is: the first one that names an MPI library, or else the
/// first that can be run. Shells, `env` and interpreters may come before it, and values of the launcher's options.
pub(crate) fn target(
    launcher: Option<Launcher>,
    words: &[OsString],
) -> Option<(usize, Executable)> {
    let mut found: Vec<(usize, Executable)> = words
        .iter()
        .enumerate()
        .skip(usize::from(launcher.is_some()))
        .filter(|(_, word)| !word.as_encoded_bytes().starts_with(b"-"))
        .filter_map(|(at, word)| Some((at, inspect(word)?)))
        .collect();
    let uses_mpi = |(_, program): &(usize, Executable)| match &program.kind {
        ProgramKind::Dynamic { mpi, .. } => mpi.is_some(),
        ProgramKind::Static | ProgramKind::Foreign(_) => true,
        ProgramKind::Script | ProgramKind::Unknown => false,
    };
    let at = found.iter().position(uses_mpi).unwrap_or(0);
    if at < found.len() { Some(found.swap_remove(at)) } else { None }
}

/// The file that `word` runs; none when there is none.
fn inspect(word: &OsStr) -> Option<Executable> {
    let path = launcher::find_executable(word)?;
    let file = fs::metadata(&path).ok()?;
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let privileged = (file.mode() & 0o4000 != 0 && file.uid() != user)
        || (file.mode() & 0o2000 != 0 && file.gid() != group)
        || (user != 0 && has_capabilities(&path));
    Some(Executable { kind: kind(&path), path, privileged })
}

/// Whether the file gives its process capabilities, as `setcap` does.
fn has_capabilities(path: &Path) -> bool {
    let mut value = [0; 64];
    rustix::fs::getxattr(path, "security.capability", &mut value[..]).is_ok_and(|size| size > 0)
}

/// This command.
pub(crate) fn own() -> Option<Executable> {
    inspect("/proc/self/exe".as_ref())
}

fn kind(path: &Path) -> ProgramKind {
    let bytes = fs::read(path).unwrap_or_default();
    if bytes.starts_with(b"#!") {
        return ProgramKind::Script;
    }
    match processor(&bytes) {
        Some(processor) if Some(&processor) != processor_here().as_ref() => {
            ProgramKind::Foreign(processor)
        }
        // Refusing a damaged file is up to the system.
        Some(_) => of_elf(&bytes).unwrap_or(ProgramKind::Unknown),
        None => ProgramKind::Unknown,
    }
}

fn of_elf(bytes: &[u8]) -> object::Result<ProgramKind> {
    let file: ElfFile64 = ElfFile64::parse(bytes)?;
    let endian = file.endian();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let mut loader = None;
    for header in file.elf_program_headers() {
        loader = loader.or(header.interpreter(endian, bytes)?.map(text));
    }
    let Some(loader) = loader else { return Ok(ProgramKind::Static) };
    let dynamic = file.elf_dynamic_table()?;
    let needed = dynamic.iter().filter(|entry| entry.tag == DT_NEEDED);
    let mut names = needed.filter_map(|entry| dynamic.string(entry).ok().map(text));
    Ok(ProgramKind::Dynamic { loader, mpi: names.find(|name| is_mpi_library(name)) })
}

/// The processor that this command is for.
pub(crate) fn processor_here() -> Option<String> {
    let mut header = [0; 20];
    File::open("/proc/self/exe").and_then(|mut file| file.read_exact(&mut header)).ok()?;
    processor(&header)
}

/// The processor that a program or library is for; none when it is neither.
pub(crate) fn processor(bytes: &[u8]) -> Option<String> {
    let &[0x7f, b'E', b'L', b'F', class, data, ..] = bytes else { return None };
    let machine = <[u8; 2]>::try_from(bytes.get(18..20)?).ok()?;
    let machine = Machine(if data == elf::ELFDATA2MSB.0 {
        u16::from_be_bytes(machine)
    } else {
        u16::from_le_bytes(machine)
    });
    let name = match machine {
        elf::EM_X86_64 => "x86-64",
        elf::EM_AARCH64 => "aarch64",
        elf::EM_386 => "x86",
        elf::EM_PPC64 => "ppc64",
        elf::EM_RISCV => "riscv",
        elf::EM_ARM => "arm",
        elf::EM_S390 => "s390",
        _ => return Some(format!("another processor (ELF machine {})", machine.0)),
    };
    Some(if class == elf::ELFCLASS32.0 { format!("32-bit {name}") } else { name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_mpi_are_known_by_their_names() {
        for name in
            ["libmpi.so.40", "/usr/lib/libmpich.so.12", "libmpi_abi.so.0", "libmpi_mpifh.so"]
        {
            assert!(is_mpi_library(name), "{name}");
        }
        for name in ["libmpirun.so", "libm.so.6", "/opt/libmpi/libc.so.6"] {
            assert!(!is_mpi_library(name), "{name}");
        }
    }

    #[test]
    fn the_program_is_the_first_word_that_can_be_run() {
        let target = |launcher, line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            target(launcher, &words).map(|(at, program)| (at, program.path))
        };
        let sh = std::path::PathBuf::from("/bin/sh");
        let launched = |line| target(Some(Launcher::OpenMpi), line);
        assert_eq!(launched("/bin/true --not-known 1 -n 2 /bin/sh"), Some((5, sh.clone())));
        assert_eq!(launched("/bin/true -n 2 /bin/sh : -n 1 /bin/true"), Some((3, sh.clone())));
        assert_eq!(launched("/bin/true -n 2 /nonexistent"), None);
        assert_eq!(target(None, "/bin/sh /bin/true"), Some((0, sh)));
    }

    #[test]
    fn this_test_is_a_dynamic_program_without_mpi() {
        let own = std::env::current_exe().unwrap();
        match kind(&own) {
            ProgramKind::Dynamic { loader, mpi } => assert!(loader.contains("ld") && mpi.is_none()),
            other => panic!("{other:?}"),
        }
        assert_eq!(kind(Path::new(file!())), ProgramKind::Unknown);
    }
}
