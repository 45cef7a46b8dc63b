//! Every number in long tables, one row each, for other programs: nothing is rounded or left out to save space.
//! The same thing has the same name, class and element in each table, so that tables can be joined.

mod comparison;
mod findings;
mod histogram;
mod machine;
mod peers;
mod queues;
mod scaling;
mod series;
mod sites;
mod summary;
mod tables;
mod waiting;

use std::borrow::Cow;
use std::io;

use gyan_results::{Class, CvarSetting, Element};

use super::value::{Value, cells};
use super::{Column, Kind, column, required};

pub(crate) use comparison::comparison;
pub(crate) use findings::findings;
pub(crate) use histogram::histograms;
pub(crate) use machine::{Machines, machine};
pub(crate) use peers::peers;
pub(crate) use queues::{Queues, queues};
pub(crate) use scaling::scaling;
pub(crate) use series::series;
pub(crate) use sites::sites;
pub(crate) use summary::{phases, summary};
pub(crate) use tables::{CALLS, TABLES, Table, VARIABLES};
pub(crate) use waiting::waiting;

/// Takes each row; an error ends the table.
pub(crate) type TakeRow<'t> = dyn FnMut(&[Value]) -> io::Result<()> + 't;

/// A long table whose rows are produced one by one as they are consumed.
pub(crate) struct Data<'a> {
    pub(crate) columns: &'static [Column],
    #[allow(clippy::type_complexity)] // what each table does with `TakeRow`
    pub(crate) rows: Box<dyn FnOnce(&mut TakeRow) -> io::Result<()> + 'a>,
}

/// The control variables of a run.
pub(crate) fn environment(cvars: &[CvarSetting]) -> Data<'_> {
    const COLUMNS: [Column; 4] = [
        required("name", Kind::Text),
        column("value", Kind::Text),
        column("requested", Kind::Text),
        column("set_by", Kind::Text),
    ];
    let rows = move |take: &mut TakeRow| {
        cvars.iter().try_for_each(|cvar| {
            let texts = [&cvar.value, &cvar.requested, &cvar.set_by].map(Option::as_ref);
            let [value, requested, set_by] = texts;
            take(&cells![&cvar.name, value, requested, set_by])
        })
    };
    Data { columns: &COLUMNS, rows: Box::new(rows) }
}

/// The class of a variable according to the library, and the one that it behaves as: the same unless the
/// library is known to be wrong.
fn classes(class: Class, behaves_as: Option<Class>) -> [Value<'static>; 2] {
    [class, behaves_as.unwrap_or(class)].map(|class| class.name().into())
}

/// The name of an element in every table.
fn element(element: Element) -> Cow<'static, str> {
    match element {
        Element::Scalar => "scalar".into(),
        Element::Index(index) => index.to_string().into(),
        Element::Sum => "sum".into(),
        Element::Min => "min".into(),
        Element::Max => "max".into(),
    }
}

/// The word for an enumerator in JSON.
fn word(value: impl serde::Serialize) -> io::Result<String> {
    Ok(serde_json::to_value(value)?.as_str().unwrap_or_default().to_owned())
}
