//! Is what the command prints what it printed when somebody looked?

use std::fs;

use crate::common::root;

/// Compares a text with that in a file of `tests/golden`; with `BLESS` set it becomes that.
pub(crate) fn is_golden(name: &str, text: &str) {
    let path = root().join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "{name} is not the golden one; look, then BLESS=1");
}
