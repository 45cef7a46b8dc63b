//! Monitoring that MPI libraries have but leave off: one row each, with what turns it on, what it provides and
//! what it costs. `GYAN_ENABLE` names rows.

use gyan_results::{Cvar, Number, Pvar, PvarInfo, Switch, Values};

use crate::mpi::abi::{self, Implementation, Library, Version};
use crate::mpi::tool::{Mpit, Unread, Why};

pub(crate) struct MonitoringRow {
    /// Its name in `GYAN_ENABLE`.
    pub(crate) name: &'static str,
    implementation: Implementation,
    /// The first version that the row is for.
    since: Version,
    /// The first version that it is not for; none for all so far.
    until: Option<Version>,
    /// The control variable that turns it on.
    pub(crate) cvar: &'static str,
    /// The value that turns it on.
    pub(crate) on: &'static str,
    /// Its value by default.
    off: &'static str,
    /// The prefix of the names of its performance variables.
    pvars: &'static str,
    when_off: WhenOff,
    gives: &'static str,
    /// As measured; docs/mpi-libraries.md has the figures and the machine.
    costs: &'static str,
    /// What a library without it lacks.
    needs: &'static str,
}

/// The state of the performance variables while the monitoring is off.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum WhenOff {
    /// Gone after `MPI_Init`, with their component.
    Gone,
    /// There, and 0.
    Zero,
}

/// The state of a row in a run or a listing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MonitoringState {
    On,
    Off,
    /// The library was built without it.
    Missing,
    /// Names of variables are missing, so the state is not known.
    Unknown,
}

const MONITORING: MonitoringRow = MonitoringRow {
    name: "monitoring",
    implementation: Implementation::OpenMpi,
    since: (5, 0, 0),
    until: None,
    cvar: "pml_monitoring_enable",
    // With 1 the messages of collectives count as point-to-point ones too.
    on: "2",
    off: "0",
    pvars: "coll_monitoring_",
    when_off: WhenOff::Gone,
    gives: "messages and bytes to each peer: point-to-point, collective, one-sided",
    costs: "about 40 ns a message, up to 0.1 s at the start",
    needs: "an Open MPI built with dynamic components (without configure's --disable-dlopen)",
};

const ROWS: &[MonitoringRow] = &[
    MonitoringRow {
        since: (4, 0, 0),
        until: Some((5, 0, 0)),
        // The point-to-point component removes its variables when MPI_Init closes it.
        gives: "messages and bytes to each peer: collective, one-sided (point-to-point from Open \
                MPI 5 on)",
        costs: "about 30 ns a message, 0.3 s at the start",
        ..MONITORING
    },
    MONITORING,
    MonitoringRow {
        name: "spc",
        implementation: Implementation::OpenMpi,
        since: (4, 0, 0),
        until: None,
        cvar: "mpi_spc_attach",
        on: "all",
        off: "",
        pvars: "runtime_spc_",
        when_off: WhenOff::Zero,
        gives: "over 100 counters inside the library: calls, bytes, matching, queues",
        costs: "about 35 ns a message, 7 ms at the start",
        needs: "an Open MPI built with configure's --enable-spc",
    },
];

/// Every row for a library.
fn rows(
    implementation: Implementation,
    version: Version,
) -> impl Iterator<Item = &'static MonitoringRow> {
    ROWS.iter().filter(move |row| {
        row.implementation == implementation && abi::is_between(version, row.since, row.until)
    })
}

/// The rows for this library that `enable`, the names that the user gave, selects; `all` selects every row. Any
/// other name gives a warning.
pub(crate) fn wanted(
    library: &Library,
    enable: &[String],
) -> (Vec<&'static MonitoringRow>, Vec<String>) {
    let rows: Vec<&MonitoringRow> = rows(library.implementation, library.version).collect();
    let is_known = |name: &String| name == "all" || rows.iter().any(|row| row.name == name);
    let unknown = enable.iter().filter(|name| !is_known(name));
    let warnings = unknown.map(|name| unknown_name(name, &rows)).collect();
    let is_wanted =
        |row: &&MonitoringRow| enable.iter().any(|name| name == "all" || name == row.name);
    (rows.into_iter().filter(is_wanted).collect(), warnings)
}

fn unknown_name(name: &str, rows: &[&MonitoringRow]) -> String {
    let known: Vec<&str> = rows.iter().map(|row| row.name).collect();
    if known.is_empty() {
        return format!(
            "GYAN_ENABLE: {name}: this MPI library has nothing that gyan can turn on; leave it out"
        );
    }
    format!(
        "GYAN_ENABLE: {name}: this MPI library has nothing of this name to turn on; it has {}",
        known.join(", ")
    )
}

