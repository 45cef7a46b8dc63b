//! Variables that are alike but for their names are one entry in a file, and one each once it is read: a library may
//! export a thousand variables, of which nearly all are 0.

use std::fmt::Write as _;

use crate::{Pvar, Values};

/// No profile has more of them, in bytes of memory: a damaged file must not fill it.
const ROOM: usize = 1 << 28;

/// The names in [`Pvar::also`].
impl Pvar {
    /// Whether a variable of this name can be listed: names are words there.
    pub fn can_list(name: &str) -> bool {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())
    }

    /// Lists a variable that is like this one. `before`: the name listed before it, at first its own.
    pub fn list(&mut self, before: &mut String, name: &str) {
        let pairs = before.bytes().zip(name.bytes());
        let shared = pairs.take_while(|(before, own)| before == own).count();
        let separator = if self.also.is_empty() { "" } else { " " };
        let rest = name.get(shared..).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(self.also, "{separator}{shared}:{rest}");
        name.clone_into(before);
    }

    /// Passes its name to `take`, and those of the variables that are like it. None when they are not written as
    /// gyan writes them.
    pub fn names(&self, take: &mut impl FnMut(&str)) -> Option<()> {
        let mut name = self.name.clone();
        take(&name);
        for word in self.also.split_ascii_whitespace() {
            let (shared, rest) = word.split_once(':')?;
            let shared = shared.parse().ok().filter(|shared| name.is_char_boundary(*shared))?;
            name.truncate(shared);
            name.push_str(rest);
            take(&name);
        }
        Some(())
    }

    /// Whether the other variable is the same but for its name.
    fn is_like(&self, other: &Pvar) -> bool {
        let Pvar {
            name: _,
            class,
            behaves_as,
            datatype,
            bind,
            object,
            verbosity,
            continuous,
            readonly,
            atomic,
            count,
            start,
            end,
            delta,
            samples,
            notes,
            also: _,
        } = self;
        (class, behaves_as, datatype) == (&other.class, &other.behaves_as, &other.datatype)
            && (bind, object, verbosity) == (&other.bind, &other.object, &other.verbosity)
            && (continuous, readonly) == (&other.continuous, &other.readonly)
            && (atomic, count) == (&other.atomic, &other.count)
            && (start, end, delta) == (&other.start, &other.end, &other.delta)
            && (samples, notes) == (&other.samples, &other.notes)
    }

    /// Memory for another variable like this one; none for what gyan does not list.
    fn room(&self) -> Option<usize> {
        let is_short = |values: &Option<Values>| match values {
            Some(Values::Elements(elements)) => elements.len() <= 1,
            Some(Values::Digest(_)) | None => true,
            Some(Values::Text(_)) => false,
        };
        let is_plain = [&self.start, &self.end, &self.delta].into_iter().all(is_short);
        let texts =
            [Some(&self.name), self.bind.as_ref(), self.object.as_ref(), Some(&self.verbosity)];
        let bytes = texts.into_iter().flatten().map(String::len).sum::<usize>();
        (is_plain && self.samples.is_none() && self.notes.is_empty())
            .then_some(bytes + 2 * size_of::<Pvar>())
    }
}

/// The variables of a profile that were listed, and how: the next profile of a job has nearly the same.
#[derive(Debug, Default)]
pub(crate) struct Alike {
    /// The lists of the entries.
    lists: Vec<String>,
    /// Variables of an earlier profile, as memory.
    spare: Vec<Pvar>,
}

impl Alike {
    /// As it was in the file.
    pub(crate) fn fold(&mut self, pvars: &mut Vec<Pvar>) {
        self.spare.extend(pvars.drain(self.lists.len().min(pvars.len())..));
        for (pvar, list) in pvars.iter_mut().zip(self.lists.drain(..)) {
            pvar.also = list;
        }
    }

    /// An entry for each variable. None when they are not listed as gyan does.
    pub(crate) fn unfold(&mut self, pvars: &mut Vec<Pvar>) -> Option<()> {
        let (mut number, mut room) = (0, 0);
        for pvar in pvars.iter().filter(|pvar| !pvar.also.is_empty()) {
            room += pvar.room()?.saturating_mul(pvar.also.split_ascii_whitespace().count());
            let mut is_own = true;
            pvar.names(&mut |name| {
                if std::mem::take(&mut is_own) || room > ROOM {
                    return;
                }
                room += name.len();
                let anew = || Pvar { name: name.to_owned(), also: String::new(), ..pvar.clone() };
                match self.spare.get_mut(number) {
                    Some(place) if !place.is_like(pvar) => *place = anew(),
                    Some(place) if place.name != name => name.clone_into(&mut place.name),
                    Some(_) => {}
                    None => self.spare.push(anew()),
                }
                number += 1;
            })?;
        }
        if room > ROOM {
            return None;
        }
        self.lists.clear();
        self.lists.extend(pvars.iter_mut().map(|pvar| std::mem::take(&mut pvar.also)));
        pvars.extend(self.spare.drain(..number));
        Some(())
    }
}

