//! What the hosts counted while the ranks ran: energy, and what their network interfaces had to do.

use gyan_results::{
    EnergyKind, HostCountersSummary, NetworkCount, NetworkCountKind, Number, Summary, Unit,
};

use crate::document::limits::{first_rows, more_rows, some_of};
use crate::document::value::{InUnit, line, row, share};
use crate::document::{Section, Value, numbers, texts};

/// A thousand joules and more are shown in kJ.
const KILO: f64 = 1000.0;

/// `energy: 212 kJ, about 31 % of it while ranks were in MPI`, where each host counts it.
pub(crate) fn energy_line(summary: &Summary) -> Option<Value<'_>> {
    let energy_j = summary.energy_j()?;
    let in_mpi_j = summary.energy_in_mpi_j().filter(|_| energy_j > 0.0);
    let in_mpi = in_mpi_j.map_or("".into(), |in_mpi_j| {
        line![", about ", share(in_mpi_j / energy_j), " of it while ranks were in MPI"]
    });
    Some(line!["energy: ", joules(energy_j), in_mpi, " (--machine)"])
}

fn joules(energy_j: f64) -> Value<'static> {
    if energy_j < KILO {
        line![Unit::Count.double(energy_j), " J"]
    } else {
        line![Unit::Count.double(energy_j / KILO), " kJ"]
    }
}

/// The energy of each host, and the counters of its network.
pub(super) fn sections(summary: &Summary, all: bool) -> impl Iterator<Item = Section<'_>> {
    let hosts = &summary.host_counters;
    energy(hosts, all).into_iter().chain(network(hosts, all))
}

fn energy(hosts: &[HostCountersSummary], all: bool) -> Option<Section<'_>> {
    let parts = hosts.iter().flat_map(|of| of.counters.energy.iter().map(move |part| (of, part)));
    let (shown, cut_off) = first_rows(parts.collect(), all);
    let rows = shown.into_iter().map(|(of, part)| {
        let counted_s = of.counters.counted_s;
        let watts = (counted_s > 0.0).then(|| Unit::Count.double(part.energy_j / counted_s));
        let in_mpi = of.in_mpi_share.map(|share| Unit::Count.double(share * part.energy_j));
        row![&of.host, &part.part, Unit::Count.double(part.energy_j), watts, in_mpi]
    });
    let rows: Vec<_> = rows.collect();
    let is_known = !rows.is_empty();
    let mut notes = more_rows(cut_off);
    notes.extend(is_known.then(|| ABOUT_ENERGY.into()));
    notes.extend(hosts.iter().any(has_platform).then(|| ABOUT_PLATFORM.into()));
    let unknown = hosts.iter().filter_map(|of| Some((of, of.counters.no_energy.as_deref()?)));
    let unknown: Vec<_> = unknown.collect();
    if let Some((_, why)) = unknown.first() {
        let hosts = some_of(unknown.iter().map(|(of, _)| &of.host), all);
        notes.push(line!["not known of ", hosts, ": ", *why]);
    }
    let mut columns = texts(["HOST", "PART"]);
    columns.extend(numbers(["JOULES", "WATTS", "IN MPI"]));
    match (is_known, notes.is_empty()) {
        (true, _) => Some(Section { title: "Energy".into(), columns, rows, notes }),
        (false, false) => Some(Section::of_notes("Energy", notes)),
        (false, true) => None,
    }
}

const ABOUT_ENERGY: &str = "from MPI_Init to the end, of the whole host, so also of other jobs on it; IN MPI is an estimate: \
     the joules times the share of the run that its ranks spent in MPI";
const ABOUT_PLATFORM: &str =
    "psys is the whole platform, so it has the other parts in it; it is not in the sum";

fn has_platform(of: &HostCountersSummary) -> bool {
    of.counters.energy.iter().any(|part| part.kind == EnergyKind::Platform)
}

fn network(hosts: &[HostCountersSummary], all: bool) -> Option<Section<'_>> {
    // Packets say little without the bytes; what went wrong is always shown.
    let is_shown = |of: &NetworkCount| {
        use NetworkCountKind::{ReceivedPackets, SentPackets};
        all || !matches!(of.kind, SentPackets | ReceivedPackets)
    };
    let counts = hosts.iter().flat_map(|of| of.counters.network.iter().map(move |one| (of, one)));
    let mut counts: Vec<_> = counts.filter(|(_, count)| is_shown(count)).collect();
    if counts.is_empty() {
        return None;
    }
    counts.sort_by_key(|(_, count)| !count.kind.is_trouble());
    let (shown, cut_off) = first_rows(counts, all);
    let rows = shown.into_iter().map(|(of, count)| {
        let unit = if count.kind.is_in_bytes() { Unit::Bytes } else { Unit::Count };
        let value = unit.amount(Number::Integer(count.value.into()));
        row![&of.host, &count.interface, count.kind.words(), value, count.counter.as_str()]
    });
    let rows = rows.collect();
    let mut columns = texts(["HOST", "INTERFACE", "WHAT"]);
    columns.extend(numbers(["NUMBER"]));
    columns.extend(texts(["COUNTER"]));
    let mut notes = more_rows(cut_off);
    notes.push(ABOUT_NETWORK.into());
    Some(Section { title: "Network counters".into(), columns, rows, notes })
}

const ABOUT_NETWORK: &str = "from MPI_Init to the end, of the whole host: other jobs and the file system count, too; \
     counters that did not change are left out";
