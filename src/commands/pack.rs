//! `gyan pack` and `gyan unpack`: the profiles of a run directory in one file, and back.

use std::fs::{self, DirBuilder};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use gyan_results::{Ending, parse_rank, rank_file_name};
use rayon::prelude::*;

use crate::cli::{PackOptions, UnpackOptions};
use crate::error::Error;
use crate::input::directory::{self, Directory, RankFile, check, why};
use crate::input::packed::{self, CompressedProfiles, Packed, SUFFIX, Writer};
use crate::input::source::{PART, Progress};
use crate::output::{may_write, put, temporary_beside};
use crate::{DONE, INCOMPLETE, output, say};

/// What happened to the files of a part.
#[derive(Default)]
struct Lines {
    text: Vec<(u32, Vec<u8>)>,
    /// Files that will not change any more, and are in the pack.
    done: Vec<RankFile>,
    /// Files whose process is running, or may be.
    running: Vec<RankFile>,
    bad: Vec<(RankFile, String)>,
}

pub(crate) fn pack(options: &PackOptions) -> Result<u8, Error> {
    let directory = Directory::open(&options.directory)?;
    if directory.files.is_empty() {
        return Err(Error::new(
            directory.path.display(),
            "holds no rank profiles (rank-NNNNNN.json)",
            "name the run directory of a program that ran under gyan",
        ));
    }
    if directory.reduced_in_mpi.is_some() {
        return Err(Error::new(
            directory.path.display(),
            "the ranks reduced their profiles themselves: there are few files",
            "keep the directory as it is",
        ));
    }
    let file = options.output.clone().map_or_else(|| default_name(&directory.path), Ok)?;
    may_write(&file, options.force)?;
    let failed = |error: io::Error| Error::io(&file, &error, "name another file with -o");
    let mut temporary = temporary_beside(&file).map_err(failed)?;
    let mut writer = Writer::new(BufWriter::new(temporary.as_file_mut())).map_err(failed)?;
    let mut all = Lines::default();
    let progress = Progress::new(directory.files.len());
    let parts: Vec<&[RankFile]> = directory.files.chunks(PART).collect();
    // As many at a time as can be compressed in parallel.
    for parts in parts.chunks(rayon::current_num_threads()) {
        let parts: Vec<(Lines, io::Result<CompressedProfiles>)> =
            parts.par_iter().map(|files| part(&directory, files, &progress)).collect();
        for (lines, part) in parts {
            part.and_then(|part| writer.write(part)).map_err(failed)?;
            all.done.extend(lines.done);
            all.running.extend(lines.running);
            all.bad.extend(lines.bad);
        }
    }
    progress.finish();
    let packed = all.done.len() + all.running.len();
    if let (0, Some((bad, why))) = (packed, all.bad.first()) {
        let path = directory.path.join(directory.name(*bad));
        return Err(Error::new(path.display(), why, "no other profile is here"));
    }
    let bytes = writer.finish().map_err(failed)?;
    temporary.as_file().sync_all().map_err(failed)?;
    put(temporary, &file, options.force).map_err(failed)?;
    warn(&directory, &all, options.remove);
    if options.remove {
        remove(&directory, &all.done)?;
    }
    output::say(format_args!("{packed} profiles packed to {}, {bytes} bytes", file.display()))?;
    Ok(if all.bad.is_empty() { DONE } else { INCOMPLETE })
}

fn part(
    directory: &Directory,
    files: &[RankFile],
    progress: &Progress,
) -> (Lines, io::Result<CompressedProfiles>) {
    let mut found = Lines::default();
    for &file in files {
        match line(directory, file) {
            Ok((line, is_over)) => {
                found.text.push((file.rank, line));
                if is_over { &mut found.done } else { &mut found.running }.push(file);
            }
            Err(why) => found.bad.push((file, why)),
        }
        progress.step();
    }
    let part = CompressedProfiles::new(&found.text);
    found.text = Vec::new();
    (found, part)
}

