//! Does what a site has set up for all jobs work on this node: its settings, its spool, the library, a run's record,
//! and everything that is no MPI program?

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gyan_results::{Check, RECORD_BYTES, RECORD_SUFFIX, SiteError, SiteSettings, Verdict};

use super::{check, obstacle, ok, ordinary, record};
use crate::error::reason;
use crate::words::{bytes, integer};

/// Permissions of a spool, as octal digits: users may write files there, neither list them nor remove those of
/// others, and the files belong to its group.
const SPOOL_MODE: u32 = 0o3733;
/// Room for fewer records is worth knowing.
const FEW_RECORDS: u64 = 100_000;

/// The checks of a site. `words`: an MPI program with its launcher; where there is none, one is compiled.
pub(super) fn checks(file: &Path, library: Option<&Path>, words: &[OsString]) -> Vec<Check> {
    let file = &std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let (mut checks, settings) = settings(file);
    if let Some(settings) = &settings {
        checks.extend(spool(&settings.spool));
    }
    let Some(library) = library else { return checks };
    checks.push(for_everybody(library));
    if let Some(settings) = &settings {
        checks.push(record::check(settings, library, words));
    }
    checks.push(ordinary::check(library, file));
    checks
}

fn settings(file: &Path) -> (Vec<Check>, Option<SiteSettings>) {
    const WHAT: &str = "site file";
    let path = file.display();
    match SiteSettings::read(file) {
        Ok(settings) => {
            let finding = format!(
                "{path}: records go to {}, one job in {}",
                settings.spool.display(),
                settings.one_in
            );
            let mut checks = vec![ok(WHAT, finding)];
            checks.extend(changeable(WHAT, file));
            (checks, Some(settings))
        }
        Err(SiteError::Unreadable(error)) => {
            let finding = format!("{path} cannot be read: {}", reason(&error));
            let remedy = "make the file, readable for everyone; gyan records no job until then";
            (vec![obstacle(WHAT, finding, remedy)], None)
        }
        Err(_) => {
            let text = fs::read_to_string(file).unwrap_or_default();
            let wrong = |mistake: String| {
                let remedy = "put it right; gyan records no job until then";
                obstacle(WHAT, format!("{path}: {mistake}"), remedy)
            };
            (SiteSettings::mistakes(&text).into_iter().map(wrong).collect(), None)
        }
    }
}

/// What lets anybody change a file: its own permissions, or those of a directory above it.
fn changeable(what: &str, file: &Path) -> Option<Check> {
    let file = fs::canonicalize(file).ok()?;
    let anybody_writes = |path: &&Path| {
        let is_open = |of: Metadata| of.mode() & 0o002 != 0 && of.mode() & 0o1000 == 0;
        fs::metadata(path).is_ok_and(is_open)
    };
    let open = file.ancestors().find(anybody_writes)?;
    let finding =
        format!("every user may write to {}, and so change what others load", open.display());
    Some(obstacle(what, finding, &format!("chmod o-w {}", open.display())))
}

/// Whether every user can load the library, and nobody but its owner change it.
fn for_everybody(library: &Path) -> Check {
    const WHAT: &str = "for all users";
    let closed = |path: &&Path| {
        let needed = if path.is_dir() { 0o001 } else { 0o004 };
        fs::metadata(path).is_ok_and(|of| of.mode() & needed == 0)
    };
    if let Some(closed) = library.ancestors().find(closed) {
        let finding = format!("other users cannot get at {}", closed.display());
        let remedy = "install gyan where every user can read it; until then the loader complains at each of their commands";
        return obstacle(WHAT, finding, remedy);
    }
    changeable(WHAT, library)
        .unwrap_or_else(|| ok(WHAT, format!("{} can be read, and not changed", library.display())))
}

fn spool(spool: &Path) -> Vec<Check> {
    const WHAT: &str = "spool";
    let path = spool.display();
    let command = format!("install -d -o gyan -g gyan -m {SPOOL_MODE:o} {path}");
    let of = match fs::symlink_metadata(spool) {
        Ok(of) if of.is_dir() => of,
        Ok(_) => return vec![obstacle(WHAT, format!("{path} is no directory"), &command)],
        Err(error) => {
            return vec![obstacle(WHAT, format!("{path}: {}", reason(&error)), &command)];
        }
    };
    let mode = of.mode() & 0o7777;
    let wrong = wrong_with(mode);
    let mut checks = Vec::new();
    if wrong.is_empty() {
        let finding = format!("{path} has owner {}, group {}, mode {mode:o}", of.uid(), of.gid());
        checks.push(ok(WHAT, finding));
    } else {
        let finding = format!("{path} has mode {mode:o}: {}", wrong.join("; "));
        checks.push(obstacle(WHAT, finding, &format!("chmod {SPOOL_MODE:o} {path}")));
    }
    checks.push(written(spool));
    checks.extend(room(spool));
    checks
}

