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

impl<'a> Data<'a> {
    pub(crate) fn new<R: Row>(rows: impl IntoIterator<Item = R> + 'a) -> Data<'a> {
        Data::from_each(R::COLUMNS, |take| rows.into_iter().try_for_each(|row| row.write(take)))
    }

    /// The table of the rows that `rows` hands on.
    pub(crate) fn from_each(
        columns: &'static [Column],
        rows: impl FnOnce(&mut TakeRow) -> io::Result<()> + 'a,
    ) -> Data<'a> {
        Data { columns, rows: Box::new(rows) }
    }
}

/// A row of a long table.
pub(crate) trait Row {
    const COLUMNS: &'static [Column];

    /// Hands its cells on.
    fn write(&self, take: &mut TakeRow) -> io::Result<()>;
}

impl<R: Row> Row for &R {
    const COLUMNS: &'static [Column] = R::COLUMNS;

    fn write(&self, take: &mut TakeRow) -> io::Result<()> {
        (*self).write(take)
    }
}

/// Makes a [`Row`] of a type: each of its columns, and what stands there in a row. A column that several tables have is a
/// constant. What a column is and how well its numbers are known is said to readers of a file, and in docs/tables.md.
///
/// ```text
/// columns! { (call, bar) in (&Call, HistogramBar);
///     FUNCTION => &call.name,
///     /// seconds that the calls took at least
///     required(from_s: Double) => bar.from,
///     /// bytes that they moved; null where they are not counted
///     column(bytes: Integer, Exact) => bar.bytes,
/// }
/// ```
macro_rules! columns {
    (@ $column:ident;) => { $column };
    (@ $column:ident ($name:ident: $kind:ident $(, $fidelity:ident)?); $($about:literal)*) => {
        $crate::document::$column(stringify!($name), $crate::document::Kind::$kind)
            $(.known(gyan_results::Fidelity::$fidelity))?
            .about(concat!($($about),*).trim_ascii_start())
    };
    ($row:pat_param in $type:ty; $(
        $(#[doc = $about:literal])* $column:ident $(($name:ident: $kind:ident $(, $fidelity:ident)?))? => $cell:expr
    ),+ $(,)?) => {
        impl $crate::document::data::Row for $type {
            const COLUMNS: &'static [$crate::document::Column] = &[$(
                $crate::document::data::columns!(@ $column $(($name: $kind $(, $fidelity)?))?; $($about)*)
            ),+];

            fn write(&self, take: &mut $crate::document::TakeRow) -> std::io::Result<()> {
                let $row = self;
                take(&$crate::document::value::cells![$($cell),+])
            }
        }
    };
}

pub(crate) use columns;

/// A result in the forms of which every format is made.
pub(crate) struct Presentation<'a> {
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
