//! What does the command line ask for?

use std::fs;
use std::path::Path;
use std::time::Duration;

use gyan_results::{Figure, TuneMetric};
use regex::Regex;

use super::state::TuneRequest;
use crate::cli::TuneOptions;
use crate::error::Error;

/// What is to get better.
pub(super) enum Metric {
    Figure(Figure),
    /// The first group of the last match in the output.
    Output(Regex),
}

impl Metric {
    pub(super) fn told(&self, asked: &TuneRequest) -> TuneMetric {
        let (name, unit, figure) = match self {
            Metric::Figure(figure) => {
                (figure.name(), figure.unit().to_owned(), Some(figure.clone()))
            }
            Metric::Output(pattern) => (pattern.to_string(), String::new(), None),
        };
        TuneMetric { name, unit, higher_is_better: asked.higher, figure }
    }
}

pub(super) fn asked(options: &TuneOptions) -> Result<(TuneRequest, Metric), Error> {
    let text = options.metric.clone().unwrap_or_else(|| "time".into());
    let metric = match Figure::named(&text) {
        Some(figure) => Metric::Figure(figure),
        None => Metric::Output(pattern(&text)?),
    };
    let mut set = options.set.clone();
    let knobs = options.knobs.as_deref();
    if let Some(file) = knobs.filter(|knobs| *knobs != "auto") {
        set.extend(lines(Path::new(file))?);
    }
    let names_none = set.is_empty() && options.env.is_empty();
    let asked = TuneRequest {
        command: options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        auto: knobs == Some("auto") || knobs.is_none() && names_none,
        set,
        env: options.env.clone(),
        together: options.together,
        metric: text,
        higher: options.higher,
        same_output: options.same_output,
        check: options.check.clone(),
    };
    for text in asked.set.iter().chain(&asked.env) {
        // Names of values are known later.
        let any = |_: &str| Some(Vec::new());
        if let Err(why) = crate::tuning::sweep(text, any) {
            let remedy = "write NAME=VALUE,VALUE or NAME=FROM..TO*2";
            return Err(Error::new(format!("--set {text}"), why, remedy));
        }
    }
    Ok((asked, metric))
}

fn pattern(text: &str) -> Result<Regex, Error> {
    let remedy = "write a pattern with the number in parentheses, time, time:MPI_Wait or pvar:NAME";
    let what = format!("--metric {text}");
    let pattern = Regex::new(text).map_err(|error| {
        let error = error.to_string();
        let last =
            error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Error::new(&what, last, remedy)
    })?;
    if pattern.captures_len() < 2 {
        return Err(Error::new(&what, "nothing is in parentheses", remedy));
    }
    Ok(pattern)
}

/// Settings, a line each; `#` begins a remark.
fn lines(file: &Path) -> Result<Vec<String>, Error> {
    let remedy = "name a file with NAME=VALUE,VALUE in each line, or auto";
    let text = fs::read_to_string(file).map_err(|error| Error::io(file, &error, remedy))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if lines.is_empty() {
        return Err(Error::new(file.display(), "names no setting", remedy));
    }
    Ok(lines)
}

pub(super) fn budget(text: Option<&str>) -> Result<Option<Duration>, Error> {
    let Some(text) = text.filter(|text| *text != "none") else { return Ok(None) };
    let time = humantime::parse_duration(text).map_err(|error| {
        Error::new(format!("--budget {text}"), error, "write a time such as 20m or 2h, or none")
    })?;
    Ok(Some(time))
}

/// The number that the last match of a pattern has in its first group.
pub(super) fn last_number(pattern: &Regex, output: &str) -> Result<f64, String> {
    let Some(last) = pattern.captures_iter(output).last() else {
        return Err(format!("no line of its output matches {pattern}"));
    };
    let text = last.get(1).map_or("", |group| group.as_str());
    let number: Option<f64> = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("{text:?}, which {pattern} finds in its output, is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_of_the_output_counts() {
        let pattern = pattern("Loop time of ([0-9.]+)").unwrap();
        let output = "Loop time of 9.5 on 4\nx\nLoop time of 1.25 on 4\n";
        assert_eq!(last_number(&pattern, output), Ok(1.25));
        assert!(last_number(&pattern, "none").unwrap_err().contains("no line"));
        assert!(last_number(&pattern, "Loop time of 1.2.3").unwrap_err().contains("no number"));
    }

    #[test]
    fn a_pattern_without_a_group_says_what_to_write() {
        assert!(pattern("Loop time").unwrap_err().to_string().contains("in parentheses"));
        assert!(pattern("(Loop").unwrap_err().to_string().contains("unclosed group"));
    }
}
