//! The places in the program whose receives were hits, and the stacks that led there. All memory is allocated
//! at the start: a hit allocates nothing.

use gyan_results::{Hit, Stack, Watch, WatchSite, sort_by};

use crate::calls::addresses::Map;
use crate::calls::ledger;
use crate::calls::stacks::Stacks;
use crate::mpi::functions::Function;
use crate::sys::fixed_map::FixedMap;

const SITES_AT_MOST: usize = 256;

pub(super) struct WatchedSites {
    variable: String,
    /// The index of a call's site in `known`.
    places: FixedMap<Call, usize>,
    known: Vec<WatchedSite>,
    elsewhere: u64,
}

/// The return address of a call.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Call {
    pub(super) function: Function,
    pub(super) address: usize,
}

struct WatchedSite {
    call: Call,
    hits: u64,
    sum: u64,
    worst: Worst,
    stacks: Stacks,
}

/// The hit with the largest value.
#[derive(Clone, Default)]
pub(super) struct Worst {
    pub(super) value: u64,
    /// None for what is not known.
    pub(super) source: Option<i32>,
    pub(super) tag: Option<i32>,
    pub(super) comm: Option<usize>,
    pub(super) longest_from: Option<u32>,
    /// The name of the communicator, once that is freed.
    pub(super) name: Option<String>,
}

/// The hit that was the worst of its site when it was recorded.
#[derive(Clone, Copy)]
pub(super) struct WatchedHit {
    site: usize,
    hits: u64,
}

impl WatchedSites {
    /// For hits of the variable with this name.
    pub(super) fn new(variable: &str) -> WatchedSites {
        WatchedSites {
            variable: variable.into(),
            places: FixedMap::new(SITES_AT_MOST),
            known: Vec::with_capacity(SITES_AT_MOST),
            elsewhere: 0,
        }
    }

    /// Records a hit of a call. `may_look` says whether the stack may be recorded, and is not asked at the
    /// first hit of a site. If it is the site's largest hit so far, returns a token to add details:
    /// [`WatchedSites::is_worst`].
    pub(super) fn hit(
        &mut self,
        call: Call,
        value: u64,
        may_look: impl FnOnce() -> bool,
    ) -> Option<WatchedHit> {
        let known = self.places.get(&call).copied();
        let index = match known {
            Some(index) => index,
            None if self.known.len() < SITES_AT_MOST => {
                let site = self.known.len();
                self.places.put(call, site);
                self.known.push(WatchedSite::new(call));
                site
            }
            None => {
                self.elsewhere += 1;
                return None;
            }
        };
        let site = self.known.get_mut(index)?;
        site.hits += 1;
        site.sum = site.sum.saturating_add(value);
        if site.hits == 1 || may_look() {
            site.stacks.look(1.0, 0.0);
        }
        (value > site.worst.value).then(|| {
            site.worst = Worst { value, ..Worst::default() };
            WatchedHit { site: index, hits: site.hits }
        })
    }

    /// Adds details to the recorded hit, unless another thread's was larger in the meantime.
    pub(super) fn is_worst(&mut self, noted: WatchedHit, worst: Worst) {
        if let Some(site) = self.known.get_mut(noted.site)
            && site.worst.value == worst.value
        {
            site.worst = worst;
        }
    }

    /// Adds what the recorded receive actually received.
    pub(super) fn received(&mut self, noted: WatchedHit, source: i32, tag: i32) {
        if let Some(site) = self.known.get_mut(noted.site) {
            // Not if another thread's hit replaced it in the meantime.
            if site.hits == noted.hits {
                site.worst.source = Some(source);
                site.worst.tag = Some(tag);
            }
        }
    }

    /// Whether a recorded hit was on this communicator.
    pub(super) fn mention(&self, comm: usize) -> bool {
        self.known.iter().any(|site| site.worst.is_on(comm))
    }

    /// A communicator of this name is about to be freed.
    pub(super) fn freed(&mut self, comm: usize, name: &str) {
        for site in &mut self.known {
            if site.worst.is_on(comm) {
                site.worst.name = Some(name.into());
            }
        }
    }

