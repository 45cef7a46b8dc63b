//! A performance variable: on one rank and over ranks.

use crate::data::{Data, Serialize, derive};
use crate::{Class, Datatype, Element, Measure, Samples, Statistic, Unit, Values};

/// One performance variable, bound to one object.
#[derive(Data!, Serialize)]
pub struct Pvar {
    /// Its name; unique only together with the class.
    pub name: String,
    /// Its class according to the library.
    pub class: Class,
    /// The class that it really behaves as, if the library is known to be wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaves_as: Option<Class>,
    /// The datatype of an element.
    pub datatype: Datatype,
    /// The kind of object that it binds to, such as `MPI_COMM`; none for `MPI_T_BIND_NO_OBJECT`.
    pub bind: Option<String>,
    /// The object that it is bound to here, such as `MPI_COMM_WORLD`.
    pub object: Option<String>,
    /// The verbosity level, without the prefix `MPI_T_VERBOSITY_`.
    pub verbosity: String,
    /// Whether it runs all the time.
    pub continuous: bool,
    /// Whether it cannot be written.
    pub readonly: bool,
    /// Whether it can be read and reset in one step.
    pub atomic: bool,
    /// Number of elements.
    pub count: usize,
    /// The reading after `MPI_Init`; none for a variable that appeared later.
    pub start: Option<Values>,
    /// The reading before `MPI_Finalize`; none when it failed.
    pub end: Option<Values>,
    /// `end - start` of a variable that accumulates, wrapping in the datatype's own width.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<Values>,
    /// Its readings while the program ran; none for a variable that was not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
    /// What a reader of this number should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The names of other variables, of which all the rest is true too, in a file: gyan lists those that were always 0
    /// so. Each is a word: how many bytes it has in common with the beginning of the name before it (of `name`, for
    /// the first), a colon, and the rest. After `bytes_from_a`, `11:b` is
    /// `bytes_from_b`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub also: String,
}

impl Pvar {
    /// What identifies a variable: name, class and object.
    pub fn identity(&self) -> (&str, Class, Option<&str>) {
        (&self.name, self.class, self.object.as_deref())
    }

    /// The class that decides how it is reported.
    pub fn effective_class(&self) -> Class {
        self.behaves_as.unwrap_or(self.class)
    }

    /// Adds the readings of the same variable after MPI was initialised again: the differences add up, the
    /// reading at the end is the later one. False when it is not the same variable.
    pub fn continued(&mut self, later: &Pvar) -> bool {
        if self.identity() != later.identity() {
            return false;
        }
        let Pvar { end, delta, samples, notes, .. } = later;
        self.delta = match (&self.delta, delta) {
            (Some(earlier), Some(later)) => earlier.plus(later),
            _ => None,
        };
        self.end.clone_from(end);
        match (&mut self.samples, samples) {
            (Some(samples), Some(later)) => samples.extend(later),
            (samples @ None, later) => samples.clone_from(later),
            (Some(_), None) => {}
        }
        for note in notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
        true
    }
}

/// One number of one variable over the ranks that have it.
#[derive(Data!, Serialize)]
pub struct PvarSummary {
    /// Name of the variable.
    pub name: String,
    /// Its class according to the library.
    pub class: Class,
    /// The class that it behaves as, if the library is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behaves_as: Option<Class>,
    /// The object that it is bound to.
    pub object: Option<String>,
    /// Which element.
    pub element: Element,
    /// Which reading.
    pub measure: Measure,
    /// Its datatype.
    pub datatype: Datatype,
    /// The result.
    #[serde(flatten)]
    pub statistic: Statistic,
    /// What a reader of this number should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl PvarSummary {
    /// The class that decides how it is reported.
    pub fn effective_class(&self) -> Class {
        self.behaves_as.unwrap_or(self.class)
    }

    /// Seconds for a timer whose type is a double (MPI 4.1, 15.3.7): one of integers is in a unit of the library's own.
    pub fn unit(&self) -> Unit {
        let is_timer = self.effective_class() == Class::Timer && self.datatype == Datatype::Double;
        if is_timer { Unit::Seconds } else { Unit::Count }
    }
}
