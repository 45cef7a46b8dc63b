//! How is output written? A file that the user names is complete or absent; whoever reads standard output may
//! stop early.

use std::env;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::{self, File, Permissions};
use std::io::{self, IsTerminal, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::{NamedTempFile, TempDir};

use crate::cli::PageOptions;
use crate::error::{Error, reason};

/// Writes to standard output.
pub(crate) fn print<T: Default>(
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> Result<T, Error> {
    let mut out = anstream::stdout().lock();
    match write(&mut out).and_then(|done| out.flush().map(|()| done)) {
        // The reader of a pipe may have seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(T::default()),
        Err(error) => Err(Error::new("standard output", reason(&error), "make room")),
        Ok(done) => Ok(done),
    }
}

/// A line on standard output.
pub(crate) fn say(line: impl Display) -> Result<(), Error> {
    print(|out| writeln!(out, "{line}"))
}

/// Lines of text are no longer than this, however wide the terminal is.
const WIDTH: usize = 100;
/// How `less` shows text: not at all where it fits on the screen, with its styles, and left there at the end.
const LESS: &str = "FRX";

/// How many columns there are for text.
pub(crate) fn width() -> usize {
    let terminal = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    terminal.map_or(WIDTH, |(width, _)| usize::from(width.0).min(WIDTH))
}

/// Shows text with styles: on a terminal in `$PAGER`, or in `less`, which takes the place of this process.
pub(crate) fn page(text: &str) -> Result<(), Error> {
    if io::stdout().is_terminal() {
        // Where there is no pager, it is printed.
        drop(in_pager(text));
    }
    print(|out| out.write_all(text.as_bytes()))
}

/// Only comes back when there is no pager.
fn in_pager(text: &str) -> io::Result<()> {
    let chosen = env::var_os("PAGER");
    if chosen.as_ref().is_some_and(|pager| pager.is_empty() || pager == "cat" || !is_program(pager))
    {
        return Ok(());
    }
    let has_styles = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
    let mut file: File = tempfile::tempfile()?;
    if has_styles {
        file.write_all(text.as_bytes())?;
    } else {
        file.write_all(anstream::adapter::strip_str(text).to_string().as_bytes())?;
    }
    file.rewind()?;
    let mut pager = match chosen {
        Some(pager) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(pager);
            shell
        }
        None => Command::new("less"),
    };
    if env::var_os("LESS").is_none() {
        pager.env("LESS", LESS);
    }
    // It gets the keys that are pressed, so nothing waits for it.
    Err(pager.stdin(file).exec())
}

/// Whether the first word of a command is a program: a shell that does not find it would swallow the text.
fn is_program(command: &OsStr) -> bool {
    let words = command.to_string_lossy();
    let Some(program) = words.split_whitespace().next() else { return false };
    let paths = env::var_os("PATH").unwrap_or_default();
    program.contains('/') && Path::new(program).is_file()
        || env::split_paths(&paths).any(|directory| directory.join(program).is_file())
}

/// Refuses what is there, before any work is done.
pub(crate) fn may_write(file: &Path, force: bool) -> Result<(), Error> {
    if !force && file.symlink_metadata().is_ok() {
        let remedy = "name another file, or --force to replace it";
        return Err(Error::new(file.display(), "already exists", remedy));
    }
    Ok(())
}

pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-=+:,@%^".contains(sign);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// As the name of a directory: signs that mean something elsewhere become `_`.
pub(crate) fn directory_name(text: &str) -> String {
    const AT_MOST: usize = 200;
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "._-=+,:".contains(sign);
    text.chars().map(|sign| if is_plain(sign) { sign } else { '_' }).take(AT_MOST).collect()
}

/// A file that only its user may read, for profiles. It is deleted unless [`put`] moves it into place.
pub(crate) fn temporary_beside(file: &Path) -> io::Result<NamedTempFile> {
    NamedTempFile::new_in(directory_of(file))
}

/// The same as a directory; it is deleted with all that is left in it.
pub(crate) fn temporary_directory_beside(file: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new().tempdir_in(directory_of(file))
}

/// The same for a result, which others may read as far as the user's umask lets them.
pub(crate) fn readable_beside(file: &Path) -> io::Result<NamedTempFile> {
    let mode = Permissions::from_mode(0o666);
    tempfile::Builder::new().permissions(mode).tempfile_in(directory_of(file))
}

fn directory_of(file: &Path) -> &Path {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    directory.unwrap_or(Path::new("."))
}

/// Writes a complete file of that name.
pub(crate) fn to_file(
    file: &Path,
    force: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let failed = |error: io::Error| Error::new(file.display(), reason(&error), "name another file");
    if force && is_written_through(file) {
        let mut out = io::BufWriter::new(File::options().write(true).open(file).map_err(failed)?);
        return write(&mut out).and_then(|()| out.flush()).map_err(failed);
    }
    let place = if force { resolved(file) } else { file.to_owned() };
    let mut temporary = readable_beside(&place).map_err(failed)?;
    write(&mut temporary).map_err(failed)?;
    put(temporary, &place, force).map_err(failed)
}

/// Whether a name stands for something that must stay there and gets new content: a device or a pipe.
fn is_written_through(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|about| !about.is_file() && !about.is_dir())
}

/// The file that a name stands for: a link stays, and what it leads to is replaced.
fn resolved(file: &Path) -> PathBuf {
    fs::canonicalize(file).unwrap_or_else(|_| file.to_owned())
}

/// Writes a page to the file that the options name, and prints its name, or else to standard output.
pub(crate) fn write_page(
    options: &PageOptions,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let Some(file) = &options.output else { return print(write) };
    to_file(file, options.force, write)?;
    say(file.display())
}

/// Gives a complete file its name.
pub(crate) fn put(mut file: NamedTempFile, name: &Path, force: bool) -> io::Result<()> {
    if force && is_written_through(name) {
        file.rewind()?;
        let mut out = File::options().write(true).open(name)?;
        return io::copy(&mut file, &mut out).map(drop);
    }
    let put = if force { file.persist(name) } else { file.persist_noclobber(name) };
    put.map(drop).map_err(|error| error.error)
}

/// Refuses an output file for anything but a page, or a file that exists, before any run is read.
pub(crate) fn may_be_page(
    command: &str,
    options: &PageOptions,
    is_page: bool,
) -> Result<(), Error> {
    if options.fragment.is_some() && !is_page {
        return Err(Error::new("--fragment", "is for --format html only", "add --format html"));
    }
    match &options.output {
        Some(file) if !is_page => Err(Error::new(
            format!("-o {}", file.display()),
            "is for --format html only",
            format!("redirect the output instead: {command} ... > FILE"),
        )),
        Some(file) => may_write(file, options.force),
        None => Ok(()),
    }
}
