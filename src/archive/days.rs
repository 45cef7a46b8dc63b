//! How do days read, in an archive and on the command line? As days since 1970, UTC.

use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(86_400);
/// 9999-12-31, the last day that has a name of this form, in days since 1970.
pub(crate) const LAST_DAY: i32 = 2_932_896;

/// Days since 1970, of `2026-11-28`.
pub(crate) fn day_of(text: &str) -> Option<i32> {
    let time = humantime::parse_rfc3339(&format!("{text}T00:00:00Z")).ok()?;
    day_at(time)
}

/// Days since 1970 at a time.
pub(crate) fn day_at(time: SystemTime) -> Option<i32> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i32::try_from(since.as_secs() / DAY.as_secs()).ok()
}

/// `2026-11-28`, of days since 1970.
pub(crate) fn name_of_day(day: i32) -> String {
    let time = SystemTime::UNIX_EPOCH + DAY * day.clamp(0, LAST_DAY).unsigned_abs();
    let mut text = humantime::format_rfc3339_seconds(time).to_string();
    text.truncate("2026-11-28".len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_names() {
        assert_eq!(day_of("1970-01-02"), Some(1));
        for day in ["2024-02-29", "2026-11-28"] {
            assert_eq!(name_of_day(day_of(day).unwrap()), day);
        }
        assert_eq!(day_of("2026-02-30"), None);
        assert_eq!(day_of("9999-12-31"), Some(LAST_DAY));
        assert_eq!(name_of_day(i32::MAX), "9999-12-31");
    }
}
