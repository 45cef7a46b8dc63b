//! What programs get of a result. Every number in long tables, one row each, for other programs: nothing is rounded or left out to save space.
//! The same thing has the same name, class and element in each table, so that tables can be joined.

use std::borrow::Cow;
use std::io::{self, Write};

use gyan_results::{Class, Element, write_json};
use serde::Serialize;

use crate::document::value::Value;
use crate::document::{Column, View};

/// Takes each row; an error ends the table.
pub(crate) type TakeRow<'t> = dyn FnMut(&[Value]) -> io::Result<()> + 't;

/// A long table whose rows are produced one by one as they are consumed.
pub(crate) struct Data<'a> {
    pub(crate) columns: &'static [Column],
    #[allow(clippy::type_complexity)] // what each table does with `TakeRow`
    pub(crate) rows: Box<dyn FnOnce(&mut TakeRow) -> io::Result<()> + 'a>,
}

/// A result in the forms of which every format is made.
pub(crate) struct Shown<'a> {
    /// For people.
    pub(crate) view: View<'a>,
    /// For spreadsheets.
    pub(crate) rows: Data<'a>,
    /// For other programs.
    pub(crate) document: Document<'a>,
}

/// What a result is as JSON.
pub(crate) enum Document<'a> {
    #[allow(clippy::type_complexity)] // what writes it
    Json(Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + 'a>),
    /// An array of the rows.
    Rows,
}

impl<'a> Document<'a> {
    pub(crate) fn new(of: impl Serialize + 'a) -> Document<'a> {
        Document::Json(Box::new(move |out| write_json(out, &of)))
    }
}

/// The class of a variable according to the library, and the one that it behaves as: the same unless the
/// library is known to be wrong.
pub(crate) fn classes(class: Class, behaves_as: Option<Class>) -> [Value<'static>; 2] {
    [class, behaves_as.unwrap_or(class)].map(|class| class.name().into())
}

/// The name of an element in every table.
pub(crate) fn element(element: Element) -> Cow<'static, str> {
    match element {
        Element::Scalar => "scalar".into(),
        Element::Index(index) => index.to_string().into(),
        Element::Sum => "sum".into(),
        Element::Min => "min".into(),
        Element::Max => "max".into(),
    }
}

/// The word for an enumerator in JSON.
pub(crate) fn word(value: impl serde::Serialize) -> io::Result<String> {
    Ok(serde_json::to_value(value)?.as_str().unwrap_or_default().to_owned())
}
