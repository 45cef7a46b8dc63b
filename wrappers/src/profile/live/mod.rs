//! What is known so far, in a file that outlives the process: mapped into its memory, so that a process that
//! is killed leaves what it wrote last. Two records are written in turn; how they are laid out, and how they
//! are read, is `gyan_results`' matter.
//!
//! A record is written without a call of the system but for the guard. The file has all its room from the
//! start: a page that the file system cannot give when it is touched would be a signal (SIGBUS) and no error.
//! When it comes all the same, because somebody cut the file short, the guard makes an error of it.

mod mapping;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gyan_results::{LiveLayout, RankProfile};

use crate::profile::output::{self, Place};
use crate::sys::guard;
use mapping::Mapping;

/// A profile grows while the program runs: the first record takes so many times as much room as it needs.
const TIMES: usize = 2;
/// And so much more.
const MORE: usize = 16 << 10;
/// The room is in whole pages.
const PAGE: usize = 4096;

/// The live file of this process.
pub(crate) struct Live {
    layout: LiveLayout,
    mapping: Mapping,
    path: PathBuf,
    sequence: u64,
}

impl Live {
    /// Makes the file, in `place`, with a first record; `earlier`: the file that it replaces.
    pub(crate) fn begin(
        place: &Place,
        profile: &mut RankProfile,
        earlier: Option<&Live>,
    ) -> io::Result<Live> {
        let earlier = earlier.map(Live::path);
        let (path, (layout, mapping)) =
            output::write_live(place, profile, earlier, |file, profile| {
                let text = serde_json::to_vec(profile)?;
                let room = (text.len() * TIMES + MORE).next_multiple_of(PAGE);
                let layout = LiveLayout::with_room(room);
                let mut mapping = Mapping::of(&file, layout.size())?;
                guard::inside(|| {
                    mapping.write(0, &layout.header())?;
                    write(&mut mapping, layout, 1, &text)
                })?;
                Ok((layout, mapping))
            })?;
        Ok(Live { layout, mapping, path, sequence: 1 })
    }

    /// Writes another record; false when there is no room for it.
    pub(crate) fn write(&mut self, text: &[u8]) -> io::Result<bool> {
        let next = self.sequence + 1;
        let written = guard::inside(|| write(&mut self.mapping, self.layout, next, text))?;
        self.sequence += u64::from(written);
        Ok(written)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The profile is written: nobody needs the file any more.
    pub(crate) fn remove(self) {
        let _ = fs::remove_file(&self.path);
        // With `GYAN_LIVE` it is a directory that nothing else is in.
        if let Some(directory) = self.path.parent() {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// The text first, then what says that it is there.
fn write(
    mapping: &mut Mapping,
    layout: LiveLayout,
    sequence: u64,
    text: &[u8],
) -> io::Result<bool> {
    let Some(record) = layout.record(sequence, text) else { return Ok(false) };
    mapping.write(record.at, text)?;
    mapping.write(record.about_at, &record.about)?;
    Ok(true)
}