impl MonitoringRow {
    /// The warning when it was requested by name but is missing.
    pub(crate) fn missing(&self) -> String {
        format!(
            "GYAN_ENABLE: {}: this MPI library is built without it; use {}",
            self.name, self.needs
        )
    }

    fn owns(&self, pvar: &str) -> bool {
        pvar.starts_with(self.pvars)
    }
}

/// A warning for each row that `enable` names and that is missing. Call after `MPI_Init`, since some libraries
/// do not tell it before. Variables whose index is `excluded` are not touched.
pub(crate) fn verify(
    mpit: &Mpit,
    library: &Library,
    enable: &[String],
    excluded: impl Fn(usize) -> bool,
) -> Vec<String> {
    let number = mpit.api.pvar_get_num().unwrap_or(0);
    let there = |row: &MonitoringRow| {
        let mut variables = (0..number)
            .filter(|index| !excluded(*index))
            .filter_map(|index| mpit.variable(library, index).ok());
        variables.any(|variable| row.owns(&variable.name))
    };
    let named = |row: &&MonitoringRow| enable.iter().any(|name| name == row.name);
    rows(library.implementation, library.version)
        .filter(|row| row.when_off == WhenOff::Zero && named(row) && !there(row))
        .map(MonitoringRow::missing)
        .collect()
}

/// The state of each row in a run.
pub(crate) fn states(
    implementation: Implementation,
    version: Version,
    read: &[Pvar],
    unread: &[&Unread],
) -> Vec<(&'static MonitoringRow, MonitoringState)> {
    let state = |row: &'static MonitoringRow| {
        let owns = |pvar: &&Pvar| {
            let mut owns = false;
            let _ = pvar.names(&mut |name| owns |= row.owns(name));
            owns
        };
        let read: Vec<&Pvar> = read.iter().filter(owns).collect();
        let mut left_out = unread
            .iter()
            .filter(|unread| unread.name.as_ref().is_some_and(|name| row.owns(name)))
            .peekable();
        let state = if read.is_empty() && left_out.peek().is_none() {
            let all_named = unread.iter().all(|unread| unread.name.is_some());
            if all_named { MonitoringState::Missing } else { MonitoringState::Unknown }
        } else {
            let off = match row.when_off {
                WhenOff::Gone => left_out.any(|unread| matches!(unread.why, Why::Closed(_))),
                WhenOff::Zero => {
                    !read.is_empty() && read.iter().all(|pvar| is_zero(pvar.end.as_ref()))
                }
            };
            if off { MonitoringState::Off } else { MonitoringState::On }
        };
        (row, state)
    };
    rows(implementation, version).map(state).collect()
}

fn is_zero(values: Option<&Values>) -> bool {
    match values {
        Some(Values::Elements(elements)) => elements.iter().copied().all(Number::is_zero),
        Some(Values::Digest(digest)) => digest.min.is_zero() && digest.max.is_zero(),
        Some(Values::Text(_)) | None => true,
    }
}

/// A sentence of advice for a row.
pub(crate) fn advice(row: &MonitoringRow, state: MonitoringState) -> Option<String> {
    let MonitoringRow { name, gives, needs, .. } = row;
    match state {
        MonitoringState::Off => Some(format!("{gives}: gyan run --enable {name}")),
        MonitoringState::Missing => {
            Some(format!("{gives}: {needs}, and then gyan run --enable {name}"))
        }
        MonitoringState::On | MonitoringState::Unknown => None,
    }
}

/// The entry of each row in a listing after `MPI_Init`.
pub(crate) fn switches(library: &Library, cvars: &[Cvar], pvars: &[PvarInfo]) -> Vec<Switch> {
    let switch = |row: &'static MonitoringRow| {
        let cvar = cvars.iter().find(|cvar| cvar.name.as_deref() == Some(row.cvar));
        let built = pvars.iter().any(|pvar| pvar.name.as_ref().is_some_and(|name| row.owns(name)));
        let value = cvar.and_then(Cvar::value_text);
        Switch {
            name: row.name.into(),
            available: cvar.is_some() && built,
            on: built && value.is_some_and(|value| value != row.off),
            gives: row.gives.into(),
            costs: row.costs.into(),
            needs: row.needs.into(),
            cvar: row.cvar.into(),
            value: row.on.into(),
        }
    };
    rows(library.implementation, library.version).map(switch).collect()
}
