//! What does an mpiP report say? Reads the section on the time of each call site; mpiP's user guide describes
//! it.

use std::fs;
use std::path::Path;

use super::accuracy::Functions;

/// The title of the section.
const SECTION: &str = "@--- Callsite Time statistics";

/// The numbers for each function in the report in `directory`, or why there are none.
pub(super) fn functions(directory: &Path) -> Result<Functions, String> {
    let files = fs::read_dir(directory).map_err(|error| error.to_string())?;
    let report = files
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|file| file.extension().is_some_and(|extension| extension == "mpiP"))
        .ok_or("it left no *.mpiP in its directory")?;
    let text = fs::read_to_string(&report).map_err(|error| error.to_string())?;
    let functions = parsed(&text);
    if functions.is_empty() { Err("its report has no call sites".into()) } else { Ok(functions) }
}

/// The sums over call sites: a line for all ranks (`*`) has the number of calls and their mean in
/// milliseconds, with three digits.
pub(super) fn parsed(report: &str) -> Functions {
    let mut functions = Functions::new();
    let from_title = report.lines().skip_while(|line| !line.starts_with(SECTION)).skip(1);
    for line in from_title.take_while(|line| !line.starts_with('@')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, _site, "*", count, _max, mean_ms, ..] = words[..] else { continue };
        if let (Ok(count), Ok(mean_ms)) = (count.parse::<u64>(), mean_ms.parse::<f64>()) {
            let told = functions.entry(format!("MPI_{name}")).or_default();
            told.count += count;
            told.timed += count;
            told.time_s += count as f64 * mean_ms / 1e3;
        }
    }
    functions
}