/// A profile on one line, and whether it is final. Its bytes stay as they are; a live file is turned into a
/// profile of what it knows.
fn line(directory: &Directory, file: RankFile) -> Result<(Vec<u8>, bool), String> {
    let Some(path) = directory.file_of(file) else {
        let profile = directory.read(file)?;
        let line = serde_json::to_vec(&profile).map_err(|error| error.to_string())?;
        return Ok((line, !matches!(profile.end.how, Ending::Running | Ending::Unknown)));
    };
    let mut text = gyan_results::read_regular(&path).map_err(|error| why(error.into()))?;
    check(file.rank, &parse_rank(&text).map_err(why)?)?;
    while text.last().is_some_and(u8::is_ascii_whitespace) {
        text.pop();
    }
    // In JSON, line ends occur only between values.
    text.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    Ok((text, true))
}

fn warn(directory: &Directory, all: &Lines, remove: bool) {
    let place = |file: &RankFile| directory.path.join(directory.name(*file)).display().to_string();
    let bad = all.bad.iter().map(|(file, why)| format!("{}: {why} (not packed)", place(file)));
    say::warn_of(bad, |more| format!("{}: {more} more files not packed", directory.path.display()));
    if let (Some(file), true) = (all.running.first(), remove) {
        let others = match all.running.len() - 1 {
            0 => String::new(),
            others => format!(", like {others} more"),
        };
        let place = place(file);
        say::warn(format!("{place}: its process may be running{others}; packed, but not removed"));
    }
    directory::name_nested(&directory.path);
}

fn remove(directory: &Directory, files: &[RankFile]) -> Result<(), Error> {
    let profiles = files.iter().filter_map(|&file| directory.file_of(file));
    for path in profiles.chain(directory.lives_of(files).map(Path::to_owned)) {
        fs::remove_file(&path)
            .map_err(|error| Error::io(&path, &error, "it is in the pack; remove it yourself"))?;
    }
    Ok(())
}

pub(crate) fn unpack(options: &UnpackOptions) -> Result<u8, Error> {
    let pack = Packed::open(&options.file)?;
    let to = options.directory.clone().unwrap_or_else(|| packed::beside(&options.file, ""));
    if !options.force && directory::has_profiles(&to) {
        return Err(Error::new(
            to.display(),
            "holds profiles",
            "name another directory, or --force to replace those of the same ranks",
        ));
    }
    let failed = |error: io::Error| Error::io(&to, &error, "name another directory");
    DirBuilder::new().recursive(true).mode(0o700).create(&to).map_err(failed)?;
    let (mut written, mut bad): (usize, Vec<String>) = (0, Vec::new());
    bad.extend(pack.lost().map(|(name, why)| format!("{name}: {why}")));
    for frame in 0..pack.frames() {
        let mut result = Ok(());
        pack.each_in(frame, |name, line| {
            let rank = line.rank;
            match line.text {
                Ok(text) if result.is_ok() => {
                    result = write_profile(&to, rank, text, options.force);
                    written += usize::from(result.is_ok());
                }
                Ok(_) => {}
                Err(why) => bad.push(format!("{name}: {why}")),
            }
        });
        result.map_err(failed)?;
    }
    let path = pack.path.display();
    let lines = bad.iter().map(|bad| format!("{path}: {bad}"));
    say::warn_of(lines, |more| format!("{path}: {more} more damaged lines"));
    let is_whole = pack.warn() && bad.is_empty();
    output::say(format_args!("{written} profiles unpacked to {}", to.display()))?;
    Ok(if is_whole { DONE } else { INCOMPLETE })
}

fn write_profile(to: &Path, rank: u32, text: &[u8], force: bool) -> io::Result<()> {
    let path = to.join(rank_file_name(rank));
    let mut file = temporary_beside(&path)?;
    file.write_all(text)?;
    file.write_all(b"\n")?;
    put(file, &path, force)
}

/// The name of a pack: that of its directory, and next to it.
fn default_name(directory: &Path) -> Result<PathBuf, Error> {
    let failed = |error: io::Error| Error::io(directory, &error, "name a file with -o");
    let whole = directory.canonicalize().map_err(failed)?;
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    Ok(match directory.file_name() {
        Some(_) => directory.with_file_name(format!("{name}{SUFFIX}")),
        // `.` and the like: still next to the directory.
        None => whole.with_file_name(format!("{name}{SUFFIX}")),
    })
}
