//! Where the profile of this rank goes: a file of its own in the run directory, complete or not
//! there at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use gyan_results::{Overhead, RankProfile, rank_file_name, write_rank};

/// Writes the profile under a temporary name, then gives it its own. `measure` fills in the
/// overhead behind the writing of all else.
pub(crate) fn write(
    directory: &Path,
    profile: &mut RankProfile,
    measure: impl FnOnce(&mut Overhead),
) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let name = rank_file_name(profile.rank);
    // Of this process alone, and new: nobody's file or link is written through.
    let temporary = directory.join(format!(".{name}.{}.{}", profile.host, profile.pid));
    // What an earlier process of the same number may have left when it was killed here.
    let _ = fs::remove_file(&temporary);
    let written = create(&temporary, profile, measure)
        .and_then(|()| fs::rename(&temporary, directory.join(name)));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn create(
    path: &Path,
    profile: &mut RankProfile,
    measure: impl FnOnce(&mut Overhead),
) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file =
        options.write(true).create_new(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    write_rank(&mut file, profile, measure)?;
    file.flush()
}
