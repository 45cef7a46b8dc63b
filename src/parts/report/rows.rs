//! The numbers of a summary, one row each. Histograms are not included.

use std::io;

use gyan_results::{
    CallSummary, Class, HostStatistic, HostSummary, MessageWaitingSummary, MessagesSummary, Number,
    OpenMpSummary, PhaseSummary, PvarSummary, ResourcesSummary, SamplesSummary, Statistic, Unit,
    WaitingSummary,
};

use crate::document::data::{Row, columns};
use crate::document::data::{element, word};
use crate::document::{Data, TakeRow, Value};
use crate::parts::ReportInput;
use crate::parts::headings::phase_name;
use crate::symbols::stacks::Watched;

/// What a row is about. Fields that do not apply are empty.
#[derive(Clone, Copy, Default)]
pub(super) struct SummaryKey<'a> {
    kind: &'a str,
    name: Option<&'a str>,
    /// The library's class, and the one that it behaves as if that differs.
    class: Option<(Class, Option<Class>)>,
    object: Option<&'a str>,
    element: Option<&'a str>,
    measure: &'a str,
    datatype: Option<&'a str>,
}

impl<'a> SummaryKey<'a> {
    fn of(self, measure: &'a str) -> SummaryKey<'a> {
        SummaryKey { measure, ..self }
    }
}

pub(in crate::parts) fn summary_rows<'r>(of: &'r ReportInput) -> Data<'r> {
    let (summary, (watched, _)) = (of.summary, of.watched());
    Data::from_each(SummaryRow::COLUMNS, move |take| {
        let mut table = SummaryRows { take, phase: None };
        table.hosts(&summary.by_host)?;
        table.pvars(&summary.pvars)?;
        table.samples(&summary.samples)?;
        table.calls(&summary.calls)?;
        table.watched(watched)?;
        table.waiting(&summary.waiting)?;
        table.message_waiting(summary.message_waiting.as_ref())?;
        table.messages(&summary.messages)?;
        for event in &summary.events {
            let (name, object) = (Some(event.name.as_str()), event.object.as_deref());
            let about = SummaryKey { kind: "event", name, object, ..SummaryKey::default() };
            table.statistic(about.of("count"), Some(&event.n))?;
            table.sum(about.of("dropped"), event.dropped)?;
        }
        let run = |measure| SummaryKey { kind: "run", measure, ..SummaryKey::default() };
        table.statistic(run("elapsed_s"), summary.elapsed_s.as_ref())?;
        table.statistic(run("run_s"), summary.run_s.as_ref())?;
        table.statistic(run("useful_s"), summary.useful_s.as_ref())?;
        table.statistic(run("ideal_s"), summary.ideal_s.as_ref())?;
        if let Some(error) = summary.ideal_error_s {
            table.sum(run("ideal_error_s"), error)?;
        }
        if let Some(in_mpi) = &summary.in_mpi {
            table.statistic(run("in_mpi_s"), Some(&in_mpi.time_s))?;
            if let Some(error) = in_mpi.time_error_s {
                table.sum(run("in_mpi_error_s"), error)?;
            }
            table.statistic(run("in_mpi_share"), Some(&in_mpi.share))?;
        }
        let about = |kind| SummaryKey { kind, ..SummaryKey::default() };
        table.measures(about("overhead"), summary.overhead.measures())?;
        let resources = summary.resources.iter().flat_map(ResourcesSummary::measures);
        table.measures(about("resources"), resources)?;
        let openmp = summary.openmp.iter().flat_map(OpenMpSummary::measures);
        table.measures(about("openmp"), openmp)?;
        table.phases(&summary.phases)
    })
}

/// The same rows, only of phases.
pub(in crate::parts) fn phase_rows(phases: Vec<&PhaseSummary>) -> Data<'_> {
    Data::from_each(SummaryRow::COLUMNS, move |take| {
        SummaryRows { take, phase: None }.phases(phases)
    })
}

/// The rows of a summary, of the whole run or of a phase.
struct SummaryRows<'a, 't> {
    take: &'a mut TakeRow<'t>,
    phase: Option<&'a str>,
}

