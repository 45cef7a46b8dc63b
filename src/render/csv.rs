//! One line for each number, for a spreadsheet or a script: nothing rounded, and nothing left out but
//! histograms, which are no rows.

use std::io::{self, Write};

use csv::Writer;
use gyan_results::{
    CallSummary, CvarSetting, MessageSource, MessagesSummary, PhaseSummary, PvarSummary,
    SamplesSummary, Statistic, Summary, Traffic,
};

use crate::symbols::stacks::Watched;
use crate::view::{Histogram, printable};

const HEADER: [&str; 16] = [
    "kind", "name", "class", "object", "element", "measure", "datatype", "ranks", "min",
    "min_rank", "avg", "max", "max_rank", "sum", "stddev", "phase",
];

pub(crate) fn csv(out: &mut impl Write, summary: &Summary, watched: &[Watched]) -> io::Result<()> {
    let mut table = Table::new(out)?;
    table.pvars(&summary.pvars)?;
    table.samples(&summary.samples)?;
    table.calls(&summary.calls)?;
    table.watched(watched)?;
    table.messages(&summary.messages)?;
    for event in &summary.events {
        let object = event.object.as_deref().unwrap_or_default();
        let about = |measure| ["event", &event.name, "", object, "", measure, ""];
        table.statistic(about("count"), Some(&event.n))?;
        table.sum(about("dropped"), &event.dropped)?;
    }
    table.statistic(["run", "", "", "", "", "elapsed_s", ""], summary.elapsed_s.as_ref())?;
    if let Some(in_mpi) = &summary.in_mpi {
        table.statistic(["run", "", "", "", "", "in_mpi_s", ""], Some(&in_mpi.time_s))?;
        table.sum(["run", "", "", "", "", "in_mpi_error_s", ""], &in_mpi.time_error_s)?;
        table.statistic(["run", "", "", "", "", "in_mpi_share", ""], Some(&in_mpi.share))?;
    }
    let overhead = &summary.overhead;
    for (measure, statistic) in [
        ("mpit_init_s", Some(&overhead.mpit_init_s)),
        ("init_s", Some(&overhead.init_s)),
        ("sampling_s", Some(&overhead.sampling_s)),
        ("wrappers_s", overhead.wrappers_s.as_ref()),
        ("events_s", overhead.events_s.as_ref()),
        ("finalize_s", Some(&overhead.finalize_s)),
        ("share", Some(&overhead.share)),
        ("running_share", overhead.running_share.as_ref()),
    ] {
        table.statistic(["overhead", "", "", "", "", measure, ""], statistic)?;
    }
    table.phases(&summary.phases)?;
    table.writer.flush()
}

/// The same rows of phases alone.
pub(crate) fn phases_csv(out: &mut impl Write, phases: &[PhaseSummary]) -> io::Result<()> {
    let mut table = Table::new(out)?;
    table.phases(phases)?;
    table.writer.flush()
}

/// The control variables of a run.
pub(crate) fn environment_csv(out: &mut impl Write, cvars: &[CvarSetting]) -> io::Result<()> {
    let mut writer = Writer::from_writer(out);
    writer.write_record(["name", "value", "requested", "set_by"]).map_err(io_error)?;
    for cvar in cvars {
        let texts = [&cvar.value, &cvar.requested, &cvar.set_by];
        let texts = texts.map(|text| text.as_deref().unwrap_or_default());
        write(&mut writer, [cvar.name.as_str()].into_iter().chain(texts))?;
    }
    writer.flush()
}

/// One line for each bar.
pub(crate) fn histogram_csv(out: &mut impl Write, histograms: &[Histogram]) -> io::Result<()> {
    let mut writer = Writer::from_writer(out);
    writer.write_record(["kind", "name", "object", "from", "below", "count"]).map_err(io_error)?;
    for histogram in histograms {
        for bar in &histogram.bars {
            let numbers = [bar.from.to_string(), bar.below.to_string(), bar.count.to_string()];
            let object = histogram.object.as_deref().unwrap_or_default();
            let about = [histogram.kind, &histogram.name, object];
            write(&mut writer, about.into_iter().chain(numbers.iter().map(String::as_str)))?;
        }
    }
    writer.flush()
}

/// The rows under [`HEADER`].
struct Table<W: Write> {
    writer: Writer<W>,
    /// The phase that rows are of; empty for the whole run.
    phase: String,
}

impl<W: Write> Table<W> {
    fn new(out: W) -> io::Result<Table<W>> {
        let mut writer = Writer::from_writer(out);
        writer.write_record(HEADER).map_err(io_error)?;
        Ok(Table { writer, phase: String::new() })
    }

    fn phases(&mut self, phases: &[PhaseSummary]) -> io::Result<()> {
        for phase in phases {
            crate::view::phase_name(phase).clone_into(&mut self.phase);
            let about = |measure| ["phase", "", "", "", "", measure, ""];
            self.statistic(about("entries"), Some(&phase.entries))?;
            self.statistic(about("time_s"), Some(&phase.time_s))?;
            self.sum(about("stretches"), &phase.stretches)?;
            self.sum(about("stretches_read"), &phase.stretches_read)?;
            self.pvars(&phase.pvars)?;
            self.samples(&phase.samples)?;
            self.calls(&phase.calls)?;
        }
        Ok(())
    }

