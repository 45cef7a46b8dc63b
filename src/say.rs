//! Text of a file or a library on one line of a terminal.

use std::borrow::Cow;

pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(char::is_control) {
        text.replace(char::is_control, "?").into()
    } else {
        text.into()
    }
}
