//! Who made an MPI library, and which version is it? According to its own description.

#![forbid(unsafe_code)]

/// Who made the library. Only used to select rows of tables.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Implementation {
    OpenMpi,
    Mpich,
    IntelMpi,
    Other,
}

/// Major, minor and patch level; parts that the library does not tell are 0.
pub(crate) type Version = (u32, u32, u32);

/// Whether `version` has something that was added in `since` and removed in `until`.
pub(crate) fn is_between(version: Version, since: Version, until: Option<Version>) -> bool {
    version >= since && until.is_none_or(|until| version < until)
}

/// Maker and version from the first line of `MPI_Get_library_version`.
pub(crate) fn identify(description: &str) -> (Implementation, Version) {
    let makers = [
        ("Open MPI v", Implementation::OpenMpi),
        ("MPICH Version:", Implementation::Mpich),
        ("Intel(R) MPI Library", Implementation::IntelMpi),
    ];
    for (prefix, implementation) in makers {
        if let Some(rest) = description.strip_prefix(prefix) {
            return (implementation, version(rest));
        }
    }
    (Implementation::Other, (0, 0, 0))
}

/// The first dotted number in `text`.
fn version(text: &str) -> Version {
    let start = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
    let digits = text.get(start..).unwrap_or_default();
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
    let mut parts = digits.get(..end).unwrap_or_default().split('.').map(|part| part.parse().ok());
    let mut part = || parts.next().flatten().unwrap_or(0);
    (part(), part(), part())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maker_and_version_are_read_from_the_description() {
        for (text, expected) in [
            ("Open MPI v4.1.4, package: Debian OpenMPI", (Implementation::OpenMpi, (4, 1, 4))),
            ("Open MPI v5.0.11rc2", (Implementation::OpenMpi, (5, 0, 11))),
            ("MPICH Version:\t4.0.2", (Implementation::Mpich, (4, 0, 2))),
            ("MPICH Version:      5.0", (Implementation::Mpich, (5, 0, 0))),
            (
                "Intel(R) MPI Library 2021.18 for Linux* OS",
                (Implementation::IntelMpi, (2021, 18, 0)),
            ),
            ("Open MPI v", (Implementation::OpenMpi, (0, 0, 0))),
            ("something", (Implementation::Other, (0, 0, 0))),
        ] {
            assert_eq!(identify(text), expected, "{text}");
        }
    }
}