/// Gives each variable an entry of its own. None when they are not listed as gyan does.
pub fn unfold(pvars: &mut Vec<Pvar>) -> Option<()> {
    Alike::default().unfold(pvars)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RankProfile, RankReader, Reduction, parse_rank};

    const NAMES: [&str; 5] = ["bytes_to_a", "bytes_to_b", "bytes_from_b", "b", "bytes_from_b:2"];

    /// The example with a variable for each of the names, all of them with this value, and the same as gyan writes it.
    fn profiles(rank: u32, value: i128) -> (RankProfile, RankProfile) {
        let mut full = parse_rank(include_bytes!("../examples/rank.json")).unwrap();
        (full.rank, full.size) = (rank, 10);
        let mut like = full.pvars.iter().find(|pvar| pvar.room().is_some()).unwrap().clone();
        like.end = Some(Values::Elements(vec![crate::Number::Integer(value)]));
        let mut listed = full.clone();
        full.pvars.extend(NAMES.map(|name| Pvar { name: name.into(), ..like.clone() }));
        like.name = NAMES[0].into();
        let mut before = like.name.clone();
        for name in &NAMES[1..] {
            like.list(&mut before, name);
        }
        listed.pvars.push(like);
        (full, listed)
    }

    fn text(profile: &RankProfile) -> Vec<u8> {
        serde_json::to_vec(profile).unwrap()
    }

    #[test]
    fn each_name_is_written_once_and_without_what_the_one_before_it_has() {
        let (_, listed) = profiles(0, 0);
        let pvar = listed.pvars.last().unwrap();
        assert_eq!(pvar.also, "9:b 6:from_b 1: 1:ytes_from_b:2");
        let mut names = Vec::new();
        pvar.names(&mut |name| names.push(name.to_owned())).unwrap();
        assert_eq!(names, NAMES);
        assert!(Pvar::can_list("a:1"));
        for name in ["", "of two words", "\u{e9}", "\n"] {
            assert!(!Pvar::can_list(name), "{name}");
        }
    }

    #[test]
    fn listed_variables_are_read_as_if_each_had_an_entry() {
        let mut reader = RankReader::default();
        let (mut of_full, mut of_listed) = (Reduction::default(), Reduction::default());
        for (rank, value) in (0..).zip([0, 0, 7, 0]) {
            let (full, listed) = profiles(rank, value);
            assert!(text(&listed).len() < text(&full).len());
            assert_eq!(parse_rank(&text(&listed)).unwrap(), full);
            let read = reader.parse(&text(&listed)).unwrap();
            assert_eq!(*read, full);
            of_listed.add("", read);
            // One without lists in between.
            let mut other = full.clone();
            other.rank = 4 + rank;
            let read = reader.parse(&text(&other)).unwrap();
            assert_eq!(*read, other);
            of_listed.add("", read);
            of_full.add("", &full);
            of_full.add("", &other);
        }
        let summary = of_full.finish().unwrap();
        assert!(NAMES.iter().all(|name| summary.pvars.iter().any(|row| row.name == *name)));
        assert_eq!(of_listed.finish().unwrap(), summary);
    }

    #[test]
    fn lists_that_gyan_does_not_write_are_refused() {
        for (also, sampled) in [("b", false), ("x:b", false), ("11:b", false), ("0:b", true)] {
            let (_, mut listed) = profiles(0, 0);
            let pvar = listed.pvars.last_mut().unwrap();
            pvar.also = also.into();
            pvar.samples = sampled.then(Default::default);
            for read in [
                parse_rank(&text(&listed)).map(|_| ()),
                RankReader::default().parse(&text(&listed)).map(|_| ()),
            ] {
                let error = read.unwrap_err().to_string();
                assert!(error.starts_with("is damaged: names of variables"), "{also}: {error}");
            }
        }
        let (_, mut many) = profiles(0, 0);
        many.pvars.last_mut().unwrap().also = "0: ".repeat(ROOM / size_of::<Pvar>());
        assert!(parse_rank(&text(&many)).is_err());
    }
}