/// What the permissions of a spool lack, or have too many.
fn wrong_with(mode: u32) -> Vec<&'static str> {
    let bits = [
        (0o003, true, "users cannot write there"),
        (0o004, false, "users can list the jobs of others"),
        (0o1000, true, "users can remove records of others"),
        (0o2000, true, "the group of the spool cannot read the records"),
    ];
    let wrong = bits.into_iter().filter(|(bits, set, _)| (mode & bits == *bits) != *set);
    wrong.map(|(_, _, what)| what).collect()
}

/// Whether this user can leave a file there.
fn written(spool: &Path) -> Check {
    const WHAT: &str = "written to";
    match tempfile::Builder::new().prefix(".gyan-doctor-").tempfile_in(spool) {
        Ok(_) => ok(WHAT, format!("this user can write to {}", spool.display())),
        Err(error) => obstacle(
            WHAT,
            format!("this user cannot write to {}: {}", spool.display(), reason(&error)),
            "see that it is mounted here, for writing, and that each directory above can be entered",
        ),
    }
}

fn room(spool: &Path) -> Option<Check> {
    const WHAT: &str = "room";
    let system = rustix::fs::statvfs(spool).ok()?;
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    // Some file systems count no files.
    let files = if system.f_files == 0 { u64::MAX } else { system.f_favail };
    let records = files.min(free / RECORD_BYTES as u64);
    #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
    let finding = format!(
        "{} are free at {}, for {} records",
        bytes(free as f64),
        spool.display(),
        integer(records.into())
    );
    let few = (records < FEW_RECORDS)
        .then_some("take records out of it more often, or give it more room");
    let verdict = if few.is_some() { Verdict::Note } else { Verdict::Ok };
    Some(check(WHAT, verdict, finding, few))
}

/// Settings under which each run leaves a record, in a spool of its own.
pub(super) fn for_a_try(settings: &SiteSettings, spool: &Path) -> String {
    format!(
        "spool = {:?}\ncluster = {:?}\nat_least = \"0s\"\nfunctions_of_sites = {}\nrecord_command = {}\n",
        spool.to_string_lossy(),
        settings.cluster,
        settings.functions_of_sites,
        settings.record_command
    )
}

pub(super) fn records(spool: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(spool).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|kind| kind == RECORD_SUFFIX)).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_wrong_with_the_permissions_of_a_spool_is_named() {
        assert_eq!(wrong_with(SPOOL_MODE), Vec::<&str>::new());
        assert_eq!(wrong_with(0o0755).len(), 4);
        assert_eq!(wrong_with(0o1777).len(), 2);
        assert_eq!(wrong_with(0o3732), ["users cannot write there"]);
    }

    #[test]
    fn a_file_is_changeable_where_it_or_a_directory_above_it_is_open_to_all() {
        let here = tempfile::tempdir().unwrap();
        let (directory, file) = (here.path().join("lib"), here.path().join("lib/file"));
        fs::create_dir(&directory).unwrap();
        fs::write(&file, "").unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&directory, 0o755);
        set(&file, 0o644);
        assert!(changeable("file", &file).is_none());
        set(&file, 0o666);
        assert!(changeable("file", &file).is_some());
        set(&file, 0o644);
        set(&directory, 0o777);
        assert!(changeable("file", &file).unwrap().finding.contains("lib"));
        // Like /tmp.
        set(&directory, 0o1777);
        assert!(changeable("file", &file).is_none());
    }

    #[test]
    fn the_settings_of_a_try_are_understood() {
        let text = "spool = '/s'\ncluster = 'a \"b\"'\none_in = 1000\nrecord_command = true\n";
        let settings = SiteSettings::parse(text).unwrap();
        let tried = SiteSettings::parse(&for_a_try(&settings, Path::new("/t/a b"))).unwrap();
        assert_eq!((&*tried.cluster, tried.one_in.get()), ("a \"b\"", 1));
        assert!(tried.at_least.is_zero() && tried.record_command);
    }
}
