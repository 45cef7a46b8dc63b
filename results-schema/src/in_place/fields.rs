//! The structs of a profile: their fields in the order in which they are written.

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

use super::InPlace;
use super::text::Text;
use crate::{
    Call, Cgroup, Class, Clock, CodeAddress, Coverage, CvarSetting, Datatype, End, Ending,
    EventCount, InMpi, Job, Knob, Label, LoadedObject, Machine, MessageMetric, MessageSource,
    Messages, Metric, Mpi, ObjectsLeftOut, ObjectsMade, Overhead, PeerQueues, PeerTraffic, Peers,
    Phase, PhasePvar, Pvar, RankProfile, Resources, SampledSum, Samples, Series, SeriesColumn,
    Site, SiteStack, Sites, Skipped, StateShare, Tool, Traffic, Waiting, Watch,
};

/// `[?]` marks a field that may be left out of the JSON. A field that is missing from a list does not
/// compile.
macro_rules! fields {
    ($($type:ident { $($field:ident $([$optional:tt])?),+ $(,)? })+) => {$(
        impl InPlace for $type {
            fn read(&mut self, text: &mut Text) -> Option<()> {
                let $type { $($field),+ } = self;
                text.expect("{")?;
                let mut is_first = true;
                $(fields!(@one text $field is_first $($optional)?);)+
                let _ = is_first;
                text.expect("}")
            }
        }
    )+};
    (@one $text:ident $field:ident $is_first:ident) => {
        if !std::mem::take(&mut $is_first) {
            $text.expect(",")?;
        }
        $text.expect(concat!("\"", stringify!($field), "\":"))?;
        $field.read($text)?;
    };
    // Never the first.
    (@one $text:ident $field:ident $is_first:ident ?) => {
        if $text.eat(concat!(",\"", stringify!($field), "\":")) {
            $field.read($text)?;
        } else {
            $field.clear();
        }
    };
}

fields! {
    RankProfile {
        schema, tool, job, rank, size, host, pid, mpi, end, cvars[?], knobs[?], objects_made[?], pvars, calls, in_mpi[?],
        peers[?], phases[?], series[?], watch[?], waiting[?], sites[?], machine[?], resources[?],
        messages[?], events[?], coverage, clock[?], warnings, overhead,
    }
    Tool { name, version }
    ObjectsMade { kind, made, freed }
    Job { id, command, labels[?], started, elapsed_s }
    Mpi { abi, standard, library, device[?], library_path, thread_level }
    End { how, code }
    Pvar {
        name, class, behaves_as[?], datatype, bind, object, verbosity, continuous, readonly, atomic,
        count, start, end, delta[?], samples[?], notes[?], also[?],
    }
    Samples { n, min, mean, max, sum[?], histogram, states[?] }
    SampledSum { min, mean, max }
    StateShare { state, share }
    Call {
        name, count, bytes[?], timed[?], time_s[?], time_error_s[?], time_max_s[?], time_histogram[?],
        size_histogram[?], size_histogram_bytes[?],
    }
    Peers { messages, accesses[?] }
    PeerTraffic { rank, number, bytes }
    InMpi { time_s, time_error_s[?], share, threads, wall_s[?] }
    Phase { name, entries, time_s, calls, stretches, stretches_read, pvars }
    PhasePvar { name, class, behaves_as[?], object, delta[?], samples[?] }
    Series { interval_s, end_s, columns }
    SeriesColumn { name, class, object, min, mean, max }
    Resources {
        processors, cgroup[?], user_s, system_s, voluntary_switches, involuntary_switches, processor_wait_s[?],
        minor_faults, major_faults, peak_memory_bytes, start_peak_memory_bytes,
    }
    Sites { sites, addresses, load_map }
    Site {
        function, call, calls, calls_error[?], timed, time_s, time_error_s[?], time_max_s, bytes[?],
        stacks_taken, stacks,
    }
    SiteStack { hits, calls, time_s, frames }
    CodeAddress { object, address, name[?] }
    LoadedObject { path, build_id[?] }
    Waiting { function, communicator, members, ordinal, size, calls, level, times_ns }
    Messages { source, metrics, peers, without_peer, lost }
    MessageMetric { metric, traffic, n, sum, max, histogram }
    PeerQueues {
        peer, unexpected, unexpected_max, unexpected_mean, unexpected_time_s,
        unexpected_time_max_s, posted, posted_max, posted_mean,
    }
    EventCount { name, event_source, object, n, dropped, first_s, last_s, gap_max_s }
    Coverage { exported, sampled, skipped, objects[?], events[?], advice }
    Skipped { index, name, reason }
    ObjectsLeftOut { what, number, reason }
    Clock { source, read_s, slow }
    Overhead {
        mpit_init_s, init_s, sampling_s[?], wrappers_s[?], events_s[?], finalize_s, share,
        running_share[?], budget[?],
    }
}

macro_rules! names {
    ($($type:ty),+) => {$(
        impl InPlace for $type {
            fn read(&mut self, text: &mut Text) -> Option<()> {
                let name: StrDeserializer<Error> = text.string()?.into_deserializer();
                *self = Self::deserialize(name).ok()?;
                Some(())
            }
        }
    )+};
}
names!(Class, Datatype, Ending, MessageSource, Metric, Traffic);

/// Rare in profiles, so serde is fast enough.
macro_rules! by_serde {
    ($($type:ty),+) => {$(
        impl InPlace for $type {
            fn read(&mut self, text: &mut Text) -> Option<()> {
                *self = text.value()?;
                Some(())
            }
        }
    )+};
}
by_serde!(CvarSetting, Knob, Label, Watch, Machine, Cgroup);
