//! What the other subcommands answer: how runs differ and grow, whether they got worse, which settings help, what a library
//! has, what is in the way, and what ranks are doing now.

pub(crate) mod archive;
pub(crate) mod comparison;
pub(crate) mod difference;
pub(crate) mod doctor;
pub(crate) mod history;
pub(crate) mod judgement;
pub(crate) mod now;
pub(crate) mod repeats;
pub(crate) mod scaling;
pub(crate) mod timeline;
pub(crate) mod tuning;
pub(crate) mod variables;
pub(crate) mod watch;

use gyan_results::{Shift, Unit};

use crate::document::Value;
use crate::document::value::{InUnit, line};

pub(crate) use archive::{Extent, archive_report, page_of_archive};
pub(crate) use comparison::rows::comparison as comparison_rows;
pub(crate) use comparison::{answer, comparison, page_of_comparison};
pub(crate) use difference::{changed, difference};
pub(crate) use doctor::doctor;
pub(crate) use judgement::{judgement, suites};
pub(crate) use now::{now, starting};
pub(crate) use repeats::{Repeats, repeats};
pub(crate) use scaling::rows::scaling as scaling_rows;
pub(crate) use scaling::{page_of_scaling, scaling};
pub(crate) use timeline::timeline_waits;
pub(crate) use tuning::{tuning, tuning_page};
pub(crate) use variables::{Choice, level, variables};
pub(crate) use watch::watched;

/// From where to where a shift may be, with signs.
fn interval(shift: Option<Shift>, unit: Unit) -> Value<'static> {
    let between = |Shift { low, high, .. }: Shift| {
        let [low, high] = [low, high].map(|end| unit.double(end).as_change());
        line![low, " to ", high]
    };
    shift.map(between).into()
}