impl<'a> SummaryRows<'a, '_> {
    fn phases(&mut self, phases: impl IntoIterator<Item = &'a PhaseSummary>) -> io::Result<()> {
        for phase in phases {
            self.phase = Some(phase_name(phase));
            let about = SummaryKey { kind: "phase", ..SummaryKey::default() };
            self.measures(about, phase.measures())?;
            self.sum(about.of("stretches"), phase.stretches)?;
            self.sum(about.of("stretches_read"), phase.stretches_read)?;
            self.pvars(&phase.pvars)?;
            self.samples(&phase.samples)?;
            self.calls(&phase.calls)?;
        }
        Ok(())
    }

    fn hosts(&mut self, hosts: &[HostSummary]) -> io::Result<()> {
        for host in hosts {
            let HostSummary { host: name, ranks: _, in_mpi, unexpected_length, posted_length } =
                host;
            for (measure, of) in [
                ("in_mpi", in_mpi),
                ("unexpected_length", unexpected_length),
                ("posted_length", posted_length),
            ] {
                let Some(HostStatistic { ranks, min, avg, max, stddev }) = *of else { continue };
                let about =
                    SummaryKey { kind: "host", name: Some(name), measure, ..SummaryKey::default() };
                let [min, max] = [min, max].map(|of| Some(Number::Double(of)));
                let (ranks, avg, stddev) = (Some(ranks), Some(avg), Some(stddev));
                let numbers =
                    StatisticCells { ranks, min, avg, max, stddev, ..StatisticCells::default() };
                self.row(about, numbers)?;
            }
        }
        Ok(())
    }

    fn pvars(&mut self, pvars: &[PvarSummary]) -> io::Result<()> {
        pvars.iter().try_for_each(|pvar| {
            let PvarSummary {
                name,
                class,
                behaves_as,
                object,
                element: of,
                measure,
                datatype,
                statistic,
                // Sentences belong in reports.
                notes: _,
            } = pvar;
            let about = SummaryKey {
                kind: "pvar",
                name: Some(name),
                class: Some((*class, *behaves_as)),
                object: object.as_deref(),
                element: Some(&element(*of)),
                measure: measure.name(),
                // The datatype's name in the standard is its name in JSON.
                datatype: Some(&word(*datatype)?),
            };
            self.statistic(about, Some(statistic))
        })
    }

    fn samples(&mut self, samples: &[SamplesSummary]) -> io::Result<()> {
        for samples in samples {
            // Histograms have a table of their own; each row says on how many ranks it rests.
            let SamplesSummary {
                name,
                class,
                behaves_as,
                object,
                ranks: _,
                n,
                histogram: _,
                states,
            } = samples;
            let about = SummaryKey {
                kind: "pvar",
                name: Some(name),
                class: Some((*class, *behaves_as)),
                object: object.as_deref(),
                measure: "samples",
                ..SummaryKey::default()
            };
            self.sum(about, *n)?;
            for state in states {
                let about = SummaryKey { element: Some(&state.state), measure: "share", ..about };
                self.statistic(about, Some(&state.share))?;
            }
        }
        Ok(())
    }

    fn calls(&mut self, calls: &[CallSummary]) -> io::Result<()> {
        for call in calls {
            let name = Some(call.name.as_str());
            let about = SummaryKey { kind: "call", name, ..SummaryKey::default() };
            self.measures(about, call.measures())?;
            if let Some(error) = call.time_error_s {
                self.sum(about.of("time_error_s"), error)?;
            }
            if call.time_s.is_some() {
                self.sum(about.of("timed"), call.timed)?;
            }
        }
        Ok(())
    }

    /// Call sites by their place in the program, in the column of objects.
    fn watched(&mut self, watched: &[Watched]) -> io::Result<()> {
        for watched in watched {
            let above = format!(">{}", watched.threshold);
            let (name, element) = (Some(watched.variable), Some(above.as_str()));
            let about = SummaryKey { kind: "watch", name, element, ..SummaryKey::default() };
            self.statistic(about.of("receives"), Some(watched.receives))?;
            self.statistic(about.of("hits"), Some(watched.hits))?;
            self.statistic(about.of("max"), Some(watched.max))?;
            for site in &watched.sites {
                let (name, place) = (Some(site.function), site.caller.place());
                let object = Some(place.as_ref());
                let about = SummaryKey { kind: "call site", name, object, ..about.of("hits") };
                self.statistic(about, Some(site.hits))?;
            }
        }
        Ok(())
    }

    /// Sums over ranks.
    fn waiting(&mut self, functions: &[WaitingSummary]) -> io::Result<()> {
        for of in functions {
            let name = Some(of.function.as_str());
            let about = SummaryKey { kind: "waiting", name, ..SummaryKey::default() };
            self.sum(about.of("calls"), of.calls)?;
            self.sum(about.of("time_s"), of.time_s)?;
            self.sum(about.of("waiting_s"), of.waiting_s)?;
            if let Some(error) = of.waiting_error_s {
                self.sum(about.of("waiting_error_s"), error)?;
            }
        }
        Ok(())
    }

    /// Sums over ranks.
    fn message_waiting(&mut self, waiting: Option<&MessageWaitingSummary>) -> io::Result<()> {
        let Some(of) = waiting else { return Ok(()) };
        let about =
            |measure| SummaryKey { kind: "message_waiting", measure, ..SummaryKey::default() };
        self.sum(about("messages"), of.messages)?;
        self.sum(about("paired"), of.paired)?;
        self.sum(about("compared"), of.compared)?;
        if let Some(epochs) = of.lock_epochs_compared {
            self.sum(about("lock_epochs_compared"), epochs)?;
        }
        for (measure, seconds) in [
            ("late_senders_s", Some(of.late_senders_s)),
            ("late_senders_error_s", of.late_senders_error_s),
            ("late_receivers_s", Some(of.late_receivers_s)),
            ("late_receivers_error_s", of.late_receivers_error_s),
            ("signals_s", of.signals_s),
            ("signals_error_s", of.signals_error_s),
            ("lock_calls_compared_s", of.lock_calls_compared_s),
        ] {
            let Some(seconds) = seconds else { continue };
            self.sum(about(measure), seconds)?;
        }
        Ok(())
    }

    fn messages(&mut self, messages: &[MessagesSummary]) -> io::Result<()> {
        for messages in messages {
            let kind = &word(messages.source)?;
            for metric in &messages.metrics {
                let traffic = word(metric.traffic)?;
                let (name, object) = (Some(metric.metric.name()), Some(traffic.as_str()));
                let about = SummaryKey { kind, name, object, ..SummaryKey::default() };
                self.statistic(about.of("count"), Some(&metric.n))?;
                self.statistic(about.of("total"), Some(&metric.sum))?;
                self.statistic(about.of("largest"), Some(&metric.max))?;
            }
        }
        Ok(())
    }

    /// The numbers over the ranks of a datum, by the names of their fields.
    fn measures<'s>(
        &mut self,
        about: SummaryKey,
        measures: impl Iterator<Item = (&'static str, Unit, &'s Statistic)>,
    ) -> io::Result<()> {
        for (measure, _, of) in measures {
            self.statistic(about.of(measure), Some(of))?;
        }
        Ok(())
    }

    fn statistic(&mut self, about: SummaryKey, statistic: Option<&Statistic>) -> io::Result<()> {
        let Some(statistic) = statistic else { return Ok(()) };
        let &Statistic { ranks, min, min_rank, avg, max, max_rank, sum, stddev, .. } = statistic;
        let numbers = StatisticCells {
            ranks: Some(ranks),
            min: Some(min),
            min_rank: Some(min_rank),
            avg: Some(avg),
            max: Some(max),
            max_rank: Some(max_rank),
            sum: sum.into(),
            stddev: Some(stddev),
        };
        self.row(about, numbers)
    }

    /// A number of all ranks together.
    fn sum(&mut self, about: SummaryKey, sum: impl Into<Value<'static>>) -> io::Result<()> {
        self.row(about, StatisticCells { sum: sum.into(), ..StatisticCells::default() })
    }

    fn row(&mut self, about: SummaryKey, numbers: StatisticCells) -> io::Result<()> {
        (about, numbers, self.phase).write(self.take)
    }
}

