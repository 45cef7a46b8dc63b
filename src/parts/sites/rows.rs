//! Call sites, one row each.

use crate::document::data::Data;
use crate::document::value::{Value, cells};
use crate::document::{Column, Kind, column, required};
use crate::symbols::Frame;
use crate::symbols::sites::{CallSites, Library};

const COLUMNS: [Column; 20] = [
    required("function", Kind::Text),
    // The function that makes the call, and where it is.
    column("caller", Kind::Text),
    column("file", Kind::Text),
    column("line", Kind::Integer),
    // The functions that it was inlined into, those between it and MPI, and those that led to it, the innermost
    // first.
    column("inlined_into", Kind::Text),
    column("via", Kind::Text),
    required("calls", Kind::Double),
    column("calls_error", Kind::Double),
    required("timed", Kind::Integer),
    required("time_s", Kind::Double),
    column("time_error_s", Kind::Double),
    column("share", Kind::Double),
    required("mean_s", Kind::Double),
    required("time_max_s", Kind::Double),
    column("bytes", Kind::Double),
    required("worst_rank", Kind::Integer),
    required("worst_time_s", Kind::Double),
    required("stacks_taken", Kind::Integer),
    // The library that the caller is in, and how the program got there.
    column("object", Kind::Text),
    column("from", Kind::Text),
];

pub(crate) fn sites<'a>(found: &'a CallSites<'a>) -> Data<'a> {
    let rows = move |take: &mut crate::document::data::TakeRow| {
        found.sites.iter().try_for_each(|site| {
            let caller = site.caller.as_ref();
            let line = caller.and_then(|caller| caller.line).map(u64::from);
            let inlined: Vec<String> = site.inlined_into.iter().map(Frame::place).collect();
            let names = |path: &[Library]| path.iter().map(|on| on.frame.place()).collect();
            let joined = |names: Vec<String>| (!names.is_empty()).then(|| names.join(" < "));
            take(&cells![
                site.function,
                caller.map(|caller| &caller.function),
                caller.and_then(|caller| caller.file.as_ref()),
                line,
                joined(inlined),
                joined(names(&site.via)),
                site.calls,
                site.calls_error,
                site.timed,
                site.time_s,
                site.time_error_s,
                site.share,
                site.mean_s,
                site.time_max_s,
                site.bytes,
                Value::Rank(site.worst_rank),
                site.worst_time_s,
                site.stacks_taken,
                site.object,
                joined(names(&site.from)),
            ])
        })
    };
    Data { columns: &COLUMNS, rows: Box::new(rows) }
}
