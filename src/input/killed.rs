//! Is the process of a live file still running? The file itself does not say.

use std::fs;
use std::time::SystemTime;

use gyan_results::{End, EndedFrom, Ending, LiveRank, RankProfile, Whose, end_of_process};
use rustix::process::Signal;

/// If the clock was set since then, it is off by less.
const TOLERANCE_S: f64 = 2.0;
/// `USER_HZ`, the unit of times in `/proc`: 100 on every processor with MPI on Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// How a rank without a profile ended, and when it was last seen, if that is known. `of`: what the keeper of its host saw.
pub(crate) fn ending(whose: &Whose, of: &LiveRank) -> (End, Option<SystemTime>) {
    let seen = of.seen();
    if whose.end.how != Ending::Running {
        return (whose.end.clone(), None);
    }
    let (how, seen) = if of.gone {
        (Ending::Killed, seen)
    } else if this_host() != whose.host {
        (Ending::Unknown, seen)
    } else if is_there(whose) {
        (Ending::Running, Some(SystemTime::now()))
    } else {
        (Ending::Killed, seen)
    };
    if let Some(crash) = &of.crash {
        return (End { how: Ending::Killed, code: crash.signal }, seen);
    }
    (end_of_process(how, of.status, of.out_of_memory), seen)
}

/// Tells the profile of such a rank, and how long it ran, or runs.
pub(crate) fn tell(profile: &mut RankProfile, of: &LiveRank) {
    let (end, seen) = ending(&Whose::from(&*profile), of);
    profile.end = end;
    let started = humantime::parse_rfc3339(&profile.job.started).ok();
    let lasted = seen.zip(started).and_then(|(seen, started)| seen.duration_since(started).ok());
    let known_s = profile.job.elapsed_s;
    if let Some(lasted) = lasted.filter(|lasted| lasted.as_secs_f64() > known_s) {
        profile.job.elapsed_s = lasted.as_secs_f64();
        profile.job.known_until_s = Some(known_s);
    }
}

pub(crate) fn signal_name(signal: i32) -> String {
    const NAMES: [(Signal, &str); 13] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
    ];
    let name = NAMES.iter().find(|(known, _)| known.as_raw() == signal).map(|(_, name)| *name);
    name.map_or_else(|| format!("signal {signal}"), str::to_owned)
}

/// With what it means, for a user who may not know. `from`: where it came from, if that is known.
pub(crate) fn signal_in_words(name: &str, from: Option<EndedFrom>) -> String {
    let meaning = match name {
        _ if from == Some(EndedFrom::OutOfMemory) => "the system killed it for lack of memory",
        _ if from == Some(EndedFrom::OtherProcess) => "sent by another process",
        "SIGSEGV" => "an address that is not its own",
        "SIGBUS" => "an address behind the end of a file, or a device that failed",
        "SIGFPE" => "a division by zero, or the like",
        "SIGILL" => "an instruction that the processor lacks",
        "SIGABRT" => "abort, as after a failed assertion",
        "SIGKILL" => "killed from outside: by a user, a launcher, or for lack of memory",
        "SIGXCPU" => "the limit of processor time",
        _ => return name.to_owned(),
    };
    format!("{name} ({meaning})")
}

/// Whether a process that ended by this signal made an error, as opposed to one that was ended.
pub(crate) fn is_crash(name: &str) -> bool {
    ["SIGILL", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV"].contains(&name)
}

/// Whether it asks a process to end.
pub(crate) fn is_request(name: &str) -> bool {
    ["SIGHUP", "SIGINT", "SIGTERM", "SIGXCPU"].contains(&name)
}

/// The name of this host, as libgyan.so records it.
pub(crate) fn this_host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Whether the process is running; a later one may have the same id.
fn is_there(whose: &Whose) -> bool {
    let Some(age_s) = age_s(whose.pid) else { return false };
    let Ok(started) = humantime::parse_rfc3339(&whose.job.started) else { return true };
    let since = SystemTime::now().duration_since(started).unwrap_or_default();
    age_s + TOLERANCE_S >= since.as_secs_f64()
}

/// How long a process has been running.
fn age_s(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name, in parentheses, may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    // A zombie has ended.
    if fields.next()? == "Z" {
        return None;
    }
    let started: f64 = fields.nth(18)?.parse().ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    Some(uptime - started / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_there_has_an_age() {
        let age = age_s(std::process::id()).unwrap();
        assert!((0.0..3600.0).contains(&age), "{age}");
        assert_eq!(age_s(u32::MAX), None);
    }
}