    fn pvars(&mut self, pvars: &[PvarSummary]) -> io::Result<()> {
        for pvar in pvars {
            let element = pvar.element.to_string();
            let element = element.trim_matches(['[', ']']);
            // The datatype's name in the standard is its name in JSON.
            let datatype = serde_json::to_value(pvar.datatype)?;
            let about = [
                "pvar",
                &pvar.name,
                pvar.effective_class().name(),
                pvar.object.as_deref().unwrap_or(""),
                element,
                pvar.measure.name(),
                datatype.as_str().unwrap_or_default(),
            ];
            self.statistic(about, Some(&pvar.statistic))?;
        }
        Ok(())
    }

    fn samples(&mut self, samples: &[SamplesSummary]) -> io::Result<()> {
        for samples in samples {
            let class = samples.behaves_as.unwrap_or(samples.class).name();
            let object = samples.object.as_deref().unwrap_or("");
            self.sum(["pvar", &samples.name, class, object, "", "samples", ""], &samples.n)?;
            for state in &samples.states {
                let about = ["pvar", &samples.name, class, object, &state.state, "share", ""];
                self.statistic(about, Some(&state.share))?;
            }
        }
        Ok(())
    }

    fn calls(&mut self, calls: &[CallSummary]) -> io::Result<()> {
        for call in calls {
            let about = |measure| ["call", &call.name, "", "", "", measure, ""];
            self.statistic(about("count"), Some(&call.count))?;
            self.statistic(about("bytes"), call.bytes.as_ref())?;
            self.statistic(about("time_s"), call.time_s.as_ref())?;
            self.statistic(about("time_max_s"), call.time_max_s.as_ref())?;
            if let Some(error) = call.time_error_s {
                self.sum(about("time_error_s"), &error)?;
            }
            if call.time_s.is_some() {
                self.sum(about("timed"), &call.timed)?;
            }
        }
        Ok(())
    }

    /// Call sites by their place in the program, in the column of objects.
    fn watched(&mut self, watched: &[Watched]) -> io::Result<()> {
        for watched in watched {
            let above = format!(">{}", watched.threshold);
            let about = |measure| ["watch", watched.variable, "", "", &above, measure, ""];
            self.statistic(about("receives"), Some(watched.receives))?;
            self.statistic(about("hits"), Some(watched.hits))?;
            self.statistic(about("max"), Some(watched.max))?;
            for site in &watched.sites {
                let place = site.caller.place();
                let about = |measure| ["call site", site.function, "", &place, &above, measure, ""];
                self.statistic(about("hits"), Some(site.hits))?;
            }
        }
        Ok(())
    }

    fn messages(&mut self, messages: &[MessagesSummary]) -> io::Result<()> {
        for messages in messages {
            let source = match messages.source {
                MessageSource::Peruse => "peruse",
                MessageSource::MpiTEvents => "mpi_t_events",
            };
            for metric in &messages.metrics {
                let traffic = match metric.traffic {
                    Traffic::Program => "program",
                    Traffic::Collectives => "collectives",
                };
                let about = |measure| [source, metric.metric.name(), "", traffic, "", measure, ""];
                self.statistic(about("count"), Some(&metric.n))?;
                self.statistic(about("total"), Some(&metric.sum))?;
                self.statistic(about("largest"), Some(&metric.max))?;
            }
        }
        Ok(())
    }

    fn statistic(&mut self, about: [&str; 7], statistic: Option<&Statistic>) -> io::Result<()> {
        let Some(statistic) = statistic else { return Ok(()) };
        let numbers = [
            statistic.ranks.to_string(),
            statistic.min.to_string(),
            statistic.min_rank.to_string(),
            statistic.avg.to_string(),
            statistic.max.to_string(),
            statistic.max_rank.to_string(),
            statistic.sum.to_string(),
            statistic.stddev.to_string(),
        ];
        self.record(about, &numbers)
    }

    /// A number of all ranks together.
    fn sum(&mut self, about: [&str; 7], sum: &dyn ToString) -> io::Result<()> {
        let mut numbers: [String; 8] = Default::default();
        numbers[6] = sum.to_string();
        self.record(about, &numbers)
    }

    fn record(&mut self, about: [&str; 7], numbers: &[String; 8]) -> io::Result<()> {
        let cells = about.into_iter().chain(numbers.iter().map(String::as_str));
        write(&mut self.writer, cells.chain([self.phase.as_str()]))
    }
}

/// A line, whatever the names in it hold: CSV has no escapes for control characters.
fn write<'a>(
    writer: &mut Writer<impl Write>,
    cells: impl IntoIterator<Item = &'a str>,
) -> io::Result<()> {
    let cells = cells.into_iter().map(printable);
    writer.write_record(cells.map(|cell| cell.into_owned().into_bytes())).map_err(io_error)
}

/// What went wrong below: that a pipe is closed has to be told from a disk that is full.
pub(super) fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
