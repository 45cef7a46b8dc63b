//! Numbers of a run that stand for it when runs are compared: what a setting is to make better, and what has to move when
//! it does anything at all.

use crate::data::{Data, Serialize, derive};
use crate::{CallSummary, Measure, Quantity, Summary};

/// Which number of a run.
#[derive(Data!, Serialize, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Seconds from the start of `MPI_Init` to the end, of the rank that takes longest, without what gyan added to `MPI_Init`:
    /// that is more where gyan sets a control variable.
    RunTime,
    /// Seconds in these functions, of all ranks together; large-count forms (`_c`) count as theirs.
    TimeIn(Vec<String>),
    /// Seconds in MPI, of all ranks together.
    TimeInMpi,
    /// How often the kernel took its processor from a thread, or a thread gave it up without sleeping, on all ranks.
    ProcessorLost,
    /// Seconds for which ranks were ready to run and had no processor, of all ranks together.
    ProcessorWait,
    /// The most messages that waited for a receive on any rank.
    LongestUnexpectedQueue,
    /// A performance variable: what it grew by on all ranks, or the most that it was on any.
    Variable(String),
}

impl Figure {
    /// As `gyan tune --metric` has it: `time`, `time:MPI_Waitall`, `pvar:NAME`. None for what is none of them.
    pub fn named(text: &str) -> Option<Figure> {
        let (kind, name) = text.split_once(':').unwrap_or((text, ""));
        match (kind, name) {
            ("time", "") => Some(Figure::RunTime),
            ("time", "MPI") => Some(Figure::TimeInMpi),
            ("time", name) => Some(Figure::TimeIn(vec![name.to_owned()])),
            ("pvar", name) if !name.is_empty() => Some(Figure::Variable(name.to_owned())),
            _ => None,
        }
    }

    /// In a few words.
    pub fn name(&self) -> String {
        match self {
            Figure::RunTime => "run time".into(),
            Figure::TimeIn(functions) => match &functions[..] {
                [] => "time in no function".into(),
                [one] => format!("time in {one}"),
                [first, ..] => format!("time in {first} and the like"),
            },
            Figure::TimeInMpi => "time in MPI".into(),
            Figure::ProcessorLost => "times a rank lost or yielded its processor".into(),
            Figure::ProcessorWait => "wait for a processor".into(),
            Figure::LongestUnexpectedQueue => "longest queue of unexpected messages".into(),
            Figure::Variable(name) => name.clone(),
        }
    }

    /// What it is in: `s`, or empty for a number.
    pub fn unit(&self) -> &'static str {
        match self {
            Figure::RunTime | Figure::TimeIn(_) | Figure::TimeInMpi | Figure::ProcessorWait => "s",
            Figure::ProcessorLost | Figure::LongestUnexpectedQueue | Figure::Variable(_) => "",
        }
    }

    /// Its value in a run; none where the run does not tell it, or only a lower bound of it.
    pub fn of(&self, summary: &Summary) -> Option<f64> {
        let resources = summary.resources.as_ref();
        match self {
            Figure::RunTime => {
                let elapsed_s = summary.elapsed_s.as_ref()?.max.as_f64();
                Some((elapsed_s - summary.overhead.init_s.avg).max(0.0))
            }
            Figure::TimeIn(functions) => time_in(summary, functions),
            Figure::TimeInMpi => {
                let in_mpi = summary.in_mpi.as_ref()?;
                in_mpi.time_error_s.map(|_| in_mpi.time_s.sum.as_f64())
            }
            Figure::ProcessorLost => Some(resources?.involuntary_switches.sum.as_f64()),
            Figure::ProcessorWait => Some(resources?.processor_wait_s.as_ref()?.sum.as_f64()),
            Figure::LongestUnexpectedQueue => {
                let rows = summary.queues();
                let lengths = rows.iter().filter(|row| row.quantity == Quantity::UnexpectedLength);
                lengths.filter_map(|row| row.max).map(|most| most.value).reduce(f64::max)
            }
            Figure::Variable(name) => variable(summary, name),
        }
    }
}

fn time_in(summary: &Summary, functions: &[String]) -> Option<f64> {
    let is_one = |call: &&CallSummary| {
        let name = call.name.strip_suffix("_c").unwrap_or(&call.name);
        functions.iter().any(|function| function == name)
    };
    let mut calls = summary.calls.iter().filter(is_one).filter(|call| call.time_s.is_some());
    calls.clone().next()?;
    calls.try_fold(0.0, |all, call| {
        call.time_error_s?;
        Some(all + call.time_s.as_ref()?.sum.as_f64())
    })
}

fn variable(summary: &Summary, name: &str) -> Option<f64> {
    let rows = |measure| {
        summary.pvars.iter().filter(move |row| row.name == name && row.measure == measure)
    };
    let grew = rows(Measure::Delta).map(|row| row.statistic.sum.as_f64()).reduce(|a, b| a + b);
    let most = |measure| rows(measure).map(|row| row.statistic.max.as_f64()).reduce(f64::max);
    grew.or_else(|| most(Measure::SampledMax)).or_else(|| most(Measure::End))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        serde_json::from_str(include_str!("../examples/summary.json")).unwrap()
    }

    #[test]
    fn a_figure_is_known_by_its_name() {
        assert_eq!(Figure::named("time"), Some(Figure::RunTime));
        assert_eq!(Figure::named("time:MPI"), Some(Figure::TimeInMpi));
        let recv = Figure::named("time:MPI_Recv").unwrap();
        assert_eq!(recv, Figure::TimeIn(vec!["MPI_Recv".into()]));
        assert_eq!(Figure::named("pvar:x"), Some(Figure::Variable("x".into())));
        for bad in ["Loop time of ([0-9.]+)", "pvar:", "size:MPI_Recv"] {
            assert_eq!(Figure::named(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_figure_is_the_number_that_the_summary_has() {
        let summary = summary();
        let elapsed = summary.elapsed_s.as_ref().unwrap().max.as_f64();
        let added = summary.overhead.init_s.avg;
        assert!(added > 0.0);
        assert_eq!(Figure::RunTime.of(&summary), Some(elapsed - added));
        let call = summary.calls.iter().find(|call| call.time_s.is_some()).unwrap();
        let time = call.time_s.as_ref().unwrap().sum.as_f64();
        assert_eq!(Figure::TimeIn(vec![call.name.clone()]).of(&summary), Some(time));
        assert_eq!(Figure::TimeIn(vec!["MPI_None".into()]).of(&summary), None);
        // A lower bound is no number to compare.
        let mut few_timed = summary.clone();
        let name = call.name.clone();
        let bound = few_timed.calls.iter_mut().find(|call| call.name == name).unwrap();
        bound.time_error_s = None;
        assert_eq!(Figure::TimeIn(vec![name]).of(&few_timed), None);
        assert_eq!(Figure::Variable("no_such_variable".into()).of(&summary), None);
    }
}
