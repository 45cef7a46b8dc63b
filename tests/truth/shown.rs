//! Is what is shown possible at all, in every format?

use super::{Run, Sight};

/// Seconds and bytes are below this in every simulated run: what is above has wrapped round.
const IMPOSSIBLE: f64 = 1e15;

pub(super) fn impossible_numbers(sight: &mut Sight) -> Vec<String> {
    sight.shown.texts.iter().flat_map(|(name, text)| impossible(name, text)).collect()
}

/// What in a text cannot be.
fn impossible(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let text = if name == "html" { without_markup(text) } else { without_styles(text) };
    for line in text.lines() {
        let mut say = |what: &str| found.push(format!("{name}: {what}: {}", line.trim()));
        let words: Vec<&str> =
            line.split([' ', ',', '(', ')', '|', '"', ':', ';', '[', ']']).collect();
        for (at, word) in words.iter().enumerate() {
            let lower = word.to_ascii_lowercase();
            if ["nan", "inf", "-inf", "infinity"].contains(&lower.as_str()) {
                say("not a number");
            }
            let plain = word.trim_end_matches('%').trim_start_matches(['≥', '≤', '±', '~']);
            let Ok(number) = plain.parse::<f64>() else { continue };
            let next = words.get(at + 1).copied().unwrap_or("");
            let is_share = word.ends_with('%') || next == "%";
            if number.abs() > IMPOSSIBLE {
                say("too large");
            } else if is_share && number > 100.5 {
                say("more than everything");
            } else if number < 0.0 {
                say("negative");
            }
        }
    }
    found
}

/// Without the escape sequences of a terminal.
fn without_styles(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, text)| text))
}

/// The text between the tags of a page, without its styles, scripts and the summary inside it.
fn without_markup(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        text.push_str(&rest[..at]);
        text.push(' ');
        rest = &rest[at..];
        let end = ["script", "style", "svg"].iter().find_map(|tag| {
            let is_it = rest[1..].starts_with(tag);
            is_it.then(|| rest.find(&format!("</{tag}>"))).flatten()
        });
        let end = end.unwrap_or(0);
        rest = &rest[end..];
        rest = rest.find('>').map_or("", |end| &rest[end + 1..]);
    }
    text
}

pub(super) fn counts(sight: &mut Sight) -> Vec<String> {
    let Run { profiles, truth, .. } = sight.run;
    let mut faults = Vec::new();
    for profile in profiles {
        let truth = &truth.ranks[profile.rank as usize];
        for call in &profile.calls {
            let of = truth.functions.get(&*call.name).copied().unwrap_or_default();
            if call.count != of.calls {
                faults.push(format!("{}: {} calls, not {}", call.name, of.calls, call.count));
            }
            if call.bytes.is_some_and(|bytes| bytes != of.bytes) {
                faults.push(format!("{}: {} bytes, not {:?}", call.name, of.bytes, call.bytes));
            }
            let off = (call.time_s.unwrap_or(0.0) - of.seconds).abs();
            if call.timed == call.count && off > 1e-8 * call.count as f64 {
                faults.push(format!("{}: {} s, not {:?}", call.name, of.seconds, call.time_s));
            }
        }
        let messages = profile.peers.iter().flat_map(|peers| &peers.messages);
        let sent =
            messages.fold((0, 0), |(number, bytes), of| (number + of.number, bytes + of.bytes));
        if sent != truth.sent {
            faults.push(format!("rank {}: sent {:?}, not {sent:?}", profile.rank, truth.sent));
        }
        if profile.calls.len() != truth.functions.len() {
            faults.push(format!("rank {}: not all functions", profile.rank));
        }
    }
    faults
}

pub(super) fn parts(sight: &mut Sight) -> Vec<String> {
    let mut faults = Vec::new();
    for profile in &sight.run.profiles {
        let Some(in_mpi) = &profile.in_mpi else { continue };
        let sum: f64 = profile.calls.iter().filter_map(|call| call.time_s).sum();
        if (sum - in_mpi.time_s).abs() > 1e-6 * sum + 1e-8 {
            faults.push(format!("rank {}: {sum} s by function, {}", profile.rank, in_mpi.time_s));
        }
        if !profile.phases.is_empty() {
            let seconds: f64 = profile.phases.iter().map(|phase| phase.time_s).sum();
            if (seconds - profile.job.elapsed_s).abs() > 1e-6 {
                faults.push(format!("rank {}: phases take {seconds} s", profile.rank));
            }
            for call in &profile.calls {
                let of = profile.phases.iter().flat_map(|phase| &phase.calls);
                let of = of.filter(|of| of.name == call.name);
                if of.map(|of| of.count).sum::<u64>() != call.count {
                    faults.push(format!("{}: phases do not add up", call.name));
                }
            }
        }
    }
    faults
}
