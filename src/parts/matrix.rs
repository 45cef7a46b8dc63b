//! An amount for each pair of ranks or hosts, in no more rows than can be seen. What the amounts are, the parts say that show
//! them.

use gyan_results::Unit;

use crate::document::Value;
use crate::document::page::pictures::{Matrix, MatrixWords};
use crate::document::value::line;

/// Most rows and columns of a matrix.
const SIDE_AT_MOST: usize = 256;

/// What one rank or host has to do with another one. Entries of one cell are added up.
#[derive(Clone, Copy)]
pub(super) struct MatrixEntry {
    pub(super) row: usize,
    pub(super) column: usize,
    /// In ns for seconds.
    pub(super) amount: u64,
    /// One bit for each way in which it is so: which bits a cell has is the number of its sentence.
    pub(super) kind: u8,
}

/// How many are in a bin.
fn each(members: usize) -> usize {
    members.div_ceil(SIDE_AT_MOST).max(1)
}

/// What each row and column stands for. `member`: one of them, such as `rank`.
pub(super) fn by_member(members: usize, member: &'static str) -> Value<'static> {
    match each(members) {
        1 => line!["by ", member],
        each => line!["by bins of ", each, " ", member, "s"],
    }
}

/// By `members`, or by bins of equally many of them; none for a single row.
pub(super) fn binned(
    (unit, words): (Unit, MatrixWords),
    members: usize,
    entries: impl Iterator<Item = MatrixEntry>,
    name: impl Fn(usize) -> String,
) -> Option<Matrix> {
    let each = each(members);
    let side = members.div_ceil(each);
    let (mut cells, mut kinds) = (vec![0_u64; side * side], vec![0_u8; side * side]);
    for MatrixEntry { row, column, amount, kind } in entries {
        if row >= members || column >= members || amount == 0 {
            continue;
        }
        let at = row / each * side + column / each;
        if let Some((cell, kinds)) = cells.get_mut(at).zip(kinds.get_mut(at)) {
            *cell = cell.saturating_add(amount);
            *kinds |= kind;
        }
    }
    let name = |bin: usize| match (bin * each, ((bin + 1) * each).min(members) - 1) {
        (first, last) if first == last => name(first),
        (first, last) => format!("{}-{}", name(first), name(last)),
    };
    let names = (0..side).map(name).collect();
    (side > 1).then_some(Matrix { unit, side, cells, kinds, names, words })
}