/// What a row has of a number over the ranks.
#[derive(Default)]
pub(super) struct StatisticCells {
    ranks: Option<u64>,
    min: Option<Number>,
    min_rank: Option<u32>,
    avg: Option<f64>,
    max: Option<Number>,
    max_rank: Option<u32>,
    sum: Value<'static>,
    stddev: Option<f64>,
}

/// A number over the ranks, of the run or of a phase.
pub(super) type SummaryRow<'a> = (SummaryKey<'a>, StatisticCells, Option<&'a str>);

columns! { (of, number, phase) in SummaryRow<'_>;
    required(kind: Text) => of.kind,
    column(name: Text) => of.name,
    column(class: Text) => of.class.map(|(class, _)| class.name()),
    column(behaves_as: Text) => of.class.map(|(class, real)| real.unwrap_or(class).name()),
    column(object: Text) => of.object,
    column(element: Text) => of.element,
    required(measure: Text) => of.measure,
    column(datatype: Text) => of.datatype,
    column(ranks: Integer) => number.ranks,
    column(min: Number) => number.min,
    column(min_rank: Integer) => number.min_rank.map(Value::Rank),
    column(avg: Double) => number.avg,
    column(max: Number) => number.max,
    column(max_rank: Integer) => number.max_rank.map(Value::Rank),
    column(sum: Number) => number.sum.clone(),
    column(stddev: Double) => number.stddev,
    // Empty for the whole run.
    column(phase: Text) => *phase,
}