    /// Completes the watch with the sites; `names`: of the communicators that are alive.
    pub(super) fn described(
        &self,
        mut watch: Watch,
        names: &dyn Fn(usize) -> Option<String>,
    ) -> Watch {
        watch.variable.clone_from(&self.variable);
        let mut map = Map::now();
        for site in &self.known {
            let worst = &site.worst;
            let mut stacks: Vec<Stack> = site
                .stacks
                .known()
                .map(|stack| Stack {
                    hits: stack.hits.get(),
                    frames: stack.frames().map(|frame| map.address(frame)).collect(),
                })
                .collect();
            sort_by(&mut stacks, |one, other| other.hits.cmp(&one.hits));
            watch.sites.push(WatchSite {
                function: ledger::row(site.call.function).map_or("", |row| row.name).into(),
                call: map.address(site.call.address),
                hits: site.hits,
                sum: site.sum,
                worst: Hit {
                    value: worst.value,
                    source: worst.source,
                    tag: worst.tag,
                    communicator: worst.name.clone().or_else(|| worst.comm.and_then(names)),
                    longest_from: worst.longest_from,
                },
                stacks_taken: site.stacks.taken(),
                stacks,
            });
        }
        sort_by(&mut watch.sites, |one, other| other.hits.cmp(&one.hits));
        watch.hits = self.elsewhere + self.known.iter().map(|site| site.hits).sum::<u64>();
        watch.hits_elsewhere = self.elsewhere;
        watch.load_map = map.used();
        watch
    }
}

impl Worst {
    fn is_on(&self, comm: usize) -> bool {
        self.comm == Some(comm) && self.name.is_none()
    }
}

impl WatchedSite {
    fn new(call: Call) -> WatchedSite {
        WatchedSite { call, hits: 0, sum: 0, worst: Worst::default(), stacks: Stacks::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::functions::point_to_point::{MPI_Irecv, MPI_Recv};

    fn call(address: usize) -> Call {
        Call { function: MPI_Recv, address }
    }

    fn described(sites: &WatchedSites) -> Watch {
        sites.described(Watch::default(), &|comm| Some(format!("comm {comm}")))
    }

    #[test]
    fn hits_are_counted_by_function_and_place_and_the_largest_is_kept() {
        let mut sites = WatchedSites::new("queue");
        let mut hit = |call, value, tag| {
            if let Some(noted) = sites.hit(call, value, || false) {
                let worst = Worst { value, tag: Some(tag), comm: Some(7), ..Worst::default() };
                sites.is_worst(noted, worst);
            }
        };
        for value in [3, 9, 4] {
            hit(call(10), value, 1);
        }
        hit(Call { function: MPI_Irecv, address: 10 }, 1, 2);
        let watch = described(&sites);
        assert_eq!((watch.hits, watch.hits_elsewhere, watch.sites.len()), (4, 0, 2));
        let site = &watch.sites[0];
        assert_eq!((site.function.as_str(), site.hits, site.sum), ("MPI_Recv", 3, 16));
        assert_eq!((site.worst.value, site.worst.tag), (9, Some(1)));
        assert_eq!(site.worst.communicator.as_deref(), Some("comm 7"));
        // Only the first hit's stack was recorded.
        assert_eq!((site.stacks_taken, site.stacks.len()), (1, 1));
    }

    #[test]
    fn what_a_receive_got_belongs_to_the_hit_that_was_noted_last() {
        let mut sites = WatchedSites::new("queue");
        let first = sites.hit(call(10), 5, || false).unwrap();
        assert!(sites.hit(call(10), 5, || false).is_none());
        sites.received(first, 1, 2);
        assert_eq!(described(&sites).sites[0].worst.source, None);
        let third = sites.hit(call(10), 6, || false).unwrap();
        sites.received(third, 3, 4);
        assert_eq!(described(&sites).sites[0].worst.source, Some(3));
    }

    #[test]
    fn hits_of_too_many_places_are_still_counted() {
        let mut sites = WatchedSites::new("queue");
        for address in 0..SITES_AT_MOST + 5 {
            sites.hit(call(address), 1, || false);
        }
        let watch = described(&sites);
        assert_eq!((watch.sites.len(), watch.hits_elsewhere), (SITES_AT_MOST, 5));
        assert_eq!(watch.hits, SITES_AT_MOST as u64 + 5);
    }

    #[test]
    fn the_name_of_a_freed_communicator_stays() {
        let mut sites = WatchedSites::new("queue");
        let noted = sites.hit(call(1), 1, || false).unwrap();
        sites.is_worst(noted, Worst { value: 1, comm: Some(7), ..Worst::default() });
        assert!(sites.mention(7) && !sites.mention(8));
        sites.freed(7, "halo");
        assert!(!sites.mention(7));
        assert_eq!(described(&sites).sites[0].worst.communicator.as_deref(), Some("halo"));
    }
}
