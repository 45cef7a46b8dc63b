//! `gyan now`: what every rank of a running job is doing, who waits for whom, and why it does not go on.

use crate::cli::NowOptions;
use crate::error::Error;
use crate::input::directory::{Directory, newest_running};
use crate::launch::keepers;
use crate::stacks::WhichThreads;
use crate::{DONE, INCOMPLETE, answers, hang, print, stacks};

pub(crate) fn now(options: &NowOptions) -> Result<u8, Error> {
    let format = options.format.clone()?;
    let path = match &options.directory {
        Some(path) => path.clone(),
        None => newest_running("gyan now")?,
    };
    keepers::write_now(&path);
    let directory = Directory::open(&path)?;
    directory.warn_of_silence();
    let Some(mut now) = hang::of_directory(&directory) else {
        let remedy = "see what is known: gyan report DIR";
        return Err(Error::new(
            path.display().to_string(),
            "no rank is seen: they have ended, are still in MPI_Init, or run with GYAN_KEEPER=off",
            remedy,
        ));
    };
    if options.stacks || options.threads {
        let which = if options.threads { WhichThreads::All } else { WhichThreads::Main };
        (now.stacks, now.without_stack) = stacks::taken(&directory, &now.ranks, which);
    }
    print::listing(format, &answers::now(&now, &path), &now)?;
    Ok(if now.ranks.len() as u64 == u64::from(now.size) { DONE } else { INCOMPLETE })
}
