//! What `gyan now` shows: the cause first, then what the ranks do.

use std::path::Path;

use gyan_results::JobNow;

use crate::document::View;
use crate::document::value::line;
use crate::parts::{cause, groups};

pub(crate) fn now<'a>(now: &'a JobNow, directory: &Path) -> View<'a> {
    let known = now.ranks.len();
    let doing = if now.is_over { " ranks did last" } else { " ranks are doing" };
    let title = match now.size as usize {
        size if known == size => line!["What the ", known as u64, doing],
        size => line!["What ", known as u64, " of ", size as u64, doing],
    };
    let mut subtitle = vec![line!["in ", directory.display().to_string()]];
    if let Some(cause) = cause(now) {
        subtitle.extend(["".into(), cause]);
    }
    View { title, subtitle, sections: vec![groups(now)] }
}
