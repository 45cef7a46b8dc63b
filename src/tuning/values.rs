//! What does `--set NAME=V1,V2,...` stand for? Values, ranges, and all values that an enumeration has.

use std::num::IntErrorKind;

/// Values of one range, at most: a race of more takes too long.
const AT_MOST: usize = 64;

/// The name and the values of `NAME=V1,V2,...`: each V is a value, a range `FROM..TO*FACTOR` or `FROM..TO+STEP` with both
/// ends in it (without a step each is twice the one before), or `*` for all names that the library has for the variable,
/// which `enumeration` knows. A comma within a value is written `\,`.
///
/// # Errors
/// Why it stands for nothing.
pub(crate) fn sweep(
    text: &str,
    enumeration: impl Fn(&str) -> Option<Vec<String>>,
) -> Result<(String, Vec<String>), String> {
    let Some((name, list)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        return Err("no value".into());
    };
    let mut values: Vec<String> = Vec::new();
    for part in parts(list) {
        let more = match (part.as_str(), part.split_once("..")) {
            ("", _) => return Err("a value is empty".into()),
            ("*", _) => enumeration(name).ok_or("the library has no names for its values")?,
            (_, Some((from, to))) if from.parse::<i64>().is_ok() => range(from, to)?,
            _ => vec![part],
        };
        for value in more {
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    Ok((name.to_owned(), values))
}

/// Splits at commas, except those after a backslash.
fn parts(list: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut signs = list.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' if signs.peek() == Some(&',') => {
                parts.last_mut().expect("one").extend(signs.next());
            }
            ',' => parts.push(String::new()),
            _ => parts.last_mut().expect("one").push(sign),
        }
    }
    parts
}

fn range(from: &str, to: &str) -> Result<Vec<String>, String> {
    let at = to.find(['*', '+']);
    let (to, step) = to.split_at(at.unwrap_or(to.len()));
    let (is_sum, step) = match step.split_at(usize::from(!step.is_empty())) {
        ("+", step) => (true, step),
        (_, "") => (false, "2"),
        (_, step) => (false, step),
    };
    let number = |text: &str| {
        text.parse::<i64>().map_err(|error| match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
                format!("{text} is out of range")
            }
            _ => format!("{text} is no whole number"),
        })
    };
    let (first, last, step) = (number(from)?, number(to)?, number(step)?);
    let grows = if is_sum { step >= 1 } else { step >= 2 && first >= 1 };
    if !grows || last < first {
        return Err("the range does not grow from its first to its last value".into());
    }
    let next = |value: &i64| {
        let next = if is_sum { value.checked_add(step) } else { value.checked_mul(step) };
        next.filter(|next| *next <= last)
    };
    let values: Vec<i64> = std::iter::successors(Some(first), next).take(AT_MOST + 1).collect();
    if values.len() > AT_MOST {
        return Err(format!("the range has more than {AT_MOST} values"));
    }
    Ok(values.iter().map(ToString::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values_of(text: &str) -> Result<Vec<String>, String> {
        let names = |name: &str| (name == "smsc").then(|| vec!["cma".into(), "none".into()]);
        sweep(text, names).map(|(_, values)| values)
    }

    #[test]
    fn lists_ranges_and_enumerations_are_values() {
        for (text, expected) in [
            ("x=1", &["1"][..]),
            ("x=a,b,a", &["a", "b"]),
            ("x=4096..16384*2", &["4096", "8192", "16384"]),
            ("x=4096..10000", &["4096", "8192"]),
            ("x=1..1000*10,7", &["1", "10", "100", "1000", "7"]),
            ("x=0..10+5", &["0", "5", "10"]),
            ("x=-1,0", &["-1", "0"]),
            ("smsc=*", &["cma", "none"]),
            ("btl=tcp\\,self,self", &["tcp,self", "self"]),
            ("file=../x", &["../x"]),
            ("x=a=b", &["a=b"]),
        ] {
            assert_eq!(values_of(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_stands_for_nothing_is_said_to() {
        for (text, why) in [
            ("x", "no value"),
            ("=1", "no value"),
            ("x=", "a value is empty"),
            ("x=1,,2", "a value is empty"),
            ("x=*", "no names"),
            ("x=1..2*1", "does not grow"),
            ("x=0..8", "does not grow"),
            ("x=8..4", "does not grow"),
            ("x=1..b", "b is no whole number"),
            ("x=1..99999999999999999999", "out of range"),
            ("x=1..1000+1", "more than 64"),
        ] {
            let error = values_of(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
